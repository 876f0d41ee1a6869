"""Whether other processes keep the cores busy.

A step's threads wait for the slowest of them. One that has to share its core holds up all, and two threads can then be
slower than one. Nothing is changed by itself: another number of threads rounds otherwise, and a resumed run is to be
the uninterrupted one to the last bit. It is only told.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

WINDOW = 2.0  # seconds at least between two answers
CROWDED = 0.25  # seconds of waiting in a second; a quiet machine shows hundredths


class Cores:
    """How long this process's threads wait for a core to run on."""

    def __init__(self) -> None:
        self.begin, self.waited = time.perf_counter(), waits()

    def waiting(self) -> float | None:
        """Seconds waited in each second since the last answer, all threads together; none if that was just now."""
        now = time.perf_counter()
        if now - self.begin < WINDOW:
            return None
        before, self.waited = self.waited, waits()
        passed, self.begin = now - self.begin, now
        return sum(waited - before[thread] for thread, waited in self.waited.items() if thread in before) / passed


def waits() -> dict[str, float]:
    """The seconds each thread has waited for a core so far; none where the system does not tell."""
    found = {}
    for file in Path("/proc/self/task").glob("*/schedstat"):
        try:
            found[file.parent.name] = int(file.read_text(encoding="ascii").split()[1]) / 1e9
        except (OSError, ValueError, IndexError):  # the thread has ended, or the system does not count
            continue
    return found


def advice(cores: Cores, threads: int, folder: Path) -> str:
    """What to do about busy cores; nothing if they are not, or if there is nothing to do."""
    if threads < 2 or (cores.waiting() or 0.0) < CROWDED:
        return ""
    return (
        f"other processes keep the cores busy, and the {threads} threads of this run wait for one another; one thread "
        f"may be faster: stop the others, or this run (Ctrl-C) and go on with: "
        f"OMP_NUM_THREADS=1 glassformer train --resume --out {folder}"
    )


def threads_by_default(device: torch.device) -> int:
    """The threads a step is shared by, where the user has not said how many."""
    return torch.get_num_threads() if device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ else 1
