"""`glassformer translate`: sentences in, translations out."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from glassformer.errors import ConfigError, DataError, why
from glassformer.files import finite, replacing

if TYPE_CHECKING:
    from glassformer.report import Report
    from glassformer.translation import Translation

BLOCK = 1 << 16  # bytes read at once, where so many are there; a slower writer's lines are taken as they come
FIRST, CHUNK = 32, 512  # lines translated together: few at first, so that something is soon to be seen
COUNTED = 10_000  # words that training never met; of more, the rest is not counted
LONGEST = 10_000_000  # bytes of a line; more is no sentence, and would have to be held in memory


def translate(
    model: Annotated[Path, typer.Argument(help="A folder that glassformer train has made, or a Marian folder.")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Sentences, or lines of them; without any, standard input.")
    ] = None,
    input: Annotated[Path | None, typer.Option(help="Read lines of this file (gzip and xz too).")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write to this file, which appears when all is done, not to standard output.")
    ] = None,
    beam: Annotated[int, typer.Option(help="Beam width; 1 is greedy.")] = 1,
    nbest: Annotated[int, typer.Option(help="Translations for each line, at most as many as the beam.")] = 1,
    length_penalty: Annotated[float, typer.Option(help="Score divided by length to this power.")] = 1.0,
    length_rule: Annotated[
        str, typer.Option(help="What counts as length: average, or gnmt for (5 + n) / 6.")
    ] = "average",
    prefix: Annotated[str, typer.Option(help="Begin every translation with this text.")] = "",
    repetition_penalty: Annotated[float, typer.Option(help="Above 1: said tokens become less likely.")] = 1.0,
    no_repeat_ngram: Annotated[
        int, typer.Option(help="Let no so many tokens in a row come twice, unless --prefix does; 0: they may.")
    ] = 0,
    sample: Annotated[bool, typer.Option("--sample", help="Draw translations at random.")] = False,
    temperature: Annotated[float | None, typer.Option(help="With --sample: below 1 safer, above 1 wilder.")] = None,
    top_k: Annotated[int | None, typer.Option(help="With --sample: draw from so many likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="With --sample: draw from this share of probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="With --sample: the same seed draws the same.")] = None,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens read at once; a longer line is split. The model's limit if none.")
    ] = None,
    batch_tokens: Annotated[int, typer.Option(help="Source tokens, beams counted, in a batch.")] = 4096,
    scores: Annotated[bool, typer.Option("--scores", help="Put each score before its text.")] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="After each text, its tokens' partners in the source.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    precision: Annotated[str, typer.Option(help="auto, fp32, bf16 or int8 (CPU).")] = "auto",
) -> None:
    """Translate sentences, or a file or standard input line by line.

    Every line gives one line, in order, and an empty line stays empty. With --nbest N above 1 a line gives N lines, or
    as many as are possible: line number, rank and text with a TAB between. --scores puts the score and a TAB before the
    text. --alignments puts a TAB and pairs SOURCE-TARGET of token numbers, from 0, after it. --json gives one object a
    line: {"source": ..., "translations": [{"text": ..., "score": ..., "finished": ...}]}; with --alignments each
    translation also has "tokens", "source_tokens" and "alignment", a list of [target, source] pairs.

    A line too long for the model is split at its sentence ends, translated in parts and joined. A translation that is
    not finished was stopped by the limit of length.
    """
    if text and input is not None:
        raise ConfigError("give either sentences or --input, not both")
    if input is not None and output is not None and input.exists() and output.exists() and output.samefile(input):
        raise ConfigError(f"--output {output} is the input file itself; name another")
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    drawing = {name: value for name, value in drawing.items() if value is not None}
    if drawing and not sample:
        raise ConfigError(f"--{next(iter(drawing)).replace('_', '-')} says how to draw at random; add --sample")
    from glassformer.decode import Sampling, Search
    from glassformer.report import Report
    from glassformer.translator import Translator

    report = Report()
    search = Search(
        beam=beam,
        nbest=nbest,
        length_penalty=length_penalty,
        length_rule=cast(Any, length_rule),
        sampling=Sampling(**cast(dict[str, Any], drawing)) if sample else None,
        repetition_penalty=repetition_penalty,
        no_repeat_ngram=no_repeat_ngram,
    )
    words = [one.encode("utf-8", "surrogateescape") for one in text or []]
    given = [[line for one in words for line in one.removesuffix(b"\n").split(b"\n")]]
    lines = decoded(given if text else read_raw(open_input(input), str(input or "standard input")), report)
    translator = Translator.load(model, device, cast(Any, precision))
    translate = partial(
        translator.translate,
        search=search,
        # Bytes of an argument that are not UTF-8 come as lone surrogates.
        prefix=prefix.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        max_length=max_length,
        batch_tokens=batch_tokens,
        alignments=alignments,
    )
    translate([])  # a wrong option is told before a line is waited for
    done = split = cut_short = 0
    unmet: dict[str, None] = {}  # words that training never met, in the order they come
    waiting = not text and input is None and sys.stdin.isatty()
    if waiting:
        report.say("type lines to translate; Ctrl-D ends it")
    with open_output(output, report) as sink:
        for chunk in lines:
            translations = translate(chunk)
            report.clear()
            for number, (source, best) in enumerate(zip(chunk, translations, strict=True), done + 1):
                sink.write(row(number, source, best, nbest > 1, scores, as_json).encode("utf-8", "replace"))
                if best[0].parts > 1:
                    split += 1
                    if split == 1:
                        limit = f"the {translator.max_source_length(max_length):,} tokens translated at once"
                        report.say(f"line {number}: longer than {limit}; split into {best[0].parts} parts")
                if not best[0].finished:
                    cut_short += 1
                    if cut_short == 1:
                        report.say(f"line {number}: the translation was stopped by the length limit before its end")
            sink.flush()
            done += len(chunk)
            if len(unmet) < COUNTED:
                unmet |= dict.fromkeys(translator.unfamiliar(chunk))
            if not text and not waiting:
                report.show(f"translated: {done:,} lines")
    report.clear()
    if split > 1:
        report.say(f"{split:,} lines were split")
    if cut_short > 1:
        report.say(f"{cut_short:,} translations were stopped by the length limit")
    if unmet:
        report.say(translator.about.warning(list(unmet)))


def row(number: int, source: str, best: list[Translation], ranked: bool, scores: bool, as_json: bool) -> str:
    """What a source line's translations are printed as, line ends included."""
    if as_json:
        told = finite({"source": source, "translations": [shown(one) for one in best]})
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
        raise DataError(f"{name}: reading failed after line {number}: {why(error)}") from None
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


def open_input(path: Path | None) -> io.BufferedReader:
    from glassformer.text.lines import _open

    return cast(io.BufferedReader, sys.stdin.buffer if path is None else _open(path))


@contextmanager
def open_output(path: Path | None, report: Report) -> Iterator[IO[bytes]]:
    """Standard output, or a file that is replaced at the end; what a failed run had written stays beside it."""
    try:
        if path is None:
            yield sys.stdout.buffer
            return
        with replacing(path) as file:
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
