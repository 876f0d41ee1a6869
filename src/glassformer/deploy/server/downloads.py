"""Files that wait to be fetched: in memory, under names that nobody can guess, for a while."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

MOST_FILES = 500
MOST_BYTES = 64_000_000
KEPT = 1800.0  # seconds


class Kept(NamedTuple):
    name: str  # what it is called by whoever fetches it
    content: bytes
    client: str
    until: float


class Shelf:
    """Where there is no room, whoever has most on it loses their oldest."""

    def __init__(
        self,
        most_files: int = MOST_FILES,
        most_bytes: int = MOST_BYTES,
        seconds: float = KEPT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.most_files, self.most_bytes, self.seconds, self.clock = most_files, most_bytes, seconds, clock
        self._files: dict[str, Kept] = {}  # the oldest first
        self._lock = threading.Lock()

    def add(self, name: str, content: bytes, client: str, ending: str = "") -> str:
        """The key by which it can be fetched; `ending` is what a reader sees of it."""
        key = secrets.token_urlsafe(24) + ending
        with self._lock:
            self._files[key] = Kept(name, content, client, self.clock() + self.seconds)
            self._tidy()
        return key

    def get(self, key: str) -> Kept | None:
        with self._lock:
            self._tidy()
            return self._files.get(key)

    def _tidy(self) -> None:
        now = self.clock()
        self._files = {key: one for key, one in self._files.items() if one.until > now}
        held: Counter[str] = Counter()
        for one in self._files.values():
            held[one.client] += len(one.content) + self.most_bytes // self.most_files  # many small ones are much too
        while len(self._files) > self.most_files or self.size > self.most_bytes:
            client, _ = held.most_common(1)[0]
            key = next(key for key, one in self._files.items() if one.client == client)
            held[client] -= len(self._files.pop(key).content) + self.most_bytes // self.most_files

    @property
    def size(self) -> int:
        return sum(len(one.content) for one in self._files.values())

    def __len__(self) -> int:
        return len(self._files)
