"""The folder that the translations go to, and what a run that was stopped finds there.

Nothing is noted of what is done: it is there or it is not. A shard becomes a part, which appears whole, by being
renamed; when all parts of a file are there they are joined, and the file appears whole in the same way. What was asked
for is written down before the first of them, so that a folder never mixes two things.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from glassformer.common.errors import ConfigError, DataError, RunError
from glassformer.common.files import atomic_write, read_json, remove_partial, write_bytes, write_text
from glassformer.deploy.bulk.formats import Format, Shard
from glassformer.deploy.bulk.sources import Source

WORK = ".glassformer-bulk"
FLAGS = {"from": "--from", "to": "--to", "model": "--model", "column": "--column", "into": "--into", "beam": "--beam"}
FLAGS |= {"precision": "--precision", "shard_rows": "--shard-rows"}


class OutputFolder:
    """Held by one run at a time; `with` it, shards are `put` and asked for."""

    def __init__(
        self, folder: Path, sources: Sequence[Source], shards: Sequence[Shard], format: Format, asked: Mapping[str, Any]
    ) -> None:
        self.folder, self.work, self.format, self.asked = folder, folder / WORK, format, asked
        self.manifest, self.sources = self.work / "asked.json", sources
        self.parts = [[self._part(shard) for shard in shards if shard.source == i] for i in range(len(sources))]
        self.whole: set[int] = set()  # files that are finished

    def __enter__(self) -> OutputFolder:
        if self._holds_anything() and not self.manifest.exists():
            raise ConfigError(
                f"{self.folder} holds files that are no translations of `glassformer bulk`; name a new folder"
            )
        self.work.mkdir(parents=True, exist_ok=True)
        self.lock = (self.work / "lock").open("ab")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._begin()
        except BlockingIOError:
            self.lock.close()
            raise RunError(f"{self.folder}: another run is writing to this folder; wait for its end") from None
        except BaseException:
            self.lock.close()
            raise
        return self

    def _begin(self) -> None:
        """Where a run stands that goes on; where nothing is done yet, nothing can be mixed, and it begins anew."""
        told = read_json(self.manifest, "remove the folder and begin again") or {}
        if self._holds_anything():
            self._compare(told)
        if told != self.asked:
            write_text(self.manifest, json.dumps(self.asked, ensure_ascii=False, indent=1) + "\n")
        for place in {self.work, *(self._file(source).parent for source in self.sources)}:
            remove_partial(place)
        self.whole = {i for i, source in enumerate(self.sources) if self._file(source).exists()}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.close()

    def _holds_anything(self) -> bool:
        there = self.folder.iterdir() if self.folder.exists() else ()
        return any(path.name != WORK for path in there) or any(self.work.glob("*.part"))

    def _compare(self, told: Mapping[str, Any]) -> None:
        """Whether this is what the folder was begun with."""
        before, now = told.get("options", {}), self.asked["options"]
        for name in now:
            if before.get(name) != now[name]:
                option = FLAGS.get(name, name)
                raise ConfigError(
                    f"{self.folder} was begun with {option} {before.get(name)}, and now it is {option} {now[name]}; "
                    "give the command as it was, or name a new folder"
                )
        before, now = told.get("input", {}), self.asked["input"]
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                what = "is new" if name not in before else "is gone" if name not in now else "has changed"
                raise DataError(
                    f"{name} {what} since {self.folder} was begun; give the input as it was, or name a new folder"
                )

    def is_done(self, shard: Shard) -> bool:
        return shard.source in self.whole or self._part(shard).exists()

    def put(self, shard: Shard, made: bytes) -> None:
        write_bytes(self._part(shard), made)

    def join(self) -> None:
        """Put together the files whose parts are all there."""
        for i, source in enumerate(self.sources):
            if i not in self.whole and all(part.exists() for part in self.parts[i]):
                target = self._file(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                with atomic_write(target) as file:
                    self.format.join(source, self.parts[i], file)
                self.whole.add(i)
            if i in self.whole:
                for part in self.parts[i]:
                    part.unlink(missing_ok=True)

    def _part(self, shard: Shard) -> Path:
        return self.work / f"{shard.number:08d}.part"

    def _file(self, source: Source) -> Path:
        return self.folder / source.name
