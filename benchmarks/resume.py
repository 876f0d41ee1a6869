"""Is interrupted training the same training? Kill it at random moments, go on, and compare the weights' hashes."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from glassformer.common.errors import RunError

SETTINGS = (
    'data.train=[{builtin="numerals", size=2000}]',
    'data.valid=[{builtin="numerals", split="valid", size=100}]',
    "data.test=[]",
    "model.d_model=64",
    "model.d_ff=128",
    "model.layers=1",
    "model.dropout=0.1",
    "train.ema=0.99",
    "train.steps=300",
    "train.batch_tokens=512",
    "train.save_every=10",
    "train.valid_every=50",
    "train.log_every=10",
)

PATIENCE = 3.0  # seconds to wait for a checkpoint's write to begin


@dataclass(frozen=True)
class Resumed:
    """One run that was killed and resumed until it ended."""

    kills: int
    inside_a_write: int  # of the kills, those that left a half-written checkpoint behind
    equal: bool  # its weights' hash is the uninterrupted run's


def train(folder: Path, resume: bool) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "glassformer", "train", "numerals", "--device", "cpu", "--out", str(folder)]
    words += [word for setting in SETTINGS for word in ("--set", setting)]
    return subprocess.Popen(
        words + ["--resume"] * resume, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    try:
        told = process.communicate()[1]
    finally:  # interrupted, it leaves none behind
        process.kill()
    if process.returncode:
        raise RunError(f"the training process ended with {process.returncode}: {told.decode(errors='replace')[-500:]}")


def killed(process: subprocess.Popen[bytes], folder: Path, seconds: float, writing: bool) -> bool:
    """Kill after `seconds`, or then as soon as a checkpoint is being written; False if training had ended before."""
    end = time.monotonic() + seconds
    try:
        while process.poll() is None:
            late = time.monotonic() - end
            if late > 0 and (not writing or late > PATIENCE or any((folder / "checkpoints").glob(".*.partial"))):
                process.kill()
                process.communicate()
                return True
            time.sleep(0.0005 if late > 0 else min(0.05, -late))
        return False
    except KeyboardInterrupt:
        process.kill()
        raise


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def resumes(times: int, seed: int = 0, report: Callable[[str], None] = lambda text: None) -> list[Resumed]:
    """`times` interruptions by SIGKILL, over as many runs as they need."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="glassformer-resume-") as place:
        report("the uninterrupted run")
        begin = time.monotonic()
        finish(train(Path(place) / "whole", resume=False))
        length = time.monotonic() - begin
        wanted = digest(Path(place) / "whole")
        found: list[Resumed] = []
        total = 0
        while total < times:
            folder, kills, inside = Path(place) / f"run-{total}", 0, 0
            while True:
                process = train(folder, resume=True)
                # Early kills meet the vocabulary and the corpus, later ones steps, checkpoints and the shipping.
                moment = chance.uniform(0.1, 0.9) * length
                if total == times or not killed(process, folder, moment, writing=total % 2 == 1):
                    finish(process)
                    break
                kills += 1
                total += 1
                inside += any((folder / "checkpoints").glob(".*.partial"))
                report(f"interruption {total} of {times}")
            if kills:
                found.append(Resumed(kills, inside, digest(folder) == wanted))
            shutil.rmtree(folder)
        return found
