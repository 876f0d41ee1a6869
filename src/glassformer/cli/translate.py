"""`glassformer translate`: sentences in, translations out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from glassformer.errors import DataError

CHUNK = 512  # lines read before they are translated together


def translate(
    model: Annotated[Path, typer.Argument(help="A folder that glassformer train has made.")],
    text: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines of standard input.")] = None,
    beam: Annotated[int, typer.Option(min=1, help="Beam width; 1 is greedy.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Translate sentences, or standard input line by line."""
    from itertools import islice

    from glassformer.translator import Translator

    translator = Translator.load(model, device)
    lines = iter(text) if text else standard_input()
    while chunk := list(islice(lines, CHUNK)):
        for best in translator.translate(chunk, beam=beam):
            print(best[0].text, flush=True)


def standard_input() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise DataError(
                f"standard input, line {number}: not UTF-8 (byte {error.start + 1} of the line is "
                f"0x{line[error.start]:02x}); convert it with `iconv -f ENCODING -t UTF-8`"
            ) from None
