"""A long sentence by its clauses, where the model finds that likelier than the sentence as one.

Models of the box have met few sentences of everyday language that are as long as those of some novels and laws. They
lose their way in them, and know it: the probability of what they write falls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from glassformer.data.protect import spans
from glassformer.decode import Search
from glassformer.pipelines.language.cutting import Encode, Part, joined
from glassformer.pipelines.translation import Translation

LONG, LONGEST = 40, 1000  # tokens of sentences that are looked at
ENOUGH = 40  # tokens of clauses that are translated together
DOUBT = -0.3  # the mean logarithm of a token's probability below which a translation is doubted
AHEAD = 0.06  # by so much the clauses' must be above it
_END = re.compile(r"(?<=[,;:])\s+|(?<=[，；：])\s*")
_IN_NUMBER = re.compile(r"[0-9][,，:：]\s*(?=[0-9])")
# Clauses that say little without the one before.
_BOUND = re.compile(
    r"(?:which|who|whose|whom|where|that|der|die|das|dem|den|dessen|deren|denen|dass|wo|welche[mnrs]?)\b"
)
_BRACKETS = dict.fromkeys("([{（【「『《", 1) | dict.fromkeys(")]}）】」』》", -1)
_QUOTES = {'"': None, "“": None, "«": None, "»": None, "„": True, "”": False}  # opens, closes, or what is due
_WIDE = dict(zip(",;:", "，；：", strict=True))
_NARROW = {wide: narrow for narrow, wide in _WIDE.items()}
# Words that are written small unless a sentence begins with them.
_SMALL = {
    "en": """a also an and as at because but by can do does don't for from furthermore he he's her his how however if in
    instead is it it's my no nobody not nothing now of on or our please she she's so that that's the their then there
    there's therefore they this though to was we we're what when whenever where which while who why with yesterday you
    you're your""",
    "de": """aber als am an auf aus außerdem bei bis bitte da dann das dass dein dem den denn der die doch ein eine er
    es für gestern ich im in ist jedoch jetzt kein keiner man mein mit nach nicht niemand nun ob obwohl oder sein seine
    so um und von war warum was weil wenn wer wie wir wo während zu""",
}


def doubted(one: Translation, length: int, search: Search) -> bool:
    """Whether a translation of `length` source tokens is worth another look; never where its score is no mean."""
    mean = search.sampling is None and search.length_rule == "average" and search.length_penalty == 1.0
    return mean and LONG <= length <= LONGEST and one.score < DOUBT


def clauses(text: str, encode: Encode) -> list[Part]:
    """`text` in parts that end as clauses do; nothing in brackets or quotation marks, and nothing kept, is cut."""
    inside = {place for start, end in spans(text) for place in range(start, end)}
    pieces, start, seen, depth, quoted = [], 0, 0, 0, False
    for mark in _END.finditer(text):
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
            room = ENOUGH
        room -= len(ids)
    befores = ["", *packs]
    return [
        Part(pack.strip(), ids, before[-1:].isspace())
        for pack, before, ids in zip(packs, befores, encode(packs), strict=False)
    ]


def likelier(parts: Sequence[Translation], whole: Translation) -> bool:
    """Whether the parts' translations, token by token, are clearly likelier than that of the whole."""
    counts = [len(one.tokens) + 1 for one in parts]  # and the end
    mean = sum(one.score * count for one, count in zip(parts, counts, strict=True)) / sum(counts)
    return all(one.finished and any(map(str.isalnum, one.text)) for one in parts) and mean > whole.score + AHEAD


def sentence(parts: Sequence[Part], written: Sequence[str], target: str) -> str:
    """The translations of clauses as one sentence: each but the last ends with its own mark, each but the first begins
    as words within a sentence do."""
    marks, texts = _WIDE if target == "zh" else _NARROW, []
    for i, (part, text) in enumerate(zip(parts, written, strict=True)):
        text = text.strip()
        if i < len(parts) - 1:
            mark = part.text[-1]
            text = text.rstrip(".。,;:，；：、!?！？… ") + marks.get(mark, mark)
        first = text.partition(" ")[0].rstrip(",").replace("’", "'")
        if i and first[1:] == first[1:].lower() and first.lower() in _SMALL.get(target, "").split():
            text = text[0].lower() + text[1:]
        texts.append(text)
    return joined(parts, texts)
