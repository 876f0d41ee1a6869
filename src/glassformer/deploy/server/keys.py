"""Who may use the server: keys in a file, each by its hash, with a limit of its own.

The file is JSON, a list of {"name", "hash", "per_minute"}; `glassformer keys` writes it. A key itself is nowhere kept.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from glassformer.common.errors import ConfigError, why
from glassformer.common.files import write_text

MINUTE = 60.0  # seconds


@dataclass(frozen=True)
class Key:
    name: str
    hash: str
    per_minute: int = 0  # requests; 0: as many as they like


class Refusal(Exception):
    """A request that its key, or the want of one, does not allow."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def read(path: Path) -> list[Key]:
    """The keys of a file; a file that cannot be read lets nobody in."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(listed, list):
            raise TypeError("it holds no list")
        found = [Key(**one) for one in listed]
    except OSError as error:
        raise ConfigError(f"{path}: {why(error)}; make a key with `glassformer keys add {path} NAME`") from None
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{path} is no file of keys ({error}); make one with `glassformer keys add`") from None
    if not all(isinstance(one.hash, str) and isinstance(one.per_minute, int) for one in found):
        raise ConfigError(f"{path}: every key has a `name`, a `hash` and a whole number `per_minute`")
    return found


def add(path: Path, name: str, per_minute: int = 0) -> str:
    """Write a new key into the file, and give it: it is told this once."""
    known = read(path) if path.exists() else []
    if name in {one.name for one in known}:
        raise ConfigError(f"{path} has a key `{name}` already; remove it first, or choose another name")
    key = secrets.token_urlsafe(24)
    save(path, [*known, Key(name, hashed(key), per_minute)])
    return key


def remove(path: Path, name: str) -> None:
    known = read(path)
    left = [one for one in known if one.name != name]
    if len(left) == len(known):
        raise ConfigError(f"{path} has no key `{name}`; it has {', '.join(one.name for one in known) or 'none'}")
    save(path, left)


def save(path: Path, keys: list[Key]) -> None:
    write_text(path, json.dumps([asdict(one) for one in keys], indent=1) + "\n")


class Gate:
    """Lets requests through by their key, so many a minute each; a changed file is read again."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self.clock = path, clock
        self._stamp: tuple[int, int] | None = None
        self._keys: dict[str, Key] = {}
        self._seen: dict[str, deque[float]] = {}
        self._lock = threading.Lock()
        self._load()

    def _load(self) -> None:
        try:
            at = self.path.stat()
            stamp = (at.st_mtime_ns, at.st_size)
        except OSError:  # told by the reading of it
            stamp = None
        if stamp != self._stamp or stamp is None:
            self._keys = {one.hash: one for one in read(self.path)}
            self._stamp = stamp

    def check(self, key: str | None) -> str:
        """The name of a key that may pass."""
        if not key:
            raise Refusal(403, "Please contact the server operator to get an API key")
        with self._lock:
            try:
                self._load()
            except ConfigError:
                self._keys = {}
            found = self._keys.get(hashed(key))
            if found is None:
                raise Refusal(403, "Invalid API key")
            if found.per_minute:
                now, seen = self.clock(), self._seen.setdefault(found.hash, deque())
                while seen and seen[0] <= now - MINUTE:
                    seen.popleft()
                if len(seen) >= found.per_minute:
                    raise Refusal(429, f"Slowdown: {found.per_minute} per 1 minute")
                seen.append(now)
            return found.name
