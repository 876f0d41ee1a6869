"""Passages: the stretches of a document that a reader reads, each translated so that its markup stays."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, TypeVar, cast

from glassformer.pipelines.documents.units import (
    Parse,
    Unit,
    balanced,
    carried,
    connected,
    marks,
    one_line,
    restored,
    sentences,
    shape,
    written,
)

Answer = TypeVar("Answer")
Asking: TypeAlias = Generator[list[str], list[str], Answer]  # asks for texts, is sent their translations


class TextTranslating(Protocol):
    """Texts in, their translations out, one for each; `progress` is told how many are done."""

    def translate(self, texts: list[str], *, progress: Callable[[int], None] | None = None) -> list[str]: ...


@dataclass
class Tally:
    """How the passages of a document were translated."""

    passages: int = 0
    apart: int = 0  # the translation lost or added markup: what stands between it was translated piece by piece
    left: int = 0  # even so it did not fit into the document: some of it is left in the source's words

    def add(self, other: Tally) -> None:
        self.passages += other.passages
        self.apart += other.apart
        self.left += other.left


def as_it_is(text: str) -> str:
    return text


@dataclass
class Passage:
    """What stands between `start` and `end` of a document's text, as units."""

    start: int
    end: int
    units: list[Unit]
    parse: Parse
    fit: Callable[[str], str | None] = as_it_is  # changed so that it can stand there; None where nothing helps
    write: Callable[[str], str] = as_it_is  # broken into lines, or whatever else the place wants
    whole: bool = True  # may be given to the translator as one text

    @property
    def read(self) -> bool:
        return any(unit.read for unit in self.units)


def translating(passage: Passage, tally: Tally) -> Asking[str | None]:
    """As one text; where the markup is not the same after it, sentence by sentence; where not, piece by piece.

    None where it must be left as it is.
    """
    tally.passages += 1
    units = passage.units
    several = connected(units)
    if several and passage.whole and balanced(units):
        (answer,) = yield [carried(units).strip()]
        text = same_shape(passage, units, answer)
        text = None if text is None else passage.fit(spaced(carried(units), text))
        if text is not None and shape(passage.parse(text)) == shape(units):
            return passage.write(text)
    tally.apart += several
    parts = sentences(units) if several and passage.whole else [units]
    alone = len(parts) == 1
    wanted = [] if alone else [i for i, part in enumerate(parts) if balanced(part) and any(one.read for one in part)]
    answers = dict(zip(wanted, (yield [carried(parts[i]).strip() for i in wanted]) if wanted else [], strict=True))
    texts, refused = [], False
    for i, part in enumerate(parts):
        text = same_shape(passage, part, answers[i]) if i in answers else None
        if text is None:
            text, some = yield from piecewise(passage, part)
            refused = refused or some
        texts.append(spaced(carried(part), text))
    text = passage.fit("".join(texts))
    if text is not None and shape(passage.parse(text)) != shape(units):
        text = None
    tally.left += refused or text is None
    return None if text is None else passage.write(text)


def same_shape(passage: Passage, units: list[Unit], answer: str) -> str | None:
    """The translation of these units with their own markup in it; None where it has another."""
    answer = one_line(answer.strip())
    found = passage.parse(answer)
    if shape(found) != shape(units):
        return None
    text = written(restored(units, found))
    return text if shape(passage.parse(text)) == shape(units) else None


def piecewise(passage: Passage, units: list[Unit]) -> Asking[tuple[str, bool]]:
    """Only the text between the markup is translated, so that the markup is the same, in its order.

    Also whether a piece had to stay in the source's words.
    """
    read = [i for i, unit in enumerate(units) if unit.read]
    answers = yield [units[i].text.strip() for i in read]
    pieces = [written([unit] if unit.mark else passage.parse(unit.text)) for unit in units]
    plain = list(pieces)
    refused = False
    for i, answer in zip(read, answers, strict=True):
        found = passage.parse(one_line(answer.strip()))
        if not marks(found) and any(unit.read for unit in found):
            pieces[i] = spaced(units[i].text, written(found))
        else:
            refused = True
    given_up = 0  # where all together would be read as other markup: one, then two, then four, from the first on
    while given_up < len(read) and marks(passage.parse("".join(pieces))) != marks(units):
        for i in read[given_up : 2 * given_up + 1]:
            pieces[i], refused = plain[i], True
        given_up = 2 * given_up + 1
    return "".join(pieces), refused


def spaced(source: str, text: str) -> str:
    """The text with the white space that the source has around it."""
    before = source[: len(source) - len(source.lstrip())]
    return before + text.strip() + source[len(source.rstrip()) :]


def together(several: Sequence[Asking[Answer]]) -> Asking[list[Answer]]:
    """Several that ask at the same time."""
    results: dict[int, Answer] = {}
    waiting: dict[int, list[str]] = {}
    answers: dict[int, list[str] | None] = dict.fromkeys(range(len(several)))
    while answers:
        for i, given in answers.items():
            try:
                waiting[i] = next(several[i]) if given is None else several[i].send(given)
            except StopIteration as end:
                results[i] = end.value
                waiting.pop(i, None)
        got = iter((yield [text for texts in waiting.values() for text in texts]) if waiting else [])
        answers = {i: [next(got) for _ in texts] for i, texts in waiting.items()}
    return [results[i] for i in range(len(several))]


def answered(
    asking: Asking[Answer], translator: TextTranslating, progress: Callable[[int, int], None] | None = None
) -> Answer:
    """What is asked for goes to the translator, equal texts once; `progress` is told how many of how many are done."""
    given: list[str] | None = None
    while True:
        try:
            wanted = next(asking) if given is None else asking.send(given)
        except StopIteration as end:
            return cast(Answer, end.value)
        texts = list(dict.fromkeys(wanted))
        tell = None if progress is None else partial(_tell, progress, len(texts))
        known = dict(zip(texts, translator.translate(texts, progress=tell) if texts else [], strict=True))
        given = [known[text] for text in wanted]


def _tell(progress: Callable[[int, int], None], count: int, done: int) -> None:
    progress(done, count)


def put_in(text: str, passages: Sequence[Passage], translations: Sequence[str | None]) -> str:
    """The document with its passages replaced, and nothing else."""
    parts, at = [], 0
    for passage, translation in zip(passages, translations, strict=True):
        if translation is not None:
            assert passage.start >= at, "passages come in order and do not overlap"
            parts += [text[at : passage.start], translation]
            at = passage.end
    return "".join([*parts, text[at:]])


def all_translating(text: str, passages: Sequence[Passage], tally: Tally) -> Asking[str]:
    """The document with all its passages translated, which ask at the same time."""
    return put_in(text, passages, (yield from together([translating(one, tally) for one in passages])))
