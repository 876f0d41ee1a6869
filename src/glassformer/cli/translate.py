"""`glassformer translate`: sentences in, translations out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

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
    lines = iter(text) if text else (line.rstrip("\n") for line in sys.stdin)
    while chunk := list(islice(lines, CHUNK)):
        for best in translator.translate(chunk, beam=beam):
            print(best[0].text, flush=True)
