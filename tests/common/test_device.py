"""One choice of device, and one word on a wrong one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from small_run import Cli
from tiny_translators import tiny_bundle

from glassformer.common.device import disable_cudnn_sdp, pick_device
from glassformer.common.errors import ConfigError
from glassformer.decode import generate
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.train import parallel


def test_auto_is_the_best_there_is() -> None:
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert pick_device(torch.device("cpu")) == torch.device("cpu")


def test_a_text_waits_for_no_plan_of_its_attention() -> None:
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=12, d_model=8, heads=2, d_ff=8, layers=1)
    model, seen = EncoderDecoder(config).eval(), []
    for stack in (model.encoder, model.decoder):
        stack.register_forward_hook(lambda *_: seen.append(torch.backends.cuda.cudnn_sdp_enabled()))
    assert torch.backends.cuda.cudnn_sdp_enabled()
    model(torch.tensor([[3, 4]]), torch.tensor([[1]]))
    assert seen == [True, True]
    del seen[:]
    generate(model, torch.tensor([[3, 4]]), max_new_tokens=3)
    assert set(seen) == {False}
    assert torch.backends.cuda.cudnn_sdp_enabled()


def test_the_last_to_go_sets_it_back() -> None:
    def enabled() -> bool:
        return torch.backends.cuda.cudnn_sdp_enabled()

    def one_after_the_other() -> None:
        with disable_cudnn_sdp:
            first.set()
            second.wait(60)
            assert not enabled()

    first, second = threading.Event(), threading.Event()
    with ThreadPoolExecutor() as threads:
        other = threads.submit(one_after_the_other)
        first.wait(60)
        with disable_cudnn_sdp:
            assert not enabled()
        assert not enabled()
        second.set()
        other.result()
    assert enabled()
    with pytest.raises(ZeroDivisionError), disable_cudnn_sdp:
        raise ZeroDivisionError
    assert enabled()


def test_every_command_says_the_same_of_a_wrong_device(cli: Cli, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^device=gpu cannot be used: ") as told:
        pick_device("gpu")
    with pytest.raises(ConfigError) as again:
        parallel.init_distributed("gpu")
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
        ("serve", folder),
    ):
        assert cli.fails(*command, "--device", "gpu") == said, command[0]
