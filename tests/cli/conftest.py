"""The command line in this process."""

import pytest
from small_run import Cli


@pytest.fixture
def cli(monkeypatch, capsys):
    return Cli(monkeypatch, capsys)
