"""The output folder, and how a run that was stopped is resumed there.

There is no list of what is done: a part or a file exists or not. Each shard's part is written to another name and
renamed, so it appears whole; when all parts of a file exist they are joined, and the file appears whole in the same
way. The manifest is written before the first part, so that a folder never mixes the results of two jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from glassformer.common.errors import ConfigError, DataError, RunError
from glassformer.common.files import atomic_write, read_json, remove_partial, try_lock, write_bytes, write_json
from glassformer.deploy.bulk.formats import Format, Shard
from glassformer.deploy.bulk.sources import Source

WORK = ".glassformer-bulk"


class OutputFolder:
    """The parts of shards and the finished files; one run at a time writes to them."""

    def __init__(
        self, folder: Path, sources: Sequence[Source], shards: Sequence[Shard], format: Format, manifest: dict[str, Any]
    ) -> None:
        self.folder, self.work, self.format, self.manifest = folder, folder / WORK, format, manifest
        self.manifest_file, self.sources = self.work / "asked.json", sources
        self.parts = [[self._part(shard) for shard in shards if shard.source == i] for i in range(len(sources))]
        self.whole: set[int] = set()  # files that are finished

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder, and begin or resume the run in it."""
        if self._holds_anything() and not self.manifest_file.exists():
            raise ConfigError(
                f"{self.folder} holds files that are no translations of `glassformer bulk`; name a new folder"
            )
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work / "lock").open("ab") as lock:
            if not try_lock(lock):
                raise RunError(f"{self.folder}: another run is writing to this folder; wait for its end")
            self._resume()
            yield

    def _resume(self) -> None:
        """Check the manifest if there are results, which must not be mixed with others, and write it if not."""
        earlier = read_json(self.manifest_file, "remove the folder and begin again") or {}
        if self._holds_anything():
            self._compare(earlier)
        if earlier != self.manifest:
            write_json(self.manifest_file, self.manifest)
        for place in {self.work, *(self._file(source).parent for source in self.sources)}:
            remove_partial(place)
        self.whole = {i for i, source in enumerate(self.sources) if self._file(source).exists()}

    def _holds_anything(self) -> bool:
        paths = self.folder.iterdir() if self.folder.exists() else ()
        return any(path.name != WORK for path in paths) or any(self.work.glob("*.part"))

    def _compare(self, earlier: Mapping[str, Any]) -> None:
        """Raise if the earlier run had other options or another input."""
        before, now = earlier.get("options", {}), self.manifest["options"]
        for name in now:
            if before.get(name) != now[name]:
                option = name if name in ("glassformer", "weights") else "--" + name.replace("_", "-")
                raise ConfigError(
                    f"{self.folder} was begun with {option} {before.get(name)}, and now it is {option} {now[name]}; "
                    "give the command as it was, or name a new folder"
                )
        before, now = earlier.get("input", {}), self.manifest["input"]
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                change = "is new" if name not in before else "is gone" if name not in now else "has changed"
                raise DataError(
                    f"{name} {change} since {self.folder} was begun; give the input as it was, or name a new folder"
                )

    def is_done(self, shard: Shard) -> bool:
        return shard.source in self.whole or self._part(shard).exists()

    def put(self, shard: Shard, part: bytes) -> None:
        write_bytes(self._part(shard), part)

    def join(self) -> None:
        """Join the parts of each file that has all of them."""
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
