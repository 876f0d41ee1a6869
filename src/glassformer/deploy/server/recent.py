"""The runs that the page may still ask for: the latest ones, within a bound of number and size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from glassformer.explain.trace import Trace

MOST_RUNS = 64
MOST_BYTES = 512_000_000


@dataclass(frozen=True)
class Run:
    trace: Trace
    blob: bytes

    @property
    def size(self) -> int:
        return 2 * len(self.blob)  # the trace holds the same numbers as tensors


class RecentRuns:
    """Least recently used runs leave first; the newest always stays."""

    def __init__(self, most_runs: int = MOST_RUNS, most_bytes: int = MOST_BYTES) -> None:
        self.most_runs, self.most_bytes = most_runs, most_bytes
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def add(self, trace: Trace) -> None:
        run = Run(trace, trace.blob())
        with self._lock:
            old = self._runs.pop(trace.run, None)
            self._size += run.size - (old.size if old else 0)
            self._runs[trace.run] = run
            while len(self._runs) > 1 and (len(self._runs) > self.most_runs or self._size > self.most_bytes):
                _, gone = self._runs.popitem(last=False)
                self._size -= gone.size

    def get(self, run: str) -> Run | None:
        with self._lock:
            if run in self._runs:
                self._runs.move_to_end(run)
            return self._runs.get(run)

    def __len__(self) -> int:
        return len(self._runs)
