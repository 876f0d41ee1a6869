"""A text that is too long for a model in parts that are not, and their translations joined again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Where a text that is too long may be cut: after sentences, else after clauses, else between words.
CUTS = (
    re.compile(r"""(?<=[.!?…؟।])["'»”’)\]]*\s+|(?<=[。！？])[。！？”’」』）]*\s*|\n\s*"""),
    re.compile(r"(?<=[,;:،؛—–])\s+|(?<=[，；：、])\s*"),
    re.compile(r"\s+"),
)
WIDE_MARKS = "。！？，；：、"  # no space follows them, where one follows the mark they are translated to
UNSPACED = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


@dataclass(frozen=True)
class Part:
    """A stretch of a text that the model can take; `spaced` if white space stood before it."""

    text: str
    ids: list[int]
    spaced: bool = False


Encode = Callable[[Sequence[str]], list[list[int]]]


def cut(text: str, limit: int, encode: Encode, level: int = 0, spaced: bool = False) -> list[Part]:
    """`text` as few parts of at most `limit` tokens, cut by CUTS[level] and, where that is not enough, the next."""
    if level == len(CUTS):
        return chop(text, limit, encode, spaced)
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
        (ids,) = encode([join(pack)])
        if len(ids) <= limit:
            found.append(Part(join(pack), ids, pack[0][1]))
        elif len(pack) > 1:  # together they make more tokens than one by one
            packs += [pack[len(pack) // 2 :], pack[: len(pack) // 2]]
        else:
            found += cut(pack[0][0], limit, encode, level + 1, pack[0][1])
    return found


def join(pieces: list[tuple[str, bool]]) -> str:
    return "".join(" " + text if i and spaced else text for i, (text, spaced) in enumerate(pieces))


def chop(text: str, limit: int, encode: Encode, spaced: bool) -> list[Part]:
    """A text too long and without any place to cut it, in pieces of even width."""
    width = max(1, min(limit - 2, len(text) // 2))  # most often a token a letter, one for the start, one for the end
    pieces = [text[i : i + width] for i in range(0, len(text), width)]
    found: list[Part] = []
    for i, (piece, ids) in enumerate(zip(pieces, encode(pieces), strict=True)):
        gap = spaced and i == 0
        if len(ids) <= limit or len(piece) == 1:
            found.append(Part(piece, ids[:limit], gap))
        else:
            found += chop(piece, limit, encode, gap)
    return found


def seam(before: Part, part: Part, left: str, right: str) -> str:
    """What goes between `left` and `right`, the translations of two parts that follow each other: nothing in scripts
    that are written without spaces."""
    if not left or not right or UNSPACED.match(left[-1]) or UNSPACED.match(right[0]):
        return ""
    return " " if part.spaced or before.text[-1] in WIDE_MARKS else ""


def joined(parts: Sequence[Part], translations: Sequence[str]) -> str:
    """The translations of a text's parts as that of the text."""
    text = translations[0]
    for before, part, more in zip(parts, parts[1:], translations[1:], strict=False):
        text += seam(before, part, text, more) + more
    return text
