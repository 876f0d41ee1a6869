"""Lines in, lines out: how `glassformer translate` reads and writes."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from glassformer.common.errors import DataError, InputError, why
from glassformer.common.files import atomic_write, without_nan

if TYPE_CHECKING:
    from glassformer.common.report import Report
    from glassformer.pipelines.translator import Translation

T = TypeVar("T")

BLOCK = 1 << 16  # bytes read at once, where so many are there; a slower writer's lines are taken as they come
FIRST, CHUNK = 32, 512  # lines translated together: few at first, so that something is soon to be seen
LONGEST = 10_000_000  # bytes of a line; more is no sentence, and would have to be held in memory


def row(number: int, source: str, best: list[Translation], ranked: bool, scores: bool, as_json: bool) -> str:
    """What a source line's translations are printed as, line ends included."""
    if as_json:
        told = without_nan({"source": source, "translations": [shown(one) for one in best]})
        return json.dumps(told, ensure_ascii=False) + "\n"
    rows = []
    for rank, one in enumerate(best, 1):
        fields = [str(number), str(rank)] if ranked else []
        fields += [f"{one.score:.4f}"] if scores else []
        fields.append(one.text.replace("\r", " ").replace("\n", " "))
        if one.alignment is not None:
            fields.append(" ".join(f"{s}-{t}" for t, s in one.alignment))
        rows.append("\t".join(fields) + "\n")
    return "".join(rows)


def shown(one: Translation) -> dict[str, Any]:
    """A translation as JSON."""
    fields: dict[str, Any] = {"text": one.text, "score": one.score, "finished": one.finished}
    if one.alignment is not None:
        fields |= {"tokens": one.tokens, "source_tokens": one.source_tokens, "alignment": one.alignment}
    return fields


def read_raw(stream: io.BufferedReader, name: str) -> Iterator[list[bytes]]:
    """The lines of a stream in chunks: as many as are there already, but never more than CHUNK."""
    from glassformer.data.readers import explain_read_errors

    number, size, rest = 0, FIRST, b""
    try:
        with explain_read_errors(name, lambda: f" after line {number}"):
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
    finally:
        if stream is not sys.stdin.buffer:
            stream.close()
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


def arguments(text: str) -> list[bytes]:
    """The lines of an argument; bytes of it that are not UTF-8 come as lone surrogates."""
    return text.encode("utf-8", "surrogateescape").removesuffix(b"\n").split(b"\n")


def given_lines(texts: list[str], report: Report) -> Iterator[list[str]]:
    """Lines of the texts that a command is given, else of standard input, as many at a time as are there."""
    raw = [line for one in texts for line in arguments(one)]
    if not raw and sys.stdin.isatty():
        report.say("type lines; Ctrl-D ends it")
    return decoded([raw] if raw else read_raw(open_input(None), "standard input"), report)


def line_by_line(chunks: Iterable[list[str]], work: Callable[[list[str]], list[T]]) -> Iterator[list[tuple[str, T]]]:
    """Of each chunk the lines and what `work` makes of them; what is wrong with one is told by its number."""
    before = 0
    for chunk in chunks:
        try:
            made = work(chunk)
        except InputError as error:
            place = re.match(r"(?:texts|images)\[(\d+)\]", str(error))
            if place is None:
                raise
            raise InputError(f"line {before + int(place[1]) + 1}{str(error)[place.end() :]}") from None
        yield list(zip(chunk, made, strict=True))
        before += len(chunk)


def open_input(path: Path | None) -> io.BufferedReader:
    from glassformer.data.readers import open_text

    return cast(io.BufferedReader, sys.stdin.buffer if path is None else open_text(path))


@contextmanager
def open_output(path: Path | None, report: Report) -> Iterator[IO[bytes]]:
    """Standard output, or a file that is replaced at the end; what a failed run had written stays beside it."""
    try:
        if path is None:
            yield sys.stdout.buffer
            return
        with atomic_write(path) as file:
            try:
                yield file
            except BaseException:
                save_partial(Path(file.name), path, report)
                raise
    except BrokenPipeError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path} cannot be written: there is no folder {cast(Path, path).parent}") from None
    except OSError as error:
        raise DataError(f"{path or 'standard output'} cannot be written: {why(error)}") from None


def save_partial(unfinished: Path, path: Path, report: Report) -> None:
    """Give a file that is half written a name beside the one it was for, if there is anything in it."""
    if unfinished == path or not unfinished.stat().st_size:  # a device or a pipe is no file of ours
        return
    names = (path.with_name(f"{path.name}.partial{number or ''}") for number in count())
    free = next(name for name in names if not name.exists())
    unfinished.rename(free)
    report.say(f"what was translated before is in {free}")
