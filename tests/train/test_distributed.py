"""Two processes follow the path of one, sharded or not, and each goes on from the other's checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_run import by_hand, call, digest, metrics, torchrun, train_here

from glassformer.train import checkpoint
from glassformer.train.folder import lock_folder

SAME = ("model.dropout=0.0", "train.steps=8", "train.log_every=1", "train.save_every=4", "train.valid_every=4")


def losses(out: Path) -> dict[int, float]:
    return {int(row["step"]): row["loss"] for row in metrics(out) if "loss" in row}


def apart(out: Path, other: Path) -> float:
    """The largest difference of two runs' losses, over 8 steps."""
    ours, theirs = losses(out), losses(other)
    assert sorted(ours) == sorted(theirs) == list(range(1, 9))
    return max(abs(ours[step] - theirs[step]) for step in ours)


def assert_two_processes_equal_one(recipe: Path, folder: Path, *changes: str) -> None:
    train_here(recipe, folder / "one", *changes)
    by_hand("train", recipe, "--out", folder / "two", *(word for change in changes for word in ("--set", change)))
    one, two = losses(folder / "one"), losses(folder / "two")
    assert sorted(one) == sorted(two) == list(range(1, len(one) + 1))
    assert max(abs(one[step] - two[step]) for step in one) < 1e-4


def by_torchrun(*words: str | Path) -> tuple[str, str]:
    """What two processes print and tell."""
    done = call(torchrun("-m", "glassformer", *words))
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def launch(kind: str, *words: str | Path, run: Callable[..., tuple[str, str]] = by_hand) -> str:
    """Train by two processes; what they told."""
    sets = [word for change in (*SAME, f"train.parallel={kind}") for word in ("--set", change)]
    printed, told = run("train", *words, *sets)
    assert printed.count("valid pairs") == 1
    return told


def at_step_4(run: Path, copy: Path) -> Path:
    """A copy of a run that has forgotten its later steps."""
    shutil.copytree(run, copy)
    files = checkpoint.listing(copy / "checkpoints")
    assert [checkpoint.step_of(file) for file in files] == [4, 8]
    files[-1].unlink()
    return copy


sharding = pytest.mark.skipif(
    torch.__version__.startswith("2.8."),
    reason="PyTorch 2.8 does not average gradients there, so sharding is refused",
)


@sharding
def test_two_that_share_the_weights_go_on_from_one_and_do_what_it_does(recipe: Path, tmp_path: Path) -> None:
    train_here(recipe, tmp_path / "single", *SAME)
    from_one = at_step_4(tmp_path / "single", tmp_path / "from-one")
    told = launch("fsdp", "--out", from_one, "--resume")
    assert "2 processes (fsdp)" in told
    assert told.count("resumed at step 4") == told.count("step 8/8") == 1  # only the first process speaks
    assert apart(from_one, tmp_path / "single") < 1e-4


@pytest.mark.long
@sharding
@pytest.mark.parametrize(("kind", "other"), [("ddp", "fsdp"), ("fsdp", "ddp")])
def test_two_processes_do_what_one_does(recipe: Path, tmp_path: Path, kind: str, other: str) -> None:
    single, ours = tmp_path / "single", tmp_path / "ours"
    train_here(recipe, single, *SAME)
    told = launch(kind, recipe, "--out", ours, run=by_torchrun if kind == "ddp" else by_hand)
    assert apart(ours, single) < 1e-4
    assert f"2 processes ({kind})" in told
    assert told.count("vocabulary: ") == told.count("step 8/8") == 1  # only the first process speaks
    assert not list(ours.rglob("*.partial*"))

    from_one = at_step_4(single, tmp_path / "from-one")
    assert launch(kind, "--out", from_one, "--resume").count("resumed at step 4") == 1
    assert apart(from_one, single) < 1e-4

    from_ours = at_step_4(ours, tmp_path / "from-ours")
    assert "resumed at step 4" in launch(other, "--out", from_ours, "--resume")
    assert apart(from_ours, single) < 1e-4

    alone = at_step_4(ours, tmp_path / "alone")
    assert "resumed at step 4" in train_here(None, alone, resume=True)
    assert apart(alone, single) < 1e-4


def test_a_folder_that_is_being_trained_in_is_told_by_one_process(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    with lock_folder(out):
        _, told = by_hand("train", "--resume", "--out", out, codes=(2, 2))
    assert told.count(f"glassformer: another process is training in {out}") == 1
    assert "[rank" not in told  # no process trips over the first one's end
    assert digest(out) == digest(whole)
