"""Documents for `glassformer translate`: which files go where, and what is told of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from glassformer.common.errors import ConfigError, DataError

if TYPE_CHECKING:
    from glassformer.common.report import Report
    from glassformer.pipelines.documents import Outcome
    from glassformer.pipelines.documents.passage import Tally, TextTranslating

TOLD = 10  # files that failed, or were left out, told by name


def check_files(paths: list[Path], output: Path | None, out: Path | None) -> None:
    """Whether it is clear what goes where; asked before a model is loaded."""
    from glassformer.pipelines.documents.folder import check_folders
    from glassformer.pipelines.documents.formats import check_kind

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise ConfigError(f"{folders[0]} is a folder; give one folder alone, or files")
    if output is not None and out is not None:
        raise ConfigError("give either --output, a file, or --out, a folder")
    if folders and out is None:
        raise ConfigError(f"{folders[0]} is a folder; name the folder to write to with --out")
    if folders and out is not None:
        check_folders(folders[0], out)
        return
    if len(paths) > 1 and out is None:
        raise ConfigError(f"{len(paths)} files; name the folder to write them to with --out")
    if output is not None and output.is_dir():
        raise ConfigError(f"--output {output} is a folder; name a file, or give --out {output}")
    for path in paths:
        check_kind(path)
        target = output if out is None else out / path.name
        if target is not None and target.exists() and target.samefile(path):
            raise ConfigError(f"{target} is the document itself; name another place")
        if out is not None and target is not None and target.exists():
            raise ConfigError(f"{target} is there already; move it away, or name another folder with --out")
    names = [path.name for path in paths]
    for path in paths:
        if names.count(path.name) > 1:
            raise ConfigError(f"{path}: another of the files is called {path.name} too; translate them one by one")


def translate_files(
    paths: list[Path],
    translator: TextTranslating,
    output: Path | None,
    out: Path | None,
    report: Report,
    **options: object,
) -> None:
    """Translate one document to `output` or standard output, or several, or a folder of them, into the folder `out`.

    The `options` name what translates and how: files of a folder that were made with others are made again.
    """
    from glassformer.pipelines.documents import translate_bytes, translate_file, translate_folder
    from glassformer.pipelines.documents.folder import read, shown

    check_files(paths, output, out)
    if paths[0].is_dir():
        assert out is not None
        tell_folder(translate_folder(paths[0], out, translator, options=options, report=report), report)
        return
    if out is not None:
        make_folder(out)
    for path in paths:
        progress = shown(report, str(path))
        target = output if out is None else out / path.name
        if target is None:
            made, tally = translate_bytes(path, read(path), translator, progress)
            report.clear()
            sys.stdout.buffer.write(made)
            sys.stdout.buffer.flush()
        else:
            tally = translate_file(path, translator, target, progress)
            report.say(f"{path} → {target}")
        tell_passages(tally, report)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} cannot be made: {error.strerror}") from None


def tell_folder(outcome: Outcome, report: Report) -> None:
    """What became of the files; an error at the end where some failed."""
    counts = {
        "translated": len(outcome.translated),
        "copied": len(outcome.copied),
        "there from an earlier run": len(outcome.kept),
    }
    report.say(", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "no files")
    if outcome.skipped:
        report.say(f"left out (hidden, or a link that leads to no file): {some(outcome.skipped)}")
    tell_passages(outcome.tally, report)
    for reason in [*outcome.failed.values()][:TOLD]:
        report.say(reason)
    if outcome.failed:
        count = len(outcome.failed)
        files = "1 file" if count == 1 else f"{count:,} files"
        raise DataError(f"{files} could not be made: {some([*outcome.failed])}; mend them and give the command again")


def tell_passages(tally: Tally, report: Report) -> None:
    if tally.apart:
        report.say(f"{tally.apart:,} of {tally.passages:,} passages were translated in pieces, to keep their markup")
    if tally.left:
        report.say(f"{tally.left:,} of {tally.passages:,} passages are left, in part or whole, as they were")


def some(names: list[str]) -> str:
    more = f" and {len(names) - TOLD:,} more" if len(names) > TOLD else ""
    return ", ".join(names[:TOLD]) + more
