"""`gf.export`: written beside, checked, and only then given its name."""

from __future__ import annotations

import hashlib
import platform
import secrets
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from glassformer.common.arguments import checked
from glassformer.common.errors import GlassformerError, InputError, check_choice, check_names, check_whole, why
from glassformer.common.files import PARTIAL, flush_folder, read_json, without_nan, write_json
from glassformer.common.report import Report
from glassformer.common.version import __version__
from glassformer.deploy.export.formats import CheckFailed, Format, Progress, load_format
from glassformer.deploy.export.inputs import LoadedModel, Sample, choose_sample, load_for_export
from glassformer.model import Model
from glassformer.pipelines.translator import Translator

REPORT = "report.json"
KIND = "glassformer export"


@dataclass(frozen=True)
class Export:
    """What `gf.export` has made: the folder, what report.json in it says, and where an earlier folder was put."""

    folder: Path
    report: dict[str, Any]
    aside: Path | None = None

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file["bytes"] for file in self.report["files"].values())


@checked
def export(
    model: Model | Translator | str | Path,
    to: str,
    folder: str | Path,
    *,
    language: str | None = None,
    check: str | Path | None = None,
    sentences: int | None = None,
    force: bool = False,
    report: Report | None = None,
    **options: Any,
) -> Export:
    """Write a model for another system, and check it there: both translate the same sentences, and must agree.

        gf.export("runs/demo", "ctranslate2", "demo-ct2", quantization="int8")

    `model` is a folder that glassformer has trained, a name of the box such as "en-de", a local Hugging Face folder, a
    `Translator` or a model; `to` a format, whose own options are given by name. A model that goes several ways is told
    into which `language`. The sentences are those of the file `check`, else the model's own text, else random tokens:
    as many as `sentences`, or 200. What was compared, and the figures, are in report.json beside what was written.

    The folder gets its name only once the check has passed. One that is there and not empty is left alone; with
    `force`, an earlier export is replaced, and anything else moved aside.
    """
    form = load_format(to)
    check_names(options, form.options)
    for name, value in options.items():
        if value is not None:
            check_choice(name, value, form.options[name])
    if sentences is not None:
        check_whole("sentences", sentences, 1, "more are a harder check")
    folder, report = Path(folder), report or Report(quiet=True)
    check_place(folder, force)
    report.show("loading the model")
    loaded = load_for_export(model, language)
    loaded = replace(loaded, stored=options.get("quantization") or loaded.stored, family=options.get("family"))
    form.refuse(loaded)
    sample = choose_sample(loaded, None if check is None else Path(check), sentences)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(PARTIAL.format(secrets.token_hex(8)))
    try:
        partial.mkdir()
        report.show(f"writing {to}")
        form.write(loaded, partial)
        figures = run_check(form, loaded, partial, sample, lambda text: report.show(f"checking, {text}"))
        report.clear()
        told = {
            "kind": KIND,
            "to": to,
            "model": loaded.name,
            "options": {name: options.get(name) for name in form.options},
            "language": loaded.language,
            "parameters": sum(parameter.numel() for parameter in loaded.model.parameters()),
            "config": loaded.model.config.to_dict(),
            "compared": sample.origin,
            "figures": without_nan(figures),
            "files": files_of(partial),
            "versions": {"glassformer": __version__, "torch": torch.__version__, **form.versions()},
            "machine": platform.machine(),
        }
        write_json(partial / REPORT, told)
        aside = give_name(partial, folder, force)
    except OSError as error:
        raise GlassformerError(f"{error.filename or folder} cannot be written: {why(error)}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Export(folder, told, aside)


def run_check(form: Format, loaded: LoadedModel, folder: Path, sample: Sample, progress: Progress) -> dict[str, Any]:
    """The figures of the check; that the other system cannot run what was written is a failure of it too."""
    try:
        return form.check(loaded, folder, sample, progress)
    except GlassformerError:
        raise
    except Exception as error:  # whatever it is, what was written does not count
        raise CheckFailed(
            f"{form.name} cannot run what was written, which was taken away ({type(error).__name__}: {error!s:.300}). "
            f"This is a fault of the export; please report it, with the model's config.json"
        ) from error


def check_place(folder: Path, force: bool) -> None:
    """Refuse, before any work, a place that would have to be refused after it."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError(f"{folder} is there and no folder; name a folder that is not there yet")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise InputError(
            f"{folder} is there and not empty; name another, or give force=True: an earlier export is then replaced, "
            f"and anything else moved aside"
        )


def give_name(partial: Path, folder: Path, force: bool) -> Path | None:
    """Put what was written in its place; what stood there is deleted only if we wrote all of it, else moved aside."""
    check_place(folder, force)  # again: the check may have taken a while
    old, ours = None, is_export(folder)
    if folder.is_dir() and any(folder.iterdir()):
        names = (folder.with_name(f"{folder.name}.before{'' if n == 1 else f'-{n}'}") for n in range(1, 10_000))
        old = folder.rename(next(name for name in names if not name.exists()))
    partial.rename(folder)
    flush_folder(folder.parent)
    if old is None or not ours:
        return old
    shutil.rmtree(old)
    return None


def is_export(folder: Path) -> bool:
    """Whether a folder holds an export of ours, as it was written, and nothing else."""
    try:
        told = read_json(folder / REPORT)
    except GlassformerError:
        return False
    if told is None or told.get("kind") != KIND or not isinstance(told.get("files"), dict):
        return False
    return bool(files_of(folder) == told["files"])


def files_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Every file of an export but its report: how long it is, and a sum to know it by."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        found[path.relative_to(folder).as_posix()] = {"bytes": path.stat().st_size, "sha256": digest}
    found.pop(REPORT, None)
    return found
