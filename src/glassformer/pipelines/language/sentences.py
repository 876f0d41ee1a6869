"""Paragraphs cut into sentences, with all that stands between them.

The cuts are those of `sentencex` (Wikimedia; compiled, no further packages, rules for some 300 languages), less those
that do not fit documentation: it also cuts ".NET", "System.IO" and list numbers. pysbd is about as exact on everyday
sentences, but takes tens of times as long and cuts at each "?" of an address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from glassformer.pipelines.language.cutting import CUTS

Span = tuple[int, int]

LONGEST = 20_000  # characters of a line that the library is given: of some its time grows with their square
TAIL = 200  # characters before a cut in which the mark of a sentence's end is looked for
_LETTER = re.compile(r"[^\W\d_]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WIDE_SPACE = re.compile(r"[\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_LINES = re.compile(r"[\n\r\t\u2028\u2029]\s*")
_WIDE_ENDS = "。！？"
_CLOSING = "\"'»«”’“‘)]}*_`」』）】》〉"
_ENDED = re.compile(rf"[.!?…‽؟।{_WIDE_ENDS}][{re.escape(_CLOSING)}]*$")
_OPENING = re.compile(r"[\s\"'»«„“‘(\[{*_`「『（【《]*")
# What the library misses: in Chinese a number or a dot may begin a sentence; these words are seldom abbreviations.
_MORE = {
    "en": re.compile(r"\b(?:me|no|ill|art)\.\s+(?=[\"“]?[A-Z])"),
    "de": re.compile(r"\b(?:mich|mag)\.\s+(?=[\"„]?[A-ZÄÖÜ])"),
    "zh": re.compile(rf"[{_WIDE_ENDS}](?=\d|\.\w)"),
}
# And where it cuts, though hardly a sentence ends so.
_SHORTENED = re.compile(r"\b(?:approx|incl|excl|dept|No|inkl|exkl|evtl|ggf|bzgl|Hrn?|Fr|Nr|Mio|Mrd|Tsd)\.$")


class Piece(NamedTuple):
    """A stretch of a text: a sentence, or the white space (`gap`) before, between or behind sentences."""

    text: str
    gap: bool


def splitter() -> str | None:
    """Why paragraphs are cut by plain rules only; None where the library is here."""
    return None if _library() is not None else "sentencex is not installed: `pip install sentencex`"


def sentences(text: str, language: str = "", whole: Sequence[Span] = ()) -> list[Piece]:
    """`text` in pieces that, joined, give it back: sentences without white space around them, and the gaps.

    A line break or a tab always ends a sentence. None of the stretches `whole`, such as a code span, is cut.
    """
    pieces: list[Piece] = []
    for start, end in _between(text, _borders(text, language, whole)):
        stretch = text[start:end]
        bare = stretch.strip()
        lead = len(stretch) - len(stretch.lstrip()) if bare else 0
        for part, gap in ((stretch[:lead], True), (bare, False), (stretch[lead + len(bare) :], True)):
            if part and gap and pieces and pieces[-1].gap:
                pieces[-1] = Piece(pieces[-1].text + part, True)
            elif part:
                pieces.append(Piece(part, gap))
    return pieces


def _between(text: str, borders: set[int]) -> list[Span]:
    edges = sorted({0, len(text), *borders})
    return list(pairwise(edges))


def _borders(text: str, language: str, whole: Sequence[Span]) -> set[int]:
    """The places where a sentence begins, or the gap before it."""
    borders = {mark.end() for mark in _LINES.finditer(text)}
    masked = _masked(text, whole)
    for start, end in _between(text, borders):
        line = masked[start:end]
        borders |= {start + cut for cut in _cuts(line, language)}
    inside = {place for start, end in whole for place in range(start + 1, end)}
    return borders - inside


def _masked(text: str, whole: Sequence[Span]) -> str:
    """`text` with a plain word of the same length for each of the stretches `whole`."""
    letters = list(text)
    for start, end in whole:
        letters[start:end] = "X" + "x" * (end - start - 1)
    text = "".join(letters)
    text = _SURROGATE.sub("x", text)  # half of a pair is no text, and unknown to the library
    return text if text.isascii() else _WIDE_SPACE.sub(" ", text)  # on one between a letter and a full stop, it fails


def _cuts(line: str, language: str) -> list[int]:
    told = _told(line, language or "en") if len(line) <= LONGEST else None
    if told is None:
        found = [mark.end() for mark in CUTS[0].finditer(line)]
    else:
        found = [_before_quote(line, end) for end in told]
        more = _MORE.get(language)
        found = sorted({*found, *(mark.end() for mark in more.finditer(line))}) if more else found
    kept: list[int] = []
    end, letter = len(line.rstrip()), _LETTER.search(line)
    for cut in found:
        if letter and letter.start() < cut < end and _fits(line, kept[-1] if kept else 0, cut):
            kept.append(cut)
            letter = _LETTER.search(line, cut)
    return kept


def _told(line: str, language: str) -> list[int] | None:
    """The ends of the sentences as the library tells them, if it is here and can."""
    library = _library()
    try:
        return (
            None if library is None else [one["end_index"] for one in library.get_sentence_boundaries(language, line)]
        )
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a fault of its own, which Rust tells so
            raise
        return None


def _before_quote(line: str, cut: int) -> int:
    """The library leaves a quotation mark that opens a sentence at the end of the one before."""
    opens = (
        line[cut - 1 : cut] in ('"', "'") and line[max(0, cut - 2) : max(0, cut - 1)].isspace() and line[cut:].strip()
    )
    return cut - 1 if opens else cut


def _fits(line: str, start: int, cut: int) -> bool:
    """Whether a sentence from `start` may end at `cut`: it has a mark at its end, and another can follow."""
    left = line[max(start, cut - TAIL) : cut].rstrip()
    if not _ENDED.search(left) or _SHORTENED.search(left):
        return False
    if left.rstrip(_CLOSING)[-1] in _WIDE_ENDS:
        return True
    if not (line[cut - 1].isspace() or line[cut].isspace()):
        return False
    at = _OPENING.match(line, cut).end()  # type: ignore[union-attr]  # it matches the empty string
    return not (line[at : at + 1].islower() and left.rstrip(_CLOSING)[-1] in ".…")


@cache
def _library() -> Any:
    try:
        import sentencex
    except ImportError:
        return None
    return sentencex
