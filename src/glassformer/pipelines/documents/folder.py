"""A file translated, or a folder of them: whole files only, and none twice."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glassformer.common.errors import ConfigError, DataError, InputError, why
from glassformer.common.files import atomic_write, remove_partial, write_bytes
from glassformer.common.report import Report
from glassformer.pipelines.documents.formats import is_document, translate_bytes
from glassformer.pipelines.documents.passage import Tally, TextTranslating
from glassformer.pipelines.documents.record import Made, Record, digest, digest_of

BAR = 20  # letters


@dataclass
class Outcome:
    """What became of a folder's files; every file is in one of the lists, by its name in the folder."""

    translated: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # finished by an earlier run
    skipped: list[str] = field(default_factory=list)  # hidden, a link to a folder or to nothing, or no file
    failed: dict[str, str] = field(default_factory=dict)  # with the reason
    tally: Tally = field(default_factory=Tally)


def translate_file(
    path: Path, translator: TextTranslating, output: Path, progress: Callable[[int, int], None] | None = None
) -> Tally:
    """Write the translation of a document to `output`, which appears whole or not at all."""
    if output.exists() and output.samefile(path):
        raise ConfigError(f"--output {output} is the document itself; name another")
    made, tally = translate_bytes(path, read(path), translator, progress)
    try:
        write_bytes(output, made)
    except FileNotFoundError:
        raise DataError(f"{output} cannot be written: there is no folder {output.parent}") from None
    except OSError as error:
        raise DataError(f"{output} cannot be written: {why(error)}") from None
    return tally


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {why(error)}") from None


def translate_folder(
    source: Path,
    output: Path,
    translator: TextTranslating,
    *,
    options: Mapping[str, object] | None = None,
    report: Report | None = None,
) -> Outcome:
    """Translate the documents of a folder into another, and copy its other files there.

    What is finished is noted in the output folder. A later call goes on from there: a file is made again where its
    source or one of the `options`, which name what translates and how, has changed. A file that someone else has
    written or changed there is never replaced.
    """
    check_folders(source, output)
    report = report or Report(quiet=True)
    outcome, key = Outcome(), digest_of(options or {})
    try:
        output.mkdir(parents=True, exist_ok=True)
        with Record(output) as record:
            names = list(names_of(source, output, outcome))
            for folder in {output / name.parent for name in names}:
                remove_partial(folder)
            for number, name in enumerate(names):
                told = f"{bar(number, len(names))} {number} of {len(names)} files  {name}"
                report.show(told)
                try:
                    make(source, output, name, translator, record, key, outcome, shown(report, told))
                except (DataError, InputError) as error:
                    outcome.failed[name.as_posix()] = str(error)
                except OSError as error:
                    outcome.failed[name.as_posix()] = f"{error.filename or output / name}: {why(error)}"
    except OSError as error:
        raise DataError(f"{error.filename or output} cannot be written: {why(error)}") from None
    finally:
        report.clear()
    return outcome


def check_folders(source: Path, output: Path) -> None:
    if not source.is_dir():
        raise DataError(f"{source} is no folder")
    if output.exists() and not output.is_dir():
        raise ConfigError(f"--out {output} is a file; name a folder")
    if output.exists() and output.samefile(source):
        raise ConfigError(f"--out {output} is the folder itself; name another")


def names_of(source: Path, output: Path, outcome: Outcome) -> Iterator[Path]:
    """The names of the files to make, in order. What is hidden is left out, and so is the output folder."""

    def unread(error: OSError) -> None:
        outcome.failed[os.path.relpath(error.filename, source)] = f"{error.filename}: {why(error)}"

    for place, folders, names in os.walk(source, onerror=unread):
        here = Path(place)
        going = []
        for name in sorted(folders):
            path = here / name
            if path.samefile(output):
                continue
            if name.startswith(".") or path.is_symlink():
                outcome.skipped.append(f"{path.relative_to(source).as_posix()}/")
            else:
                going.append(name)
        folders[:] = going
        for name in sorted(names):
            path = here / name
            if name.startswith(".") or not path.is_file():
                outcome.skipped.append(path.relative_to(source).as_posix())
            else:
                yield path.relative_to(source)


def make(
    source: Path,
    output: Path,
    name: Path,
    translator: TextTranslating,
    record: Record,
    key: str,
    outcome: Outcome,
    progress: Callable[[int, int], None],
) -> None:
    """One file of the folder, unless it is there."""
    path, target, told = source / name, output / name, name.as_posix()
    document = is_document(path)
    read_now, there, last = digest(path), digest(target), record.made.get(told)
    key = key if document else "copied"
    if last is not None and there and (last.source, last.options) == (read_now, key):
        if there != last.before or there == last.output:  # else it was noted, but not yet put in place
            outcome.kept.append(told)
            return
    elif there and (last is None or there not in (last.output, last.before)):
        raise DataError(f"{target} was written or changed by someone else; move it away to have it made again")
    target.parent.mkdir(parents=True, exist_ok=True)
    if document:
        made, tally = translate_bytes(path, read(path), translator, progress)
        record.note(Made(told, read_now, hashlib.sha256(made).hexdigest(), key, there))
        write_bytes(target, made)
        outcome.translated.append(told)
        outcome.tally.add(tally)
    else:
        record.note(Made(told, read_now, read_now, key, there))
        with path.open("rb") as original, atomic_write(target) as file:
            shutil.copyfileobj(original, file)
        outcome.copied.append(told)
    target.chmod(target.stat().st_mode | (path.stat().st_mode & 0o111))  # a script stays one


def shown(report: Report, told: str) -> Callable[[int, int], None]:
    return lambda done, count: report.show(f"{told}  {done:,} of {count:,} texts")


def bar(done: int, count: int) -> str:
    filled = BAR * done // max(1, count)
    return "█" * filled + "░" * (BAR - filled)
