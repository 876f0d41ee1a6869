"""Two processes follow the path of one, sharded or not, and each goes on from the other's checkpoints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from small_run import call, metrics, torchrun, train_here

from glassformer.train import checkpoint

SAME = ("model.dropout=0.0", "train.steps=50", "train.log_every=1", "train.save_every=25", "train.valid_every=25")

# All continuations in one launch: starting two processes takes longer than what they do.
CONTINUE = """
import json, sys
from pathlib import Path
from glassformer.train import Report, train
from glassformer.train.run import saved_recipe
for out, kind in json.loads(sys.argv[1]):
    train(saved_recipe(Path(out), (f"train.parallel={kind}",)), out, resume=True, device="cpu", report=Report())
"""


def losses(out: Path) -> dict[int, float]:
    return {int(row["step"]): row["loss"] for row in metrics(out) if "loss" in row}


def apart(out: Path, other: Path) -> float:
    """The largest difference of two runs' losses, over 50 steps."""
    ours, theirs = losses(out), losses(other)
    assert sorted(ours) == sorted(theirs) == list(range(1, 51))
    return max(abs(ours[step] - theirs[step]) for step in ours)


def launch(*words: object) -> subprocess.CompletedProcess[str]:
    done = call(torchrun(*words), env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done


def test_two_processes_do_what_one_does(recipe: Path, tmp_path: Path) -> None:
    train_here(recipe, tmp_path / "single", *SAME)
    sets = [word for change in SAME for word in ("--set", change)]
    for kind in ("ddp", "fsdp"):
        out = tmp_path / kind
        words = ("train", recipe, "--out", out, "--set", f"train.parallel={kind}", *sets)
        done = launch("-m", "glassformer", *words)
        assert apart(out, tmp_path / "single") < 1e-4
        # Only the first process speaks and writes.
        assert done.stderr.count("vocabulary: ") == 1
        assert done.stderr.count("step 50/50") == 1
        assert f"2 processes ({kind})" in done.stderr
        assert done.stdout.count("never trained on") == 1
        assert len(checkpoint.listing(out / "checkpoints")) == 2
        assert not list(out.rglob("*.partial*"))
    go_on_from_each_other(tmp_path)


def go_on_from_each_other(place: Path) -> None:
    copies = []
    for before in ("single", "ddp", "fsdp"):
        for after in {"single", "ddp", "fsdp"} - {before}:
            out = place / f"{before}-{after}"
            shutil.copytree(place / before, out)
            files = checkpoint.listing(out / "checkpoints")
            assert [checkpoint.step_of(file) for file in files] == [25, 50]
            files[-1].unlink()
            copies.append((out, after))
    script = place / "go_on.py"
    script.write_text(CONTINUE)
    together = [(str(out), after) for out, after in copies if after != "single"]
    done = launch(script, json.dumps(together))
    assert done.stderr.count("resumed at step 25") == len(together) == 4
    for out, after in copies:
        if after == "single":
            train_here(None, out, resume=True)
        assert apart(out, place / "single") < 1e-4, out.name
