"""Two processes follow the path of one, sharded or not, and each goes on from the other's checkpoints."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from small_run import call, digest, metrics, torchrun, train_here

from glassformer.train import checkpoint
from glassformer.train.folder import claimed

SAME = ("model.dropout=0.0", "train.steps=50", "train.log_every=1", "train.save_every=25", "train.valid_every=25")


def losses(out: Path) -> dict[int, float]:
    return {int(row["step"]): row["loss"] for row in metrics(out) if "loss" in row}


def apart(out: Path, other: Path) -> float:
    """The largest difference of two runs' losses, over 50 steps."""
    ours, theirs = losses(out), losses(other)
    assert sorted(ours) == sorted(theirs) == list(range(1, 51))
    return max(abs(ours[step] - theirs[step]) for step in ours)


def launch(kind: str, *words: object) -> str:
    """Train by two processes; what they said."""
    sets = [word for change in (*SAME, f"train.parallel={kind}") for word in ("--set", change)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = call(torchrun("-m", "glassformer", "train", *words, *sets), env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("valid pairs") == 1
    return done.stderr


def at_step_25(run: Path, copy: Path) -> Path:
    """A copy of a run that has forgotten its later steps."""
    shutil.copytree(run, copy)
    files = checkpoint.listing(copy / "checkpoints")
    assert [checkpoint.step_of(file) for file in files] == [25, 50]
    files[-1].unlink()
    return copy


@pytest.mark.parametrize(("kind", "other"), [("ddp", "fsdp"), ("fsdp", "ddp")])
def test_two_processes_do_what_one_does(recipe: Path, tmp_path: Path, kind: str, other: str) -> None:
    single, ours = tmp_path / "single", tmp_path / "ours"
    train_here(recipe, single, *SAME)
    told = launch(kind, recipe, "--out", ours)
    assert apart(ours, single) < 1e-4
    assert f"2 processes ({kind})" in told
    assert told.count("vocabulary: ") == told.count("step 50/50") == 1  # only the first process speaks
    assert not list(ours.rglob("*.partial*"))

    from_one = at_step_25(single, tmp_path / "from-one")
    assert launch(kind, "--out", from_one, "--resume").count("resumed at step 25") == 1
    assert apart(from_one, single) < 1e-4

    from_ours = at_step_25(ours, tmp_path / "from-ours")
    assert "resumed at step 25" in launch(other, "--out", from_ours, "--resume")
    assert apart(from_ours, single) < 1e-4

    alone = at_step_25(ours, tmp_path / "alone")
    assert "resumed at step 25" in train_here(None, alone, resume=True)
    assert apart(alone, single) < 1e-4


def test_a_folder_that_is_being_trained_in_is_told_by_one_process(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    with claimed(out):
        done = call(torchrun("-m", "glassformer", "train", "--resume", "--out", out))
    assert done.returncode
    assert done.stderr.count(f"glassformer: another process is training in {out}") == 1
    assert "[rank" not in done.stderr  # no process trips over the first one's end
    assert digest(out) == digest(whole)
