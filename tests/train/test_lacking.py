"""What a machine lacks for a recipe is told before any work is done."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
import torch
from small_run import train_here

import glassformer as gf
from glassformer.common.errors import ConfigError, RunError
from glassformer.train import run
from glassformer.train.options import Train
from glassformer.train.parallel import World, distribute
from glassformer.train.step import precision

CPU = torch.device("cpu")


def test_tensorboard_that_is_not_installed(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"train.tensorboard needs tensorboard: pip install 'glassformer\[log\]'"):
        train_here(recipe, tmp_path / "run", "train.tensorboard=true")
    assert not (tmp_path / "run" / "prepared").exists()


def test_bf16_where_pytorch_crashes_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(torch, "__version__", "2.8.0+cpu")
    with pytest.raises(ConfigError, match="on ARM crashes when it trains in it; use fp32, or PyTorch"):
        precision(Train(precision="bf16"), CPU)
    assert precision(Train(precision="fp32"), CPU) == "fp32"
    monkeypatch.setattr(torch, "__version__", "2.13.0+cpu")
    assert precision(Train(precision="bf16"), CPU) == "bf16"


def test_sharding_where_pytorch_does_not_average(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.8.0+cpu")
    model = gf.EncoderDecoder(gf.ModelConfig(vocab_size=9, d_model=8, heads=2, d_ff=8, layers=1))
    with pytest.raises(ConfigError, match=r"adds gradients up on CPUs where it should average them; use 'ddp', or"):
        distribute(model, World(0, 2, CPU), "fsdp")
    assert distribute(model, World(0, 1, CPU), "fsdp") is model
