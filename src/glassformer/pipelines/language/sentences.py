"""Texts cut into sentences, sentences into clauses, and what is too long for a model into parts; and joined again.

Paragraphs are cut into sentences by `sentencex` (Wikimedia; compiled, no further packages, rules for some 300
languages), less the cuts that do not fit documentation: it also cuts ".NET", "System.IO" and list numbers. pysbd is
about as exact on everyday sentences, but takes tens of times as long and cuts at each "?" of an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from glassformer.common.errors import panics_as_errors
from glassformer.data.protect import spans
from glassformer.pipelines.language import word_lists

Span = tuple[int, int]
Encode = Callable[[Sequence[str]], list[list[int]]]

# Where a text that is too long may be cut: after sentences, else after clauses, else between words.
CUTS = (
    re.compile(r"""(?<=[.!?…؟।])["'»”’)\]]*\s+|(?<=[。！？])[。！？”’」』）]*\s*|\n\s*"""),
    re.compile(r"(?<=[,;:،؛—–])\s+|(?<=[，；：、])\s*"),
    re.compile(r"\s+"),
)
WIDE_MARKS = "。！？，；：、"  # no space follows them, where one follows the mark they are translated to
NO_SPACE = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")

LONGEST_LINE = 20_000  # characters of a line for the library: its time may grow with their square
TAIL = 200  # characters before a cut in which the mark of a sentence's end is looked for
_LETTER = re.compile(r"[^\W\d_]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WIDE_SPACE = re.compile(r"[\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_LINES = re.compile(r"[\n\r\t\u2028\u2029]\s*")
_WIDE_ENDS = "。！？"
_MARKER = re.compile(  # of an item of a list, but neither "z. B." nor "3. Mai"
    r"\s*(?:[-*+•‣◦–—>][ \t]+)*+(?:(?:\d{1,3}(?:\.\d{1,3})*|[A-Za-z]|[ivxIVX]{2,5})[.)][ \t]+"
    rf"(?=\S)(?![A-Za-z]\.|(?:{'|'.join(word_lists('months')['de'])})\b))?"
)
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


def split_sentences(text: str, language: str = "", whole: Sequence[Span] = ()) -> list[Piece]:
    """`text` in pieces that, joined, give it back: sentences without white space around them, and the gaps.

    A line break or a tab always ends a sentence. None of the stretches `whole`, such as a code span, is cut. The marker
    of a list's item is part of the gap.
    """
    pieces: list[Piece] = []
    for start, end in _between(text, _borders(text, language, whole)):
        stretch = text[start:end]
        bare = stretch.strip()
        lead = len(stretch) - len(stretch.lstrip()) if bare else 0
        begins = bare and (not pieces or _LINES.search(pieces[-1].text))
        if begins and (marker := _MARKER.match(text, start)):
            bare = text[marker.end() : end].strip()
            lead = stretch.rindex(bare) if bare else len(stretch)
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
    ends = _library_ends(line, language or "en") if len(line) <= LONGEST_LINE else None
    if ends is None:
        found = [mark.end() for mark in CUTS[0].finditer(line)]
    else:
        found = [_before_quote(line, end) for end in ends]
        more = _MORE.get(language)
        found = sorted({*found, *(mark.end() for mark in more.finditer(line))}) if more else found
    kept: list[int] = []
    end, letter = len(line.rstrip()), _LETTER.search(line)
    for cut in found:
        if letter and letter.start() < cut < end and _fits(line, kept[-1] if kept else 0, cut):
            kept.append(cut)
            letter = _LETTER.search(line, cut)
    return kept


def _library_ends(line: str, language: str) -> list[int] | None:
    """The ends of the sentences as the library finds them; None where it fails."""
    import sentencex

    with suppress(RuntimeError), panics_as_errors():
        return [one["end_index"] for one in sentencex.get_sentence_boundaries(language, line)]
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


@dataclass(frozen=True)
class Part:
    """A stretch of a text that the model can take; `spaced` if white space stood before it."""

    text: str
    ids: list[int]
    spaced: bool = False


def split_by_length(text: str, limit: int, encode: Encode, level: int = 0, spaced: bool = False) -> list[Part]:
    """`text` as few parts of at most `limit` tokens, cut by CUTS[level] and, where that is not enough, the next."""
    if level == len(CUTS):
        return _split_anywhere(text, limit, encode, spaced)
    pieces: list[tuple[str, bool]] = []
    start = 0
    for end in [*(mark.end() for mark in CUTS[level].finditer(text)), len(text)]:
        raw, start = text[start:end], end
        if raw.strip():
            pieces.append((raw.strip(), spaced or raw[0].isspace()))
            spaced = False
        spaced = spaced or raw[-1:].isspace()
    packs: list[list[tuple[str, bool]]] = []
    room = -1
    for piece, ids in zip(pieces, encode([text for text, _ in pieces]), strict=True):
        if len(ids) <= room:
            packs[-1].append(piece)
            room -= len(ids)
        else:
            packs.append([piece])
            room = limit - len(ids)
    found: list[Part] = []
    packs.reverse()
    while packs:
        pack = packs.pop()
        (ids,) = encode([_join_pieces(pack)])
        if len(ids) <= limit:
            found.append(Part(_join_pieces(pack), ids, pack[0][1]))
        elif len(pack) > 1:  # together they make more tokens than one by one
            packs += [pack[len(pack) // 2 :], pack[: len(pack) // 2]]
        else:
            found += split_by_length(pack[0][0], limit, encode, level + 1, pack[0][1])
    return found


def _join_pieces(pieces: list[tuple[str, bool]]) -> str:
    return "".join(" " + text if i and spaced else text for i, (text, spaced) in enumerate(pieces))


def _split_anywhere(text: str, limit: int, encode: Encode, spaced: bool) -> list[Part]:
    """A text too long and without any place to cut it, in pieces of even width."""
    width = max(1, min(limit - 2, len(text) // 2))  # most often a token a letter, one for the start, one for the end
    pieces = [text[i : i + width] for i in range(0, len(text), width)]
    found: list[Part] = []
    for i, (piece, ids) in enumerate(zip(pieces, encode(pieces), strict=True)):
        gap = spaced and i == 0
        if len(ids) <= limit or len(piece) == 1:
            found.append(Part(piece, ids[:limit], gap))
        else:
            found += _split_anywhere(piece, limit, encode, gap)
    return found


def separator(space: str, source: str, left: str, right: str) -> str:
    """What goes between the translations `left` and `right` where `space` stood, after `source`: scripts without
    spaces have none, and the others one, whatever the source had."""
    if not left or not right or NO_SPACE.match(left[-1]) or NO_SPACE.match(right[0]):
        return "" if space == " " else space
    return space or " " * (source[-1] in WIDE_MARKS)


def join_parts(parts: Sequence[Part], translations: Sequence[str]) -> str:
    """The translations of a text's parts as that of the text."""
    text = translations[0]
    for before, part, more in zip(parts, parts[1:], translations[1:], strict=False):
        text += separator(" " * part.spaced, before.text, text, more) + more
    return text


CLAUSE_TOKENS = 40  # of clauses that are translated together
_CLAUSE_END = re.compile(r"(?<=[,;:])\s+|(?<=[，；：])\s*")
_IN_NUMBER = re.compile(r"[0-9][,，:：]\s*(?=[0-9])")
# Clauses that say little without the one before.
_BOUND = re.compile(
    r"(?:which|who|whose|whom|where|that|der|die|das|dem|den|dessen|deren|denen|dass|wo|welche[mnrs]?)\b"
)
_BRACKETS = dict.fromkeys("([{（【「『《", 1) | dict.fromkeys(")]}）】」』》", -1)
_QUOTES = {'"': None, "“": None, "«": None, "»": None, "„": True, "”": False}  # opens, closes, or what is due
_WIDE = dict(zip(",;:", "，；：", strict=True))
_NARROW = {wide: narrow for narrow, wide in _WIDE.items()}
_SMALL = word_lists("small")  # words that are written small unless a sentence begins with them


def split_clauses(text: str, encode: Encode) -> list[Part]:
    """`text` in parts that end as clauses do; nothing in brackets or quotation marks, and nothing kept, is cut."""
    inside = {place for start, end in spans(text) for place in range(start, end)}
    pieces, start, seen, depth, quoted = [], 0, 0, 0, False
    for mark in _CLAUSE_END.finditer(text):
        for sign in text[seen : mark.start()]:
            depth = max(0, depth + _BRACKETS.get(sign, 0))
            if sign in _QUOTES:
                due = _QUOTES[sign]
                quoted = not quoted if due is None else due
        seen = mark.start()
        together = depth or quoted or seen in inside or _BOUND.match(text, mark.end())
        if not together and not _IN_NUMBER.match(text, seen - 2):
            pieces.append(text[start : mark.end()])
            start = mark.end()
    pieces = [piece for piece in (*pieces, text[start:]) if piece.strip()]
    packs: list[str] = []
    room = 0
    for piece, ids in zip(pieces, encode(pieces), strict=True):
        if len(ids) <= room:
            packs[-1] += piece
        else:
            packs.append(piece)
            room = CLAUSE_TOKENS
        room -= len(ids)
    befores = ["", *packs]
    return [
        Part(pack.strip(), ids, before[-1:].isspace())
        for pack, before, ids in zip(packs, befores, encode(packs), strict=False)
    ]


def join_clauses(parts: Sequence[Part], written: Sequence[str], target: str) -> str:
    """The translations of clauses as one sentence: each but the last ends with its own mark, each but the first begins
    as words within a sentence do."""
    marks, texts = _WIDE if target == "zh" else _NARROW, []
    for i, (part, text) in enumerate(zip(parts, written, strict=True)):
        text = text.strip()
        if i < len(parts) - 1:
            mark = part.text[-1]
            text = text.rstrip(".。,;:，；：、!?！？… ") + marks.get(mark, mark)
        first = text.partition(" ")[0].rstrip(",").replace("’", "'")
        if i and first[1:] == first[1:].lower() and first.lower() in _SMALL.get(target, ()):
            text = text[0].lower() + text[1:]
        texts.append(text)
    return join_parts(parts, texts)
