"""The command line in this process, and its standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest
from small_run import Cli

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str, given: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        return Cli(monkeypatch, capsys)(*words)

    return run
