"""Checkpoints that survive anything: written whole or not at all, checked before they are trusted.

A checkpoint is one safetensors file whose name carries its step and the SHA-256 of its bytes. It holds the weights, the
optimizer's two moments, the moving average, the best weights so far and, as text, the rest of the state: position, best
score, patience.
Randomness needs no state of its own: every step draws from a seed that is a function of (seed, step).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from glassformer.common.errors import RunError, why
from glassformer.common.files import remove_partial, write_bytes

NAME = re.compile(r"step-(\d{8})-([0-9a-f]{16})\.safetensors")


@dataclass
class Progress:
    """The position of a run: the next step, the next batch, and how the best validation went."""

    step: int = 0
    epoch: int = 0
    index: int = 0
    best: float | None = None
    best_step: int = 0
    stale: int = 0  # validations since the best
    scale: float = 65536.0  # of the loss, in fp16
    scale_age: int = 0
    loss_total: float = 0.0  # of the steps since the last line of the metrics
    steps_logged: int = 0


@dataclass
class Checkpoint:
    progress: Progress
    tensors: dict[str, Tensor]
    recipe: dict[str, Any]


def write(folder: Path, checkpoint: Checkpoint, keep: int, every: int) -> Path:
    """Save under `folder` and return the file. The newest `keep` stay, this one counted.

    A step that is no multiple of `every` was an interruption's or an earlier end; it goes when a newer one is safe, so
    that the checkpoints are the same as without it.
    """
    from safetensors.torch import save

    meta = {"progress": json.dumps(asdict(checkpoint.progress)), "recipe": json.dumps(checkpoint.recipe)}
    data = save({name: tensor.contiguous() for name, tensor in checkpoint.tensors.items()}, metadata=meta)
    digest = hashlib.sha256(data).hexdigest()[:16]
    path = folder / f"step-{checkpoint.progress.step:08d}-{digest}.safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(path, data)
    older = [file for file in listing(folder) if file != path]
    regular = [file for file in older if step_of(file) % every == 0 and step_of(file) != checkpoint.progress.step]
    for file in set(older) - set(regular[1 - keep :] if keep > 1 else []):
        file.unlink(missing_ok=True)
    return path


def listing(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted(path for path in folder.glob("step-*.safetensors") if NAME.fullmatch(path.name))


def step_of(path: Path) -> int:
    match = NAME.fullmatch(path.name)
    assert match
    return int(match[1])


def newest(folder: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole; a damaged one is named and passed over."""
    remove_partial(folder)
    for path in reversed(listing(folder)):
        found = read(path)
        if found is not None:
            return found
        say(f"{path} is damaged (its contents do not match its checksum); using the one before")
        path.rename(path.with_suffix(".damaged"))
    if any(folder.glob("*.damaged")):
        say("no checkpoint is whole; training starts again at step 0")
    return None


def read(path: Path) -> Checkpoint | None:
    """The checkpoint in a file, None where its contents do not match its checksum."""
    from safetensors.torch import load

    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {why(error)}") from None
    match = NAME.fullmatch(path.name)
    if not match or hashlib.sha256(data).hexdigest()[:16] != match[2]:
        return None
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    meta = header["__metadata__"]
    return Checkpoint(Progress(**json.loads(meta["progress"])), load(data), json.loads(meta["recipe"]))
