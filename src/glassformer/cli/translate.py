"""`glassformer translate`: sentences in, translations out."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, cast

import typer

from glassformer.errors import ConfigError, DataError

if TYPE_CHECKING:
    from glassformer.train import Report
    from glassformer.translator import Translation

BLOCK = 1 << 16  # bytes read at once, where so many are there; a slower writer's lines are taken as they come
FIRST, CHUNK = 32, 512  # lines translated together: few at first, so that something is soon to be seen
LONGEST = 10_000_000  # bytes of a line; more is no sentence, and would have to be held in memory


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
    """Translate sentences, or a file or standard input line by line.

    Every line gives one line, in order, and an empty line stays empty. With --nbest N above 1 every line gives N lines:
    line number, rank and text with a TAB between. --scores puts the score and a TAB before the text. --json gives one
    object a line: {"source": ..., "translations": [{"text": ..., "score": ...}]}.

    A line too long for the model is split at its sentence ends, translated in parts and joined.
    """
    if text and input is not None:
        raise ConfigError("give either sentences or --input, not both")
    if nbest > beam:
        raise ConfigError(f"--nbest {nbest} needs a beam at least as wide: --beam {nbest}")
    if input is not None and output is not None and input.exists() and output.exists() and output.samefile(input):
        raise ConfigError(f"--output {output} is the input file itself; name another")
    try:
        from glassformer.train import Report
        from glassformer.translator import Translator

        report = Report()
        # Bytes of an argument that are not UTF-8 come as lone surrogates.
        given = [[one.encode("utf-8", "surrogateescape") for one in text or []]]
        lines = decoded(given if text else read_raw(open_input(input), str(input or "standard input")), report)
        translator = Translator.load(model, device)
        done = split = 0
        sink = open_output(output)
        try:
            for chunk in lines:
                found = translator.translate(chunk, beam, nbest, length_penalty, max_length, batch_tokens)
                report.clear()
                for number, (source, best) in enumerate(zip(chunk, found, strict=True), done + 1):
                    emit(sink, row(number, source, best, nbest > 1, scores, as_json))
                    if best[0].parts > 1:
                        split += 1
                        if split == 1:
                            limit = f"the {translator.limit(max_length):,} tokens translated at once"
                            report.say(f"line {number}: longer than {limit}; split into {best[0].parts} parts")
                emit(sink, "", flush=True)
                done += len(chunk)
                if not text and (input is not None or not sys.stdin.isatty()):
                    report.show(f"translated: {done:,} lines")
        finally:
            report.clear()
            if output is not None:
                sink.close()
        if split > 1:
            report.say(f"{split:,} lines were split")
    except BrokenPipeError:
        # The reader has gone, `head` for example; what is left in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def row(number: int, source: str, best: list[Translation], ranked: bool, scores: bool, as_json: bool) -> str:
    """What a source line's translations are printed as, line ends included."""
    if as_json:
        shown = [{"text": one.text, "score": one.score if math.isfinite(one.score) else None} for one in best]
        return json.dumps({"source": source, "translations": shown}, ensure_ascii=False) + "\n"
    rows = []
    for rank, one in enumerate(best, 1):
        fields = [str(number), str(rank)] if ranked else []
        fields += [f"{one.score:.4f}"] if scores else []
        rows.append("\t".join([*fields, one.text.replace("\r", " ").replace("\n", " ")]) + "\n")
    return "".join(rows)


def read_raw(stream: io.BufferedReader, name: str) -> Iterator[list[bytes]]:
    """The lines of a stream in chunks: as many as are there already, but never more than CHUNK."""
    import gzip
    import lzma
    import zlib

    number, size, rest = 0, FIRST, b""
    try:
        while block := stream.read1(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            while lines and len(lines[0]) <= LONGEST:  # only the first can have begun in an earlier block
                yield lines[:size]
                number += len(lines[:size])
                lines, size = lines[size:], CHUNK
            if lines or len(rest) > LONGEST:
                raise DataError(
                    f"{name}, line {number + 1}: longer than {LONGEST:,} bytes, the limit for a line; "
                    f"is it text? Break it into lines; the {number:,} lines before it are translated"
                )
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataError(f"{name}: the compressed file is damaged after line {number} ({error})") from None
    except OSError as error:
        raise DataError(f"{name}: reading failed after line {number}: {error.strerror or error}") from None
    if rest:
        yield [rest]


def decoded(chunks: Iterable[list[bytes]], report: Report) -> Iterator[list[str]]:
    """Lines as text; the first that is not UTF-8 is told, and in all of them the wrong bytes are replaced."""
    number, told = 0, False
    for chunk in chunks:
        lines = []
        for raw in chunk:
            number += 1
            raw = raw.removesuffix(b"\r")
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                line = raw.decode("utf-8", "replace")
                if not told:
                    report.say(
                        f"line {number}: not UTF-8 (byte {error.start + 1} of the line is 0x{raw[error.start]:02x}); "
                        f"such bytes are read as \ufffd, here and in all lines after"
                    )
                told = True
            lines.append(line.removeprefix("\ufeff") if number == 1 else line)
        yield lines


def open_input(path: Path | None) -> io.BufferedReader:
    from glassformer.text.lines import _open

    return cast(io.BufferedReader, sys.stdin.buffer if path is None else _open(path))


def open_output(path: Path | None) -> IO[bytes]:
    if path is None:
        return sys.stdout.buffer
    try:
        return path.open("wb")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from None


def emit(sink: IO[bytes], text: str, flush: bool = False) -> None:
    try:
        sink.write(text.encode("utf-8", "replace"))
        if flush:
            sink.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"the translations cannot be written: {error.strerror or error}") from None
