"""A stretch of text as units: words that are read, and markup between them that stays.

Every format cuts its texts into units; what is done with them is the same for all. The marks of markup begin with `+`
where it opens, `-` where it closes, `=` where it stands alone; what follows says what it is, so that the markup of a
translation can be told to be that of its source.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

# A run of marks or of spaces is looked at from its beginning alone: from each of its characters, it takes minutes.
SENTENCE_END = re.compile(r"(?<![.!?])[.!?]+[\"'”’)]*\s+(?=[^a-z\s])|[。！？]+[”’」）]*")
LABELLED = ("link ", "image ", "<a ")  # marks of what has a label
LINE_END = re.compile(r"(?:(?<![ \t])[ \t]+)?[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+[ \t]*")


@dataclass(frozen=True)
class Unit:
    source: str  # as it stands in the document
    mark: str = ""  # text has none
    carried: str | None = None  # as a translator is given it, where that is not the source
    kept: str | None = None  # as it is written among translated words, where that is not the source

    @property
    def text(self) -> str:
        return self.source if self.carried is None else self.carried

    @property
    def read(self) -> bool:
        return not self.mark and legible(self.text)


Parse = Callable[[str], list[Unit]]  # the units of a translation, in the words that its document will hold


def legible(text: str) -> bool:
    """Whether there is a word in it, as people write them."""
    return any(letter.isalpha() for letter in (html.unescape(text) if "&" in text else text))


def one_line(text: str) -> str:
    """Lines that were broken for the eye alone, joined: by a space, but not between Chinese characters."""

    def seam(found: re.Match[str]) -> str:
        before, after = text[max(0, found.start() - 1) : found.start()], text[found.end() : found.end() + 1]
        return "" if wide(before) and wide(after) else " "

    return LINE_END.sub(seam, text)


def wide(letter: str) -> bool:
    """A character of a script that is written without spaces."""
    return "\u3000" <= letter <= "\u9fff" or "\uff00" <= letter <= "\uff60" or letter >= "\U00020000"


def carried(units: Iterable[Unit]) -> str:
    return "".join(unit.text for unit in units)


def written(units: Iterable[Unit]) -> str:
    return "".join(unit.source if unit.kept is None else unit.kept for unit in units)


def marks(units: Iterable[Unit]) -> list[str]:
    return [unit.mark for unit in units if unit.mark]


def inside(units: Iterable[Unit]) -> Iterator[tuple[Unit, tuple[str, ...]]]:
    """Each unit with the markup that is open around it."""
    opened: list[str] = []
    for unit in units:
        if unit.mark.startswith("-") and opened and opened[-1] == unit.mark[1:]:
            opened.pop()
        yield unit, tuple(opened)
        if unit.mark.startswith("+"):
            opened.append(unit.mark[1:])


def balanced(units: Iterable[Unit]) -> bool:
    """Whether all that is opened is closed, in order."""
    opened: list[str] = []
    for mark in marks(units):
        if mark.startswith("+"):
            opened.append(mark[1:])
        elif mark.startswith("-") and (not opened or opened.pop() != mark[1:]):
            return False
    return not opened


def shape(units: list[Unit]) -> tuple[Counter[tuple[str, tuple[str, ...]]], set[tuple[str, ...]]]:
    """What a translation must share with its source: which markup stands in which, and where there are words."""
    placed = list(inside(units))
    return (
        Counter((unit.mark, around) for unit, around in placed if unit.mark),
        {around for unit, around in placed if unit.read},
    )


def connected(units: list[Unit]) -> bool:
    """Whether the words belong together around markup; else each stands for itself: the label of a link or an image,
    or the only ones there are."""
    read = [around for unit, around in inside(units) if unit.read]
    labels = all(any(one.startswith(LABELLED) for one in around) for around in read)
    return not labels and (len(read) > 1 or any(unit.mark.startswith("=") for unit in units))


def restored(source: list[Unit], translation: list[Unit]) -> list[Unit]:
    """The translation with the markup of the source, to the letter; both have the same marks."""
    kept: dict[str, list[Unit]] = {}
    for unit in source:
        if unit.mark:
            kept.setdefault(unit.mark, []).append(unit)
    return [kept[unit.mark].pop(0) if unit.mark else unit for unit in translation]


def sentences(units: list[Unit]) -> list[list[Unit]]:
    """Cut where a sentence ends outside all markup; joined, they are the same units' text."""
    parts: list[list[Unit]] = [[]]
    for unit, around in inside(units):
        if unit.mark or around:
            parts[-1].append(unit)
            continue
        start = 0
        for end in (found.end() for found in SENTENCE_END.finditer(unit.text)):
            parts[-1].append(Unit(unit.text[start:end]))
            parts.append([])
            start = end
        if start < len(unit.text):
            parts[-1].append(Unit(unit.text[start:]))
    return [part for part in parts if part]
