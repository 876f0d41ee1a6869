"""A document translated, or a folder of them. Files appear whole, and a run that was stopped can be resumed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from glassformer.common.errors import ConfigError, DataError, InputError, why
from glassformer.common.files import atomic_write, remove_partial, try_lock, write_bytes
from glassformer.common.report import Report
from glassformer.pipelines.documents.formats import is_document, translate_bytes
from glassformer.pipelines.documents.segments import DocumentStats, SupportsTranslate

RECORDS = ".glassformer-translated.jsonl"


@dataclass
class FolderResult:
    """What happened to a folder's files; every file is in one of the lists, by its name in the folder."""

    translated: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # finished by an earlier run
    skipped: list[str] = field(default_factory=list)  # hidden, a link to a folder or to nothing, or not a file
    failed: dict[str, str] = field(default_factory=dict)  # with the reason
    stats: DocumentStats = field(default_factory=DocumentStats)


@dataclass(frozen=True)
class FileRecord:
    """A file of the folder, recorded before it is renamed into place. It is finished if it has these bytes."""

    name: str
    source: str  # digest of the bytes that were read
    output: str  # digest of the bytes that are written
    options: str
    before: str = ""  # digest of the file that was in its place


class FolderRun:
    """Makes the files of a folder, and records each. One run at a time holds the output folder."""

    def __init__(
        self, source: Path, output: Path, translator: SupportsTranslate, options: Mapping[str, object]
    ) -> None:
        self.source, self.output, self.translator = source, output, translator
        text = json.dumps({name: str(value) for name, value in options.items()}, sort_keys=True)
        self.options = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self.records: dict[str, FileRecord] = {}  # the last of each name
        self.result = FolderResult()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the output folder and read the records of earlier runs."""
        with (self.output / RECORDS).open("a+b") as self.file:
            if not try_lock(self.file):
                raise DataError(f"{self.output}: another run is writing to this folder; wait for its end")
            self.file.seek(0)
            for line in self.file.read().splitlines():
                try:
                    record = FileRecord(**json.loads(line))
                except (ValueError, TypeError):
                    continue  # a line cut off by a power failure: its file is made again
                self.records[record.name] = record
            self.file.write(b"\n")  # the next line must not continue one that was cut off
            yield

    def record(self, record: FileRecord) -> None:
        self.records[record.name] = record
        self.file.write(json.dumps(asdict(record)).encode("ascii") + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def make(self, file: Path, progress: Callable[[int, int], None]) -> None:
        """Translate or copy one file, unless it is finished."""
        path, target, name = self.source / file, self.output / file, file.as_posix()
        document = is_document(path)
        source, existing, last = file_digest(path), file_digest(target), self.records.get(name)
        options = self.options if document else "copied"
        if last is not None and existing and (last.source, last.options) == (source, options):
            if existing != last.before or existing == last.output:  # else it was recorded, but not put in place
                self.result.kept.append(name)
                return
        elif existing and (last is None or existing not in (last.output, last.before)):
            raise DataError(f"{target} was written or changed by someone else; move it away to have it made again")
        target.parent.mkdir(parents=True, exist_ok=True)
        if document:
            translation, stats = translate_bytes(path, read_document(path), self.translator, progress)
            self.record(FileRecord(name, source, hashlib.sha256(translation).hexdigest(), options, existing))
            write_bytes(target, translation)
            self.result.translated.append(name)
            self.result.stats.add(stats)
        else:
            self.record(FileRecord(name, source, source, options, existing))
            with path.open("rb") as original, atomic_write(target) as copy:
                shutil.copyfileobj(original, copy)
            self.result.copied.append(name)
        target.chmod(target.stat().st_mode | (path.stat().st_mode & 0o111))  # a script stays executable


def read_document(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {why(error)}") from None


def translate_folder(
    source: Path,
    output: Path,
    translator: SupportsTranslate,
    *,
    options: Mapping[str, object] | None = None,
    report: Report | None = None,
) -> FolderResult:
    """Translate the documents of a folder into another, and copy its other files there.

    Finished files are recorded in the output folder, and a later call resumes from there. It makes a file again if its
    source has changed, or one of the `options`, which name the translator and its settings. It never replaces a file
    that someone else has written or changed there.
    """
    check_folders(source, output)
    report = report or Report(quiet=True)
    run = FolderRun(source, output, translator, options or {})
    result = run.result
    try:
        output.mkdir(parents=True, exist_ok=True)
        with run.locked():
            names = list(find_files(source, output, result))
            for folder in {output / name.parent for name in names}:
                remove_partial(folder)
            for number, name in enumerate(names):
                label = f"{number} of {len(names)} files  {name}"
                report.show(label)
                try:
                    run.make(name, partial(show_progress, report, label))
                except (DataError, InputError) as error:
                    result.failed[name.as_posix()] = str(error)
                except OSError as error:
                    result.failed[name.as_posix()] = f"{error.filename or output / name}: {why(error)}"
    except OSError as error:
        raise DataError(f"{error.filename or output} cannot be written: {why(error)}") from None
    finally:
        report.clear()
    return result


def check_folders(source: Path, output: Path) -> None:
    if not source.is_dir():
        raise DataError(f"{source} is no folder")
    if output.exists() and not output.is_dir():
        raise ConfigError(f"--out {output} is a file; name a folder")
    if output.exists() and output.samefile(source):
        raise ConfigError(f"--out {output} is the folder itself; name another")


def find_files(source: Path, output: Path, result: FolderResult) -> Iterator[Path]:
    """The names of the files to make, in order, without hidden files and without the output folder."""

    def on_error(error: OSError) -> None:
        result.failed[os.path.relpath(error.filename, source)] = f"{error.filename}: {why(error)}"

    for place, folders, names in os.walk(source, onerror=on_error):
        here = Path(place)
        entered = []
        for name in sorted(folders):
            path = here / name
            if path.samefile(output):
                continue
            if name.startswith(".") or path.is_symlink():
                result.skipped.append(f"{path.relative_to(source).as_posix()}/")
            else:
                entered.append(name)
        folders[:] = entered
        for name in sorted(names):
            path = here / name
            if name.startswith(".") or not path.is_file():
                result.skipped.append(path.relative_to(source).as_posix())
            else:
                yield path.relative_to(source)


def file_digest(path: Path) -> str:
    """Empty if there is no file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def show_progress(report: Report, label: str, done: int, total: int) -> None:
    report.show(f"{label}  {done:,} of {total:,} texts")
