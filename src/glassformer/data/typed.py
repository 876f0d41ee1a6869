"""English numbers and dates as people type them."""

from __future__ import annotations

import re

# What is left out of what the libraries write, or changed, each as often as the others.
WAYS = (
    *("as written",) * 4,
    "no comma",
    "no hyphen",
    "no comma, no word",
    "no comma, no hyphen, no word",
    "other case",
    "no comma, no hyphen, no word, other case",
)
_SMALL_WORDS = re.compile(r"\b(?:and|US|British|Swiss) ")


def typed(source: str, way: str) -> str:
    """`source` as people type it: without commas, without hyphens, without small words, in another case of letters."""
    if "comma" in way:
        source = source.replace(",", "")
    if "hyphen" in way:
        source = source.replace("-", " ")
    if "word" in way:
        source = _SMALL_WORDS.sub("", source)
    if "case" in way:
        source = source.capitalize() if source.islower() else source.lower()
    return source
