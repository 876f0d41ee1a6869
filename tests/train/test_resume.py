"""An interrupted run goes on as if nothing had happened: the same weights to the byte, the same metrics."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_run import PATIENCE, call, command, digest, launch, metrics, train_here

from glassformer.common.errors import DataError, RunError
from glassformer.train import Report, checkpoint, read_recipe
from glassformer.train import train as run_training
from glassformer.train.evaluation.evaluate import validation_bleu
from glassformer.train.loop import Interrupted, signal_handlers, stop_at_once

SLOWLY = ("--set", "train.save_every=1", "--set", "train.keep_last=3")  # every step is followed by a write


def start(recipe: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    text = {"text": True, "encoding": "utf-8", "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return launch(command("train", recipe, "--out", out, *words), **text)


def wait_for(process: subprocess.Popen[str], out: Path, step: int) -> None:
    """Until a checkpoint of `step` or a later one is there."""
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() - begin < PATIENCE:
        files = checkpoint.listing(out / "checkpoints")
        if files and checkpoint.step_of(files[-1]) >= step:
            return
        time.sleep(0.001)
    raise AssertionError(f"never came to step {step}: {process.communicate()}")


def assert_same(out: Path, whole: Path) -> None:
    assert digest(out) == digest(whole)
    assert metrics(out) == metrics(whole)
    assert not list(out.rglob("*.partial*"))


def assert_survives_a_kill(recipe: Path, folder: Path, *changes: str) -> None:
    """Killed after its third step and gone on with, a run ends as one that nobody stopped."""
    train_here(recipe, folder / "whole", *changes)
    process = start(recipe, folder / "run", *SLOWLY, *(word for change in changes for word in ("--set", change)))
    wait_for(process, folder / "run", 3)
    process.kill()
    process.communicate()
    assert not (folder / "run" / "model.safetensors").exists()
    train_here(None, folder / "run", resume=True)
    assert_same(folder / "run", folder / "whole")


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_ends_the_run_politely(recipe: Path, whole: Path, tmp_path: Path, number: signal.Signals) -> None:
    process = start(recipe, tmp_path / "run")
    wait_for(process, tmp_path / "run", 10)
    process.send_signal(number)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    last = told.splitlines()[-1]
    assert last.startswith("stopped; step ")
    assert last.endswith(f"go on with: glassformer train --resume --out {tmp_path / 'run'}")
    assert "Traceback" not in told
    step = checkpoint.step_of(checkpoint.listing(tmp_path / "run" / "checkpoints")[-1])
    assert f"step {step} is saved" in last
    if number == signal.SIGTERM:
        again = call(command("train", "--resume", "--out", tmp_path / "run")).stderr
    else:
        again = train_here(None, tmp_path / "run", resume=True)
    assert f"resumed at step {step}" in again
    assert_same(tmp_path / "run", whole)
    assert len(checkpoint.listing(tmp_path / "run" / "checkpoints")) == 2


def test_a_signal_before_the_first_step(recipe: Path, whole: Path, tmp_path: Path) -> None:
    process = start(recipe, tmp_path / "run", "--set", 'data.train=[{src="fifo", tgt="train.de"}]')
    os.mkfifo(recipe.parent / "fifo")  # a corpus that never comes
    try:
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / "run" / ".glassformer.lock").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=PATIENCE)
    finally:
        (recipe.parent / "fifo").unlink()
        process.kill()
    assert process.returncode == 143
    assert "stopped; no step is saved yet; begin again with the same command" in told
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_kill_at_random_moments(recipe: Path, whole: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    out = tmp_path / "run"
    for step in (1, 30):
        process = start(recipe, out, *SLOWLY, "--resume")
        wait_for(process, out, step)
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
        process.communicate()
        assert not (out / "model.safetensors").exists()
    train_here(None, out, resume=True)
    assert_same(out, whole)


@pytest.mark.long
def test_kill_inside_a_checkpoints_write(recipe: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(recipe, out, *SLOWLY)
    wait_for(process, out, 5)
    while process.poll() is None:
        if any((out / "checkpoints").glob(".*.partial")):
            process.kill()
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    train_here(None, out, resume=True)
    assert_same(out, whole)


def test_left_over_partial_files_are_swept(half: Path, whole: Path) -> None:
    (half / "checkpoints" / ".glassformer-0123456789abcdef.partial").write_bytes(b"half a file")
    with (half / "metrics.jsonl").open("a") as file:
        file.write('{"step": 45, "loss": 1.0}\n{"step": 46, "lo')  # written after the checkpoint, then cut off
    train_here(None, half, "train.steps=60", resume=True)
    assert_same(half, whole)


@pytest.fixture(scope="session")
def forty(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 40 steps."""
    out = tmp_path_factory.mktemp("forty") / "run"
    train_here(recipe, out, "train.steps=40")
    return out


@pytest.fixture
def half(forty: Path, tmp_path: Path) -> Path:
    """A run that stands at step 40."""
    out = Path(shutil.copytree(forty, tmp_path / "run"))
    (out / "model.safetensors").unlink()
    return out


def test_a_signal_before_the_first_step_is_not_taken_for_an_error() -> None:
    def reads_a_file() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except Exception as error:  # as around a library that raises all kinds
            raise DataError("damaged") from error

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted) as stopped, signal_handlers(stop_at_once):
        reads_a_file()
    assert stopped.value.number == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("damage", ["flipped", pytest.param("truncated", marks=pytest.mark.long), "empty"])
def test_a_damaged_checkpoint_is_passed_over(half: Path, whole: Path, damage: str) -> None:
    newest = checkpoint.listing(half / "checkpoints")[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes({"flipped": bytes(data), "truncated": bytes(data[:-100]), "empty": b""}[damage])
    told = train_here(None, half, "train.steps=60", resume=True)
    assert f"{newest} is damaged" in told
    assert "resumed at step 30" in told
    assert_same(half, whole)


def test_with_all_checkpoints_damaged_it_starts_again(half: Path, whole: Path) -> None:
    for path in checkpoint.listing(half / "checkpoints"):
        path.write_bytes(b"nothing")
    told = train_here(None, half, "train.steps=60", resume=True)
    assert "training starts again at step 0" in told
    assert_same(half, whole)


@pytest.mark.parametrize("lost", ["gone", "damaged"])
def test_resume_does_not_replace_a_finished_model(recipe: Path, whole: Path, tmp_path: Path, lost: str) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    for path in checkpoint.listing(out / "checkpoints"):
        path.unlink() if lost == "gone" else path.write_bytes(b"nothing")
    before = contents(out)
    with pytest.raises(RunError, match=rf"finished model, but .* {lost}: .* move .*model.safetensors away first"):
        train_here(None, out, "train.steps=70", resume=True)
    assert contents(out) == before
    if lost == "gone":
        (out / "model.safetensors").rename(tmp_path / "kept.safetensors")  # now it is told
        train_here(None, out, resume=True)
        assert_same(out, whole)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


HOLD = """
import fcntl, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_two_cannot_train_in_one_folder_and_a_killed_one_leaves_it_free(
    recipe: Path, whole: Path, tmp_path: Path
) -> None:
    out, refused = tmp_path / "run", []

    class Second(io.StringIO):
        """Hears the first run, and each time tries to train beside it."""

        def write(self, text: str) -> int:
            if "step 5/" in text:
                for again in (None, recipe):
                    with pytest.raises(RunError, match=r"another process is training in .*; wait until it ends, or"):
                        train_here(again, out, resume=True)
                    refused.append(metrics(out))
            return super().write(text)

    run_training(read_recipe(str(recipe)), out, device="cpu", report=Report(Second()), make_judge=validation_bleu)
    assert len(refused) == 2
    assert_same(out, whole)
    words = [sys.executable, "-c", HOLD, out / ".glassformer.lock"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RunError, match="another process is training"):
            train_here(None, out, resume=True)
        holder.kill()
    told = train_here(None, out, resume=True)  # of a finished run is harmless
    assert "resumed at step 60" in told
    assert "its training had ended" in told
    assert_same(out, whole)


def test_a_lost_vocabulary_is_not_learnt_anew_beside_old_weights(half: Path) -> None:
    (half / "tokenizer.json").unlink()
    with pytest.raises(RunError, match=r"tokenizer.json is missing, .*; copy it back"):
        train_here(None, half, resume=True)
    assert not (half / "tokenizer.json").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk(recipe: Path, whole: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"mounting is not permitted: {mounted.stderr.decode().strip()}")
    try:
        filler = disk / "filler"
        filler.write_bytes(bytes(1_300_000))
        done = call(command("train", recipe, "--out", disk / "run", "--set", "train.keep_last=3"))
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].endswith(
            "cannot be written: the disk is full; step 10 is saved; "
            f"go on with: glassformer train --resume --out {disk / 'run'}"
        )
        assert "Traceback" not in done.stderr
        filler.unlink()
        train_here(None, disk / "run", "train.keep_last=1", resume=True)
        assert_same(disk / "run", whole)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_saved_recipe_without_defaults_still_goes_on(recipe: Path, whole: Path, half: Path) -> None:
    lines = recipe.read_text().replace("steps = 60", "steps = 40").splitlines()
    at = str(recipe.parent)
    (half / "recipe.toml").write_text("\n".join(re.sub(r'^(src|tgt) = "', rf'\1 = "{at}/', line) for line in lines))
    assert "resumed at step 40" in train_here(None, half, "train.steps=60", resume=True)
    assert_same(half, whole)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("train.seed=1", "train.seed was 0 when this run began and is 1 now"),
        ("train.lr=0.1", "train.lr was 0.01 when this run began and is 0.1 now"),
        ("model.layers=2", "model.layers was 1"),
        ("tokenizer.vocab_size=50", "tokenizer.vocab_size was 8000"),
        ("data.max_tokens=99", "data.max_tokens was 256"),
    ],
)
def test_another_recipe_is_refused(recipe: Path, whole: Path, tmp_path: Path, change: str, named: str) -> None:
    shutil.copytree(whole, tmp_path / "run")
    with pytest.raises(RunError, match="leave it as it was") as caught:
        train_here(recipe, tmp_path / "run", change, resume=True)
    assert named in str(caught.value)
    assert_same(tmp_path / "run", whole)


@pytest.mark.parametrize(
    ("changes", "stop", "steps"),
    [
        (("train.average=3", "train.keep_last=3", "train.save_every=5"), 17, 25),  # no multiple of save_every
        (("train.ship=best", "train.lr=0.3", "train.clip=0.0", "train.ema=0.0", "train.valid_every=5"), 20, 30),
        (("train.precision=fp16", "data.valid=[]", "train.save_every=3", "train.batch_tokens=128"), 3, 8),
    ],
    ids=["averaged", "best", "half precision"],
)
def test_an_interruption_changes_nothing_of_what_ships(
    recipe: Path, tmp_path: Path, changes: tuple[str, ...], stop: int, steps: int
) -> None:
    train_here(recipe, tmp_path / "whole", *changes, f"train.steps={steps}")
    train_here(recipe, tmp_path / "run", *changes, f"train.steps={stop}")
    train_here(None, tmp_path / "run", f"train.steps={steps}", resume=True)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
