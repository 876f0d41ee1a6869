"""Texts as a caller gives them, any iterable of strings, read once; and how wide they are shown."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable, Mapping

from glassformer.errors import InputError


def strings(given: Iterable[str], name: str) -> list[str]:
    """Texts as a list; the lines of an open file without their ends."""
    if isinstance(given, str | bytes):
        raise InputError(f"{name} must be a list of texts, not one string; write [text], or for one text call t(text)")
    if isinstance(given, Mapping | set | frozenset):
        raise InputError(f"{name} is a {type(given).__name__}, whose order says nothing; give a list of texts")
    if not isinstance(given, Iterable):
        raise InputError(f"{name} is a {type(given).__name__}; give a list of texts, or anything that yields them")
    found = list(given)
    for i, text in enumerate(found):
        if not isinstance(text, str):
            raise InputError(f"{name}[{i}] is a {type(text).__name__}; every text must be a string")
    return [line.removesuffix("\n") for line in found] if isinstance(given, io.TextIOBase) else found


def one_string(given: str) -> str:
    if not isinstance(given, str):
        raise InputError(f"this takes one text, not a list or a {type(given).__name__}; for many: t.translate(texts)")
    return given


def cells(text: str) -> int:
    """The width of a text in letters; Chinese signs are twice as wide, accents that stand on a letter take no room."""
    wide = {"W": 2, "F": 2}
    return sum(0 if unicodedata.combining(sign) else wide.get(unicodedata.east_asian_width(sign), 1) for sign in text)


def cut_to(text: str, width: int) -> str:
    """As many of the text's parts, two spaces apart, as have room: half a number would be another number."""
    kept = text
    while cells(kept) > width and "  " in kept:
        kept = kept.rpartition("  ")[0].rstrip()
    while cells(kept) > width:
        kept = kept[:-1]
    return kept
