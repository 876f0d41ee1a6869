"""A run's folder belongs to one process at a time, and only to a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from glassformer import bundle
from glassformer.errors import RunError

LOCK = ".glassformer.lock"
# What a folder with a run in it also holds, besides its recipe.
TRACES = (LOCK, "prepared", "checkpoints", "model.safetensors", *bundle.VOCABULARY)


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Make `folder`, or take the run in it, and let nobody else train there meanwhile.

    A folder that holds a user's things and no run is refused. The system drops the lock with the process that holds it,
    however that ends, so that nothing is left to clear away.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in folder.iterdir()}
        if names - {LOCK, "prepared"} and not ("recipe.toml" in names and names.intersection(TRACES)):
            raise RunError(f"{folder} is not empty and holds no run of ours; choose another --out")
        file = (folder / LOCK).open("a")
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {bundle.why(error)}; choose another --out") from None
    with file:
        if not lock(file):
            raise RunError(f"another process is training in {folder}; wait until it ends, or choose another --out")
        bundle.sweep(folder)
        yield


def lock(file: IO[str]) -> bool:
    """Whether nobody else holds the file; where the system cannot tell, nobody does."""
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a network's file system without locks
        pass
    return True
