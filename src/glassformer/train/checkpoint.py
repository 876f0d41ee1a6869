"""Checkpoints that survive anything: written whole or not at all, checked before they are trusted.

A checkpoint is one safetensors file whose name carries its step and the SHA-256 of its bytes. It holds the weights, the
optimizer's two moments, the moving average and, as text, the rest of the state: position, best score, patience.
Randomness needs no state of its own: every step draws from a seed that is a function of (seed, step).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from glassformer.errors import RunError

NAME = re.compile(r"step-(\d{8})-([0-9a-f]{16})\.safetensors")


@dataclass
class Progress:
    """Where a run stands: the next step, the next batch, and how the best validation went."""

    step: int = 0
    epoch: int = 0
    index: int = 0
    best: float | None = None
    best_step: int = 0
    stale: int = 0  # validations since the best
    scale: float = 65536.0  # of the loss, in fp16
    scale_age: int = 0


@dataclass
class Checkpoint:
    progress: Progress
    tensors: dict[str, Tensor]
    recipe: dict[str, Any]


def write(folder: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Save under `folder`, keep the newest `keep`, return the file."""
    from safetensors.torch import save

    meta = {"progress": json.dumps(asdict(checkpoint.progress)), "recipe": json.dumps(checkpoint.recipe)}
    data = save({name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()}, metadata=meta)
    digest = hashlib.sha256(data).hexdigest()[:16]
    path = folder / f"step-{checkpoint.progress.step:08d}-{digest}.safetensors"
    partial = folder / f".{path.name}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        flush_folder(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        reason = "the disk is full" if error.errno == errno.ENOSPC else str(error.strerror)
        last = listing(folder)
        good = f"step {step_of(last[-1])} is safe in {last[-1].name}" if last else "nothing had been saved before"
        raise RunError(
            f"the checkpoint of step {checkpoint.progress.step} cannot be written: {reason}; {good}"
        ) from None
    for old in listing(folder)[:-keep]:
        old.unlink(missing_ok=True)
    return path


def flush_folder(folder: Path) -> None:
    """Make a rename last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def listing(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted(path for path in folder.glob("step-*.safetensors") if NAME.fullmatch(path.name))


def step_of(path: Path) -> int:
    match = NAME.fullmatch(path.name)
    assert match
    return int(match[1])


def newest(folder: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole; a damaged one is named and passed over."""
    for partial in folder.glob(".*.partial"):
        partial.unlink(missing_ok=True)
    for path in reversed(listing(folder)):
        found = read(path)
        if found is not None:
            return found
        say(f"{path} is damaged (its contents do not match its checksum); using the one before")
        path.rename(path.with_suffix(".damaged"))
    return None


def read(path: Path) -> Checkpoint | None:
    from safetensors.torch import load

    data = path.read_bytes()
    match = NAME.fullmatch(path.name)
    if not match or hashlib.sha256(data).hexdigest()[:16] != match[2]:
        return None
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    meta = header["__metadata__"]
    return Checkpoint(Progress(**json.loads(meta["progress"])), load(data), json.loads(meta["recipe"]))
