"""`glassformer trace`: every tensor between a sentence and its translation."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from glassformer.errors import GlassformerError


class Language(StrEnum):
    en = "en"
    zh = "zh"


def trace(
    lang: Annotated[Language, typer.Option("--lang", help="Language of the explanations.")] = Language.en,
    name: Annotated[
        str | None, typer.Option("--name", metavar="PATTERN", help="Show only values so named, e.g. '*.pattern'.")
    ] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the values as JSON instead; - for stdout.")
    ] = None,
) -> None:
    """Follow one tiny batch through a Transformer by hand: every name, shape, formula and value."""
    from glassformer.explain.worked import worked_example

    example = worked_example()
    if json_file is not None:
        write(json_file, json.dumps(example.to_dict(name or "*"), ensure_ascii=False, allow_nan=False) + "\n")
        return

    from rich.console import Console

    from glassformer.explain.worked.tell import show, tell

    console = Console()
    if name is not None:
        show(example, example.select(name), console)
    else:
        tell(example, lang.value, console)


def write(file: str, content: str) -> None:
    if file == "-":
        sys.stdout.write(content)
        return
    try:
        Path(file).write_text(content, encoding="utf-8")
    except OSError as error:
        raise GlassformerError(
            f"cannot write `{file}`: {error.strerror}; give --json a file in a folder that exists"
        ) from error
