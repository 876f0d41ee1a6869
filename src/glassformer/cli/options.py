"""What commands have in common: their options, the model that is meant, lines in and lines out."""

from __future__ import annotations

import io
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TypeVar, cast

from typer import Option

from glassformer.common.errors import ConfigError, DataError, InputError, why
from glassformer.common.files import atomic_write, without_nan

if TYPE_CHECKING:
    from glassformer.common.report import Report
    from glassformer.pipelines.translator import Translation

Revision = Annotated[str | None, Option(help="Of a model of the hub: a branch, a tag or a commit.")]
Offline = Annotated[bool, Option("--offline", help="Fetch nothing; of the hub's models, take those in the cache.")]
Adapter = Annotated[
    Path | None,
    Option(help="Add what an adapter has learnt: a folder of a run with train.lora_rank on this very model."),
]
To = Annotated[str | None, Option(help="Of a model that knows several languages, or of the box: into which.")]
Source = Annotated[str | None, Option("--from", help="Of a model that reads several languages: from which.")]
Device = Annotated[str, Option(help="auto, cpu, cuda or cuda:N.")]
Precision = Annotated[str, Option(help="auto, fp32, bf16 or int8 (CPU).")]
LengthPenalty = Annotated[float, Option(help="Score divided by length to this power.")]
Rule = Annotated[str, Option(help="What counts as length: average, or gnmt for (5 + n) / 6.")]
RepetitionPenalty = Annotated[float, Option(help="Above 1: said tokens become less likely.")]
Temperature = Annotated[float | None, Option(help="With --sample: below 1 safer, above 1 wilder.")]
TopK = Annotated[int | None, Option(help="With --sample: draw from so many likeliest tokens.")]
TopP = Annotated[float | None, Option(help="With --sample: draw from this share of probability.")]
Seed = Annotated[int | None, Option(help="With --sample: the same seed draws the same.")]
# As models are called, and few texts are: and/or is none.
_HUB = re.compile(r"(?=.*/.*[-_0-9])[A-Za-z][\w.-]*/[A-Za-z0-9][\w.-]*")

T = TypeVar("T")

BLOCK = 1 << 16  # bytes read at once, where so many are there; a slower writer's lines are taken as they come
FIRST, CHUNK = 32, 512  # lines translated together: few at first, so that something is soon to be seen
TOLD = 10  # lines with something wrong that are named
LONGEST = 10_000_000  # bytes of a line; more is no sentence, and would have to be held in memory


def find_model(model: str, revision: str | None = None, offline: bool = False) -> str:
    """The folder of a model of the hub, which is fetched if it must be; what is no such name stays as it is."""
    from glassformer.weights.hub import locate

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        folder = str(locate(model, revision, offline))
    for one in caught:
        print(one.message, file=sys.stderr)
    return folder


def looks_like_hub(word: str) -> bool:
    """Whether a word among texts and files is meant as the name of a model."""
    from glassformer.pipelines.documents.formats import is_document
    from glassformer.weights.hub import hub_name

    if word.startswith("hf://"):
        return True
    return _HUB.fullmatch(word) is not None and hub_name(word) is not None and not is_document(Path(word))


def sampling_options(sample: bool, **options: Any) -> dict[str, Any]:
    """The options of drawing that were given, which go with --sample."""
    given = {name: value for name, value in options.items() if value is not None}
    if given and not sample:
        raise ConfigError(f"--{next(iter(given)).replace('_', '-')} says how to draw at random; add --sample")
    return given


def to_json(values: dict[str, Any], indent: int | None = None) -> str:
    """Values as JSON; numbers that JSON lacks, which a broken model can yield, are null."""
    return json.dumps(without_nan(values), ensure_ascii=False, indent=indent)


def row(number: int, source: str, best: list[Translation], ranked: bool, scores: bool, as_json: bool) -> str:
    """What a source line's translations are printed as, line ends included."""
    if as_json:
        return to_json({"source": source, "translations": [translation_fields(one) for one in best]}) + "\n"
    rows = []
    for rank, one in enumerate(best, 1):
        fields = [str(number), str(rank)] if ranked else []
        fields += [f"{one.score:.4f}"] if scores else []
        fields.append(one.text.replace("\r", " ").replace("\n", " "))
        if one.alignment is not None:
            fields.append(" ".join(f"{s}-{t}" for t, s in one.alignment))
        rows.append("\t".join(fields) + "\n")
    return "".join(rows)


def translation_fields(one: Translation) -> dict[str, Any]:
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
    number, warned = 0, False
    for chunk in chunks:
        lines = []
        for raw in chunk:
            number += 1
            raw = raw.removesuffix(b"\r")
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                line = raw.decode("utf-8", "replace")
                if not warned:
                    report.say(
                        f"line {number}: not UTF-8 (byte {error.start + 1} of the line is 0x{raw[error.start]:02x}); "
                        f"such bytes are read as \ufffd, here and in all lines after"
                    )
                warned = True
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


def line_by_line(texts: list[str], work: Callable[[list[str]], list[T]]) -> Iterator[tuple[str, T]]:
    """The given lines, each with what `work` makes of it; at the end, what is wrong with the others. What is printed of
    lines that came together is flushed together."""
    from glassformer.common.report import Report

    before, wrong = 0, list[str]()

    def answer(chunk: list[str], before: int) -> list[tuple[str, T]]:
        try:
            return list(zip(chunk, work(chunk), strict=True))
        except InputError as error:
            place = re.match(r"(?:texts|images)\[\d+\]", str(error))
            if place is None:
                raise
            if len(chunk) > 1:
                half = len(chunk) // 2
                return answer(chunk[:half], before) + answer(chunk[half:], before + half)
            wrong.append(f"line {before + 1}{str(error)[place.end() :]}")
            return []

    for chunk in given_lines(texts, Report()):
        yield from answer(chunk, before)
        sys.stdout.flush()
        before += len(chunk)
    if wrong:
        more = f"\nand {len(wrong) - TOLD:,} lines more" if len(wrong) > TOLD else ""
        raise InputError("\n".join(wrong[:TOLD]) + more)


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
