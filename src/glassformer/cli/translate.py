"""`glassformer translate`: sentences in, translations out."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, BinaryIO

import typer

from glassformer.errors import ConfigError, DataError

if TYPE_CHECKING:
    from glassformer.train import Report
    from glassformer.translator import Translation

BLOCK = 1 << 16  # bytes read at once, where so many are there; a slower writer's lines are taken as they come
FIRST, CHUNK = 32, 512  # lines translated together: few at first, so that something is soon to be seen
LONGEST = 10_000_000  # bytes of a line; more is no sentence, and would have to be held in memory

HELP = """Translate sentences, or a file or standard input line by line.

Every line gives one line, in order, and an empty line stays empty. With --nbest N > 1 every line gives N lines
"line number TAB rank TAB text". --scores puts the score and a TAB before the text. --json gives one object a line:
{"source": ..., "translations": [{"text": ..., "score": ...}]}. A line that is too long for the model is split at its
sentence ends, translated in parts and joined.
"""


def translate(
    model: Annotated[Path, typer.Argument(help="A folder that glassformer train has made, or a Marian folder.")],
    text: Annotated[list[str] | None, typer.Argument(help="Sentences; without any, lines of standard input.")] = None,
    input: Annotated[Path | None, typer.Option(help="Read lines of this file (gzip and xz too).")] = None,
    output: Annotated[Path | None, typer.Option(help="Write to this file, not to standard output.")] = None,
    beam: Annotated[int, typer.Option(min=1, help="Beam width; 1 is greedy.")] = 1,
    nbest: Annotated[int, typer.Option(min=1, help="Translations for each line, at most as many as the beam.")] = 1,
    length_penalty: Annotated[float, typer.Option(help="Score divided by length to this power.")] = 1.0,
    max_length: Annotated[
        int | None, typer.Option(min=8, help="Tokens read at once; a longer line is split. The model's limit if none.")
    ] = None,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Source tokens, beams counted, in a batch.")] = 4096,
    scores: Annotated[bool, typer.Option("--scores", help="Put each score before its text.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
) -> None:
    if text and input is not None:
        raise ConfigError("give either sentences or --input, not both")
    if nbest > beam:
        raise ConfigError(f"--nbest {nbest} needs a beam at least as wide: --beam {nbest}")
    if input is not None and output is not None and output.exists() and input.exists() and output.samefile(input):
        raise ConfigError(f"--output {output} is the input file itself; name another")
    try:
        with ExitStack() as stack:
            from glassformer.train import Report
            from glassformer.translator import Translator

            report = Report()
            reader = Reader(report)
            if text:
                # Bytes of an argument that are not UTF-8 come as lone surrogates.
                chunks = reader.read([given.encode("utf-8", "surrogateescape") for given in text])
            else:
                chunks = reader.read(blocks(stack.enter_context(open_input(input)), reader))
            translator = Translator.load(model, device)
            write = Writer(stack.enter_context(open_output(output)), output, nbest > 1, scores, as_json).write
            done, split = 0, 0
            interactive = not text and input is None and sys.stdin.isatty()
            for lines in chunks:
                found = translator.translate(
                    lines, beam, nbest, length_penalty, max_length, batch_tokens, progress=None
                )
                report.clear()
                write(lines, found, done)
                for number, best in enumerate(found, done + 1):
                    if best[0].parts > 1:
                        split += 1
                        if split == 1:
                            report.say(
                                f"line {number}: longer than the {translator.limit(max_length):,} tokens translated "
                                f"at once; split into {best[0].parts} parts"
                            )
                done += len(lines)
                if not interactive:
                    report.show(f"translated: {done:,} lines")
            report.clear()
            if split > 1:
                report.say(f"{split:,} lines in all were split")
    except BrokenPipeError:
        # The reader has gone, `head` for example; what is left in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


translate.__doc__ = HELP


def open_input(path: Path | None) -> BinaryIO:
    ...
