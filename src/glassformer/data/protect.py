"""What a translation must not change: code, addresses, placeholders, tags; and pairs of training with these hidden.

A hidden stretch is one character of Unicode's private-use area, which `tokenizer.placeholders` gives a piece of its
own. A model that has met such pairs copies them, and what they stand for is put back afterwards.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from glassformer.common.strings import WIDE
from glassformer.data.icu import ARGUMENT

Span = tuple[int, int]

MOST = 32  # placeholders that a vocabulary may have
PLACEHOLDERS = "".join(chr(0xE000 + number) for number in range(MOST))
SHORT = 1000  # characters of a text that may be remembered for a moment
HIDDEN = 0.6  # the chance of each stretch that could be hidden, in a pair that is chosen

# A wide character may follow a stretch at once, and is no part of it.
WORD = rf"(?:(?![{WIDE}])\w)"
_A = "A-Za-z0-9_"
_NAME_PART = "[A-Za-z0-9_-]+"
_WIDTH = r"[-+#0']{0,5}(?:\*|\d{0,5})(?:\.(?:\*|\d{0,5}))?"  # of a printf conversion, and its precision
_ENDS = (
    "com|org|net|io|dev|edu|gov|info|app|eu|uk|at|ch|cn|de|ai|py|js|ts|jsx|tsx|json|jsonl|md|txt|html?|css|xml|ya?ml|toml|ini|"
    "cfg|conf|csv|tsv|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|zip|gz|xz|tar|exe|dll|sh|bat|ps1|cs|cpp|java|rs|go|rb|php|"
    "sql|log|parquet|safetensors|onnx|ipynb|lock|bak"
)
# What may be long has a limit: a text of nothing else would be looked through again from each of its characters.
_KEPT = re.compile(
    "|".join(
        (
            r"(`{1,20})(?!`).+?(?<!`)\1(?!`)",  # code
            r"(?<=\]\()[^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?(?=\))",  # the target of a link or an image
            r"\[![A-Za-z-]+[^\[\]]*\]",  # [!NOTE]
            r"<!--.{0,2000}?-->|<[%?].{0,2000}?[%?]>",
            r"<(?:[A-Za-z][\w.+-]*:[^<>\s]*|[^<>\s@]+@[^<>\s@]+)>",  # <https://...>, <xref:...>, <somebody@example.org>
            r"</?[A-Za-z][^<>]*>",  # a tag
            rf"(?<![A-Za-z0-9_])[a-z][a-z0-9+.-]{{0,30}}://[^\s<>()\[\]{{}}\"'`“”„{WIDE}]*(?:{WORD}|[/#&=%~+-])",
            rf"(?<![.@+-])(?<!{WORD})(?:{WORD}|[.+-]){{1,64}}@{WORD}(?:{WORD}|-)*(?:\.{WORD}(?:{WORD}|-)*)+",
            ARGUMENT,
            r"\{\{\{?[^{}]*\}?\}\}|'\{[^{}'\n]*\}'|'[{}]'|[$%#]?\{[^{}\n]*(?:\{[^{}\s]*\}[^{}\s]*)?\}",  # {{x}}, {n}
            # %s, %(n)d, %1$s, %<n>s, %PATH%, with letters that follow at once, as in %dMB; behind a digit only %s alone
            rf"(?<!\d)%(?:\([^()%]*\)|\d{{1,3}}[$:]|<\w+>)?{_WIDTH}[A-Za-z@]+(?:%(?![\w%(.*-]))?",
            rf"%{_WIDTH}[diuxXofeEgGcsr@](?![A-Za-z])|%%|(?<!\d)%[1-9]\d?(?![\w$]|[.,]\d)",
            rf"\$[A-Za-z_]{WORD}*|\$\([^()]*\)|\$[@*](?!\w)",  # $VAR, $(ls -l), $@
            r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});",
            rf"(?<!-)(?<!{WORD})--[A-Za-z](?:{WORD}|-)*",  # --option
            # Names of files and hosts, of what programs are made of, and sums of control.
            rf"(?<![{_A}.@/-])(?:{_NAME_PART}\.)+(?:{_ENDS})(?![{_A}])(?:/[^\s<>()\[\]{{}}\"'`“”„{WIDE}]*(?:{WORD}|[/#&=%~+-]))?",
            rf"(?<![{_A}/])(?:[A-Za-z]:\\|~?/)[{_A}.-]+(?:[\\/][{_A}.-]+)+(?<![.-])",
            rf"(?<![{_A}])[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+(?:\(\))?(?![{_A}])",
            rf"(?<![{_A}])[a-z]+[A-Z][A-Za-z0-9]*(?:\(\))?(?![{_A}])",
            rf"(?<![{_A}])[A-Za-z0-9]+(?:::[A-Za-z0-9]+)+(?:\(\))?(?![{_A}])",
            rf"(?<![{_A}])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{7,64}}(?![{_A}])|#[0-9A-Fa-f]{{6}}(?![{_A}])",
            r"[\ue000-\uf8ff]",
        )
    )
)
# Each of those has one of these, and most sentences have none.
_SIGN = re.compile(r"[`<@{%$&_\\/\ue000-\uf8ff]|\]\(|\[!|::|--|\.[a-z]|[a-z][A-Z]|[0-9a-f]{7}|#[0-9A-Fa-f]{6}")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,:/-]\d+)*(?![\w])")
_INSIDE = re.compile(r"[0-9A-Za-z\u00c0-\u024f]{2}")
_NAME = re.compile(r"(?<![\w`*/.-])[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]+)*(?![\w`])")


def spans(text: str) -> list[Span]:
    """The stretches of `text` to be kept as they are, in order; none overlaps another, and none is empty."""
    return list((_cached_spans if len(text) <= SHORT else _spans)(text))


def _spans(text: str) -> tuple[Span, ...]:
    return tuple(match.span() for match in _KEPT.finditer(text) if match[0]) if _SIGN.search(text) else ()


_cached_spans = lru_cache(maxsize=64)(_spans)  # a sentence is asked for several times on its way to the model


def map_outside_spans(text: str, change: Callable[[str], str]) -> str:
    """`text`, changed outside of what must not change."""
    parts, reach = [], 0
    for start, end in [*spans(text), (len(text), len(text))]:
        parts += [change(text[reach:start]), text[start:end]]
        reach = end
    return "".join(parts)


def hide_in_pairs(pairs: Iterable[tuple[str, str]], share: float, count: int) -> Iterator[tuple[str, str]]:
    """`pairs`, in a `share` of which placeholders, `count` at most, stand for stretches that both sides have.

    What is chosen follows from the pair alone. Numbers and names are hidden as well, so that a placeholder is met
    wherever a word could stand.
    """
    for source, target in pairs:
        seed = hashlib.blake2b(f"{source}\0{target}".encode("utf-8", "replace"), digest_size=8).digest()
        chosen = int.from_bytes(seed[:4]) < share * 2**32
        yield hide_spans(source, target, count, random.Random(seed)) if chosen else (source, target)


def hide_spans(source: str, target: str, count: int, draw: random.Random) -> tuple[str, str]:
    """The pair with some of the stretches that occur once on either side replaced, numbered as the source has them."""
    found: list[tuple[Span, int]] = []  # a stretch of the source, and where the target has it
    reach = 0
    for start, end in sorted({*spans(source), *(m.span() for p in (_NUMBER, _NAME) for m in p.finditer(source))}):
        text = source[start:end]
        place = target.find(text)
        once = place >= 0 and source.count(text) == 1 == target.count(text)
        if start >= reach and once and is_whole_word(target, place, place + len(text)) and draw.random() < HIDDEN:
            found.append(((start, end), place))
            reach = end
    found = found[:count]
    moved = [(place, place + end - start) for (start, end), place in found]
    if any(end > later for (_, end), (later, _) in pairwise(sorted(moved))):
        return source, target  # one lies within another on the other side
    return insert_placeholders(source, [span for span, _ in found]), insert_placeholders(target, moved)


def insert_placeholders(text: str, stretches: list[Span]) -> str:
    """`text` with the first of these stretches as the first placeholder, and so on."""
    for (start, end), mark in sorted(zip(stretches, PLACEHOLDERS, strict=False), reverse=True):
        text = text[:start] + mark + text[end:]
    return text


def is_whole_word(text: str, start: int, end: int) -> bool:
    """Whether a stretch is not a part of a longer word or number."""
    borders = (text[max(0, start - 1) : start + 1], text[end - 1 : end + 1])
    return not any(_INSIDE.fullmatch(border) for border in borders)
