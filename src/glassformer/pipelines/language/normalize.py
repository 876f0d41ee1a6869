"""A sentence as a model has learnt to read it.

What people type, and what is copied out of other programs, has signs that mean the same as others to a reader and not
to a model: of "I can´t swim" and "I cant swim" it made "Ich kann schwimmen". They are put right before it reads them.
Code, addresses and the like stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

from glassformer.data.protect import spans
from glassformer.pipelines.language import TABLES
from glassformer.pipelines.language.language import WORDS
from glassformer.pipelines.language.numbers import blank_out
from glassformer.pipelines.language.times import find_rewrites

_SILENT = dict.fromkeys((0xAD, 0x200B, 0x2060, 0xFEFF))  # a hyphen that is not seen, and spaces without width
_LIGATURES = {0xFB00 + n: letters for n, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"))}
_SPACE = re.compile(r"(?<![0-9])[\u00a0\u2000-\u200a\u202f\u205f]|[\u00a0\u2000-\u200a\u202f\u205f](?![0-9])")
_SPACES = re.compile(r"[ \t]*\t[ \t]*|  +")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])[´`′ʼ‘＇](?=[^\W\d_])")
_ODD = re.compile(r"[\t´`]|  ")
_NOT = re.compile(r"\b(are|ca|could|did|does|do|had|has|have|is|must|need|should|was|were|wo|would)nt\b", re.IGNORECASE)
_STRESSED = re.compile(r"(?<!^)\b(?:[A-Z]{2,6}N['’]T|NEVER|ALWAYS|MUST|VERY|ONLY|EVERY|REALLY)\b")
_SHORT: dict[str, dict[str, str]] = TABLES["abbreviations"]  # a full stop at the end of the sentence stays
_WORD = re.compile(r"[^\W\d_]+")
_CAPITALS = re.compile(r"[A-ZÄÖÜ]{2}\W+[A-ZÄÖÜ]{2}")
_I = re.compile(r"\bi\b")
_LONG = 4  # letters of a word, beyond which it is hardly an abbreviation


def normalize(text: str, language: str, target: str = "") -> str:
    """`text` with plain signs for those that look like them, abbreviations in full, and times and dates as a model that
    translates into `target` knows them."""
    if not text.isascii() or _anything(language).search(text):
        text = _map_outside_spans(text, lambda part: _normalize_plain(part, language))
    found = find_rewrites(text, language, target)
    whole = blank_out(text, spans(text), "\0") if found else ""
    parts, reach = [], 0
    for one in found:
        if "\0" not in whole[one.start : one.end]:
            parts += [text[reach : one.start], one.text]
            reach = one.end
    return "".join((*parts, text[reach:]))


def _normalize_plain(text: str, language: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(_SILENT | _LIGATURES)
        text = _SPACE.sub(" ", text)
    if _ODD.search(text) or not text.isascii():
        text = _APOSTROPHE.sub("'", _SPACES.sub(" ", text))
    if language == "en":
        text = _NOT.sub(lambda match: f"{match[1]}n't", text)
        text = text if text.isupper() else _STRESSED.sub(lambda match: match[0].lower(), text)
    for short, words in _shortened(language):
        ends = text.endswith(".") and not short.sub("", text).endswith(".")
        text = short.sub(words, text) + "." * ends
    return text


@cache
def _shortened(language: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(short), words) for short, words in _SHORT.get(language, {}).items()]


@cache
def _anything(language: str) -> re.Pattern[str]:
    """A pattern of all that is changed in a text of ASCII."""
    english = (_NOT.pattern, _STRESSED.pattern) if language == "en" else ()
    return re.compile("|".join((_ODD.pattern, *english, *_SHORT.get(language, {}))))


def is_all_caps(text: str, language: str) -> bool:
    """Whether a sentence is all in capitals, and not made of abbreviations."""
    if language not in WORDS or not _CAPITALS.search(text) or not (rest := blank_out(text, spans(text), " ")).isupper():
        return False
    words = [word for word in _WORD.findall(rest) if len(word) > 1]
    common = any(word.casefold() in WORDS[language] for word in words)
    return len(words) > 1 and (common or (len(words) > 2 and sum(map(len, words)) > _LONG * len(words)))


def to_sentence_case(text: str) -> str:
    """A sentence in capitals as it is written otherwise."""
    text = _I.sub("I", _map_outside_spans(text, str.lower))
    first = _WORD.search(text)
    return text if first is None else text[: first.start()] + first[0].capitalize() + text[first.end() :]


def to_capitals(text: str) -> str:
    """A sentence in capitals."""
    return _map_outside_spans(text, str.upper)


def _map_outside_spans(text: str, change: Callable[[str], str]) -> str:
    """`text`, changed outside of what must not change."""
    parts, reach = [], 0
    for start, end in [*spans(text), (len(text), len(text))]:
        parts += [change(text[reach:start]), text[start:end]]
        reach = end
    return "".join(parts)
