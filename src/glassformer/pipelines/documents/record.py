"""What a folder of translations was made of: its record, by which a run that was stopped goes on."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from glassformer.common.errors import DataError

NAME = ".glassformer-translated.jsonl"


@dataclass(frozen=True)
class Made:
    """A file of the folder. It is noted before it is put in place; only a file of these bytes is finished."""

    name: str
    source: str  # digests of what was read, and of what was written
    output: str
    options: str
    before: str = ""  # digest of what was at its place until then


class Record:
    """One line of JSON for each file made, the last one of a name counts. It is held by one run at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, Made] = {}

    def __enter__(self) -> Record:
        self.file = (self.folder / NAME).open("a+b")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise DataError(f"{self.folder}: another run is writing to this folder; wait for its end") from None
        self.file.seek(0)
        for line in self.file.read().splitlines():
            try:
                one = Made(**json.loads(line))
            except (ValueError, TypeError):
                continue  # a line that a power cut has torn: its file is made again
            self.made[one.name] = one
        self.file.write(b"\n")  # so that what comes now stands on a line of its own
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    def note(self, one: Made) -> None:
        self.made[one.name] = one
        self.file.write(json.dumps(asdict(one)).encode("ascii") + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def digest(path: Path) -> str:
    """Of a file's bytes; empty where there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def digest_of(options: Mapping[str, object]) -> str:
    told = json.dumps({name: str(value) for name, value in options.items()}, sort_keys=True)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
