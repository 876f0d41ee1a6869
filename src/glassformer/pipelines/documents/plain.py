"""Plain text: paragraphs are translated; their order, blank lines, indents and list signs stay."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from glassformer.pipelines.documents.passage import Asking, Passage, Tally, all_translating
from glassformer.pipelines.documents.units import Parse, Unit, one_line

LINE = re.compile(r"\r\n|\r|\n")
BEFORE = re.compile(r"\s*(?:[-*•·>#=~_|+]+\s+|\d{1,3}[.)]\s+)*")  # what stands before the words of a line
NARROW = 30  # letters; text is not broken at fewer


class Line(NamedTuple):
    start: int
    words: int  # where they begin
    end: int  # of them


def words(text: str) -> list[Unit]:
    return [Unit(text)] if text else []


def passages(text: str, parse: Parse = words) -> list[Passage]:
    """Lines; those that were broken where the next word had no room are one."""
    lines = [*spans(text)]
    width = max((stop - start for start, stop in lines), default=0)
    found: list[list[Line]] = []
    for start, stop in lines:
        line = text[start:stop]
        before = BEFORE.match(line)
        begin = start + (before.end() if before else 0)
        goes_on = (
            found
            and begin < stop
            and begin - start == len(line) - len(line.lstrip())  # no sign of a list before it
            and broken(text, found[-1][-1], start, begin, stop, width)
        )
        if goes_on:
            found[-1].append(Line(start, begin, start + len(line.rstrip())))
        else:
            found.append([Line(start, begin, start + len(line.rstrip()))])
    return [one for run in found for one in passage(text, run, width, parse)]


def spans(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for end in LINE.finditer(text):
        yield at, end.start()
        at = end.end()
    yield at, len(text)


def broken(text: str, before: Line, start: int, begin: int, stop: int, width: int) -> bool:
    """Whether the line that ends before `start` would have been too long with the next one's first word."""
    between = text[before.end : start].strip(" \t")
    word = text[begin:stop].split(maxsplit=1)
    return bool(
        before.words < before.end
        and between in ("\n", "\r", "\r\n")
        and width >= NARROW
        and word
        and before.end - before.start + 1 + len(word[0]) > width
    )


def passage(text: str, run: list[Line], width: int, parse: Parse) -> Iterator[Passage]:
    start, end = run[0].words, run[-1].end
    source = text[start:end]
    units = [unit if unit.mark else Unit(unit.source, "", one_line(unit.source)) for unit in parse(source)]
    write = partial(str)
    if len(run) > 1:
        indent = text[run[1].start : run[1].words]
        begun = run[0].words - run[0].start
        end_of_line = LINE.search(source)
        assert end_of_line is not None
        write = partial(wrapped, width=width, begun=begun, indent=indent, newline=end_of_line[0])
    one = Passage(start, end, units, parse, write=write)
    if one.read:
        yield one


def wrapped(text: str, width: int, begun: int, indent: str, newline: str) -> str:
    """Broken at spaces, as its source was; the first line begins after `begun` letters."""
    wrapper = textwrap.TextWrapper(width, " " * begun, indent, break_long_words=False, break_on_hyphens=False)
    lines = wrapper.wrap(text)
    return newline.join(lines)[begun:]


def translating(text: str, tally: Tally, parse: Parse = words) -> Asking[str]:
    return (yield from all_translating(text, passages(text, parse), tally))
