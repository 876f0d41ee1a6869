"""API keys: a file of names, hashes and rate limits.

The file is JSON, a list of {"name", "hash", "per_minute"}; `glassformer keys` writes it. The key itself is not stored.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import logging
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from glassformer.common.errors import ConfigError, why
from glassformer.common.files import locked, write_text
from glassformer.deploy.server.errors import RequestError

MINUTE = 60.0  # seconds
MAX_WRONG = 10  # wrong keys a minute from one network
MAX_PROVEN = 10_000  # good keys, each with a network that it came from


@dataclass(frozen=True)
class Key:
    name: str
    hash: str
    per_minute: int = 0  # requests; 0: no limit


class AccessDenied(RequestError):
    """A missing or wrong key, or one that is used too often."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, "key", message)
        if status == 429:
            self.headers = {"Retry-After": f"{MINUTE:.0f}"}


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def read_keys(path: Path) -> list[Key]:
    """The keys of a file. An unreadable file is an error, so that it admits no one."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(listed, list):
            raise TypeError("it holds no list")
        found = [Key(**one) for one in listed]
    except OSError as error:
        raise ConfigError(f"{path}: {why(error)}; make a key with `glassformer keys add {path} NAME`") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path} is no file of keys ({error}); make one with `glassformer keys add`") from None
    if not all({type(one.name), type(one.hash)} == {str} and isinstance(one.per_minute, int) for one in found):
        raise ConfigError(f"{path}: every key has a `name`, a `hash` and a whole number `per_minute`")
    return found


def add_key(path: Path, name: str, per_minute: int = 0) -> str:
    """Add a new key to the file, and return it; only its hash is stored."""
    with locked(path):
        known = read_keys(path) if path.exists() else []
        if name in {one.name for one in known}:
            raise ConfigError(f"{path} has a key `{name}` already; remove it first, or choose another name")
        key = secrets.token_urlsafe(24)
        save_keys(path, [*known, Key(name, hash_key(key), per_minute)])
    return key


def remove_key(path: Path, name: str) -> None:
    with locked(path):
        known = read_keys(path)
        left = [one for one in known if one.name != name]
        if len(left) == len(known):
            raise ConfigError(f"{path} has no key `{name}`; it has {', '.join(one.name for one in known) or 'none'}")
        save_keys(path, left)


def save_keys(path: Path, keys: list[Key]) -> None:
    write_text(path, json.dumps([asdict(one) for one in keys], indent=1) + "\n")


def network(host: str) -> str:
    """What one client commands: an address, or the 64 bits that begin one of IPv6."""
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    return str(address.ipv4_mapped or ipaddress.ip_network((address.packed[:8] + bytes(8), 64)))


class ApiKeys:
    """Checks API keys and their rate limits; reads the file again when it changes, and keeps the last keys where it
    cannot. A network that has sent many wrong keys waits, but not with a key that was good from there before."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self.clock = path, clock
        self._stamp: tuple[int, ...] | None = None
        self._problem = ""
        self._keys: dict[str, Key] = {}
        self._seen: dict[str, deque[float]] = {}
        self._minute, self._wrong = clock(), Counter[str]()  # wrong keys of each network since then
        self._proven = set[tuple[str, str]]()  # network and hash
        self._lock = threading.Lock()
        self._load()

    def _load(self) -> None:
        status = self.path.stat() if self.path.exists() else None
        stamp = status and (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp is None or stamp != self._stamp:
            if self._stamp and status and not self.path.is_file():
                raise ConfigError(f"{self.path} is a pipe, device or folder, read only at the start")  # may never end
            self._keys = {one.hash: one for one in read_keys(self.path)}
            self._stamp = stamp

    def _reload(self) -> None:
        try:
            self._load()
            self._problem = ""
        except (ConfigError, OSError) as error:
            if str(error) != self._problem:
                logging.getLogger("uvicorn.error").warning("%s; the keys that were read before stay valid", error)
            self._problem = str(error)

    def check(self, key: str | None, host: str = "", count: bool = True) -> str:
        """The name of a valid key that is within its rate limit, to which it counts."""
        if not key:
            raise AccessDenied(403, "Please contact the server operator to get an API key")
        place = network(host), hash_key(key)
        with self._lock:
            self._reload()
            now, found = self.clock(), self._keys.get(place[1])
            if now >= self._minute + MINUTE:
                self._minute, self._wrong = now, Counter()
            if self._wrong[place[0]] >= MAX_WRONG and (found is None or place not in self._proven):
                raise AccessDenied(429, f"Slowdown: {MAX_WRONG} wrong keys per 1 minute")
            if found is None:
                self._wrong[place[0]] += 1
                raise AccessDenied(403, "Invalid API key")
            if len(self._proven) > MAX_PROVEN:
                self._proven.clear()
            self._proven.add(place)
            if found.per_minute and count:
                seen = self._seen.setdefault(found.hash, deque())
                while seen and seen[0] <= now - MINUTE:
                    seen.popleft()
                if len(seen) >= found.per_minute:
                    raise AccessDenied(429, f"Slowdown: {found.per_minute} per 1 minute")
                seen.append(now)
            return found.name
