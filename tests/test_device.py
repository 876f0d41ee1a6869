"""One choice of device, and one word on a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_run import Cli
from test_translator_text import tiny_bundle

from glassformer.device import pick_device
from glassformer.errors import ConfigError
from glassformer.train import parallel


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(monkeypatch, capsys)


def test_auto_is_the_best_there_is() -> None:
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert pick_device(torch.device("cpu")) == torch.device("cpu")


def test_every_command_says_the_same_of_a_wrong_device(cli: Cli, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^device=gpu cannot be used: ") as told:
        pick_device("gpu")
    with pytest.raises(ConfigError) as again:
        parallel.enter("gpu")
    assert str(again.value) == str(told.value)
    folder = tiny_bundle(tmp_path / "model")
    (tmp_path / "a").write_text("one\n")
    said = str(told.value).replace("device=", "--device ")
    for command in (
        ("translate", folder, "one"),
        ("trace", folder, "one"),
        ("evaluate", folder, "--src", tmp_path / "a", "--ref", tmp_path / "a"),
        ("score", folder, "--src", tmp_path / "a", "--tgt", tmp_path / "a"),
        ("train", "numerals", "--out", tmp_path / "run"),
        ("bench", "decode"),
        ("serve", folder),
    ):
        assert cli.fails(*command, "--device", "gpu") == said, command[0]
