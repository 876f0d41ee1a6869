"""The numbers of a text, and whether a translation has kept them.

A number is kept if it stands in the translation as it is, or as the language writes it: 1,234.5 as 1.234,5, 3 PM as 15,
10,000 as 1万, 3/1/2026 as 01.03.2026, March as 3月. What is a number in the source stays digits. A number that the
source has not is an invention, unless a word of the source says it.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from glassformer.pipelines.language.words import FEW, MONTHS, SCALES, TENS

Span = tuple[int, int]

_DIGITS = {ord("０") + n: str(n) for n in range(10)}  # full width
_NUMBER = re.compile(r"[0-9]+(?:[.,\u00a0\u202f][0-9]+)*")
_SPACED = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?: [0-9]{3})+(?![0-9])")  # 10 000
_COMMAS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+\.[0-9]+")  # 1,234.5
_POINTS = re.compile(r"[0-9]{1,3}(?:[.\u00a0\u202f][0-9]{3})+(?:,[0-9]+)?|[0-9]+,[0-9]+")  # 1.234,5
_CLOCK = re.compile(r"(?<![0-9.,])([0-9]{1,2})\.([0-5][0-9])(?= ?Uhr)")
_DATE = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4}|[0-9]{2})")
_DATED = re.compile(  # 12/31/2026, 2026-12-31
    r"(?<![0-9/])([0-9]{1,2})([/-])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})(?![0-9/])|"
    r"(?<![0-9])([0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9])"
)
_SHARP = re.compile(r"(?<![0-9:])[0-9]{1,2}:(00)(?![0-9:])")  # 5:00, which is also 5 o'clock
_AFTERNOON = re.compile(
    r"([0-9]{1,2})(?:[:.][0-9][0-9]){0,2}\s*([AaPp])\.?\s?[Mm]\b|(下午|晚上|中午|上午|凌晨|早上)\s*([0-9]{1,2})"
)
_SCALE_NAMES = {
    "en": {6: (" million", " million"), 9: (" billion", " billion"), 12: (" trillion", " trillion")},
    "de": {6: (" Million", " Millionen"), 9: (" Milliarde", " Milliarden"), 12: (" Billion", " Billionen")},
    "zh": {4: ("万", "万"), 8: ("亿", "亿")},
}
_WORDS = {
    "en": "|".join((*FEW["en"], *TENS["en"])) + "|hundreds?|thousands?|millions?|billions?|first|second|third|fourth|"
    "fifth|sixth|seventh|eighth|ninth|tenth|once|twice|single|double|both|dozen|half|either|neither|another|noon|midnight",
    "de": "null|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\\w*zehn|\\w+zig|hundert|"
    "\\w*tausend|Million(?:en)?|Milliarden?|erste[nmrs]?|zweite[nmrs]?|dritte[nmrs]?|vierte[nmrs]?|fünfte[nmrs]?|beide[nmrs]?|"
    "einmal|zweimal|dreimal|doppelt\\w*|Dutzend|halbe?\\w*",
}
# Each whole, or its first three letters; but a "Mär" is a tale.
_MONTHS = {
    language: "|".join(name if name == "März" else f"{name[:3]}(?:{name[3:]})?" for name in names)
    for language, names in MONTHS.items()
}
_HAN = re.compile("[〇零一二两三四五六七八九十百千万亿半双首]")


@dataclass(frozen=True)
class Number:
    """A stretch of digits, and what it may mean."""

    start: int
    end: int
    text: str
    values: frozenset[str]
    scale: int = 0  # the power of ten that a word behind it stands for, as in 3 million
    reach: int = 0  # the end of that word


def numbers(text: str, language: str, apart: Sequence[Span] = ()) -> list[Number]:
    """The numbers of `text` outside the stretches `apart`."""
    text = text.translate(_DIGITS) if not text.isascii() else text
    if _NUMBER.search(text) is None:
        return []
    text = without(text, apart, "\0")  # what stands there is part of no number beside it
    if language == "de":
        text = _CLOCK.sub(r"\1:\2", _SPACED.sub(lambda match: match[0].replace(" ", "\u202f"), text))
    inside = {match.start(1) for match in _SHARP.finditer(text)}
    more: dict[int, set[str]] = {}
    for match in _DATED.finditer(text):
        for group in (1, 3, 4, 5, 6, 7):
            if match[group]:
                more.setdefault(match.start(group), set()).add(match[group].lstrip("0") or "0")
    for match in _AFTERNOON.finditer(text):
        hour, half = (match[1], match[2]) if match[1] else (match[4], match[3])
        late = half in ("p", "P", "下午", "晚上", "中午")
        value = int(hour) % 12 + 12 * late
        more.setdefault(match.start(1) if match[1] else match.start(4), set()).update({str(value), f"{value:02}"})
    found: list[Number] = []
    for match in _NUMBER.finditer(text):
        if match.start() in inside:
            continue
        date = _DATE.fullmatch(match[0])
        if date and (int(date[1]) <= 31 and int(date[2]) <= 12):
            for group in (1, 2, 3):
                values = frozenset({date[group], date[group].lstrip("0") or "0"})
                found.append(
                    Number(date.start(group) + match.start(), date.end(group) + match.start(), date[group], values)
                )
            continue
        meant = frozenset({match[0], *more.get(match.start(), ()), *values_of(match[0], language)})
        scale, reach = _scale(text, match.end(), language)
        found.append(multiplied(Number(match.start(), match.end(), match[0], meant, 0, reach), scale, language))
    return found


def multiplied(number: Number, scale: int, language: str) -> Number:
    """A number that has none yet, with the scale that is told behind it."""
    values = frozenset(_scaled(value, scale) for value in values_of(number.text, language)) if scale else None
    return replace(number, values=values, scale=scale) if values and not number.scale else number


def without(text: str, stretches: Sequence[Span], mark: str) -> str:
    """`text` with as many marks in the place of each stretch."""
    letters = list(text) if stretches else []
    for start, end in stretches:
        letters[start:end] = mark * (end - start)
    return "".join(letters) or text


def values_of(token: str, language: str) -> set[str]:
    """What a number means where it is written in `language`."""
    german, other = language == "de", language not in ("de", "en", "zh")
    values = set()
    if token.isdigit():
        values.add(token)
    if (german or other) and _POINTS.fullmatch(token):
        values.add(re.sub("[.\u00a0\u202f]", "", token).replace(",", "."))
    if not german and _COMMAS.fullmatch(token):
        values.add(token.replace(",", ""))
    return values


def _scaled(value: str, power: int) -> str:
    """`value` times a power of ten, to the last digit."""
    whole, _, part = value.partition(".")
    whole, part = whole + part[:power].ljust(power, "0"), part[power:].rstrip("0")
    return ".".join(filter(None, (whole.lstrip("0") or "0", part)))


def _scale(text: str, end: int, language: str) -> Span:
    """The power of ten that a word behind a number stands for, and where the word ends."""
    pattern = _scale_words(language)
    match = pattern.match(text, end) if pattern is not None else None
    if match is None:
        return 0, end
    scales = {word.lower(): power for word, power in SCALES[language].items()}
    return scales[match[1].lower()], match.end()


@cache
def _scale_words(language: str) -> re.Pattern[str] | None:
    words = "|".join(sorted(SCALES.get(language, ()), key=len, reverse=True))
    ends = {"de": r"(?:en|n|s)?\b\.?", "en": r"s?\b"}.get(language, "")
    return re.compile(rf"[ \u00a0\u202f-]{{0,2}}({words}){ends}", re.IGNORECASE) if words else None


def scaled(token: str, scale: int, source: str, target: str) -> str:
    """A number with such a word behind it, as the target's language writes it: 5万 is 50,000, and 3 million 300万."""
    values = values_of(token.translate(_DIGITS), source)
    value = _scaled(min(values, key=len, default=token), scale)
    whole = len(value.partition(".")[0]) - 1  # the power of ten of its first digit
    names = _SCALE_NAMES[target]
    power = max((power for power in names if power <= whole), default=0)
    if not power:
        return swapped(f"{int(value):,}", "en", target) if value.isdecimal() else swapped(value, "en", target)
    few = _unscaled(value, power)
    one, many = names[power]
    return swapped(few, "en", target) + (one if few == "1" else many)


def _unscaled(value: str, power: int) -> str:
    whole, _, part = value.partition(".")
    return ".".join(filter(None, (whole[:-power], (whole[-power:] + part).rstrip("0"))))


def swapped(token: str, source: str, target: str) -> str:
    """A number with the other marks, where German is one of the languages."""
    return token.translate({ord(","): ".", ord("."): ","}) if (source == "de") != (target == "de") else token


def localised(token: str, source: str, target: str) -> str:
    """A number of the source as the target's language writes it; one that may be a version stays as it is."""
    token = token.translate(_DIGITS)
    if "de" not in (source, target) or source == target:
        return token
    comma, point = (",", "\\.") if target == "de" else ("\\.", ",")
    grouped = re.fullmatch(rf"[0-9]{{1,3}}(?:{comma}[0-9]{{3}})+(?:{point}[0-9]+)?", token)
    return swapped(token, source, target) if grouped else token


@dataclass(frozen=True)
class Comparison:
    """The numbers of a source that its translation has lost, and those that it has made up."""

    lost: list[Number]
    invented: list[Number]

    def __bool__(self) -> bool:
        return not self.lost and not self.invented


def compare(
    source: list[Number], target: list[Number], texts: tuple[str, str], languages: tuple[str, str]
) -> Comparison:
    """Whether the numbers of a source are those of its translation; `texts` are what words are looked for in."""
    lost, left = _apart(source, target, lambda number: (f"{number.text}e{number.scale}",))
    lost, left = _apart(lost, left, lambda number: number.values)
    if lost:
        named = Counter(_months(texts[1], languages[1]))
        source, lost = lost, []
        for number in source:
            value = number.text.lstrip("0")
            if named[value]:
                named[value] -= 1
            else:
                lost.append(number)
    if left:
        months = set(_months(texts[0], languages[0]))
        left = [number for number in left if number.text.lstrip("0") not in months]
        left = left[_spelt(texts[0], languages[0]) :]
    return Comparison(lost, left)


def _apart(
    source: list[Number], target: list[Number], keys: Callable[[Number], Iterable[str]]
) -> tuple[list[Number], list[Number]]:
    """What is left of both when each number of the source takes the first of the target that has a key of its own."""
    waiting: dict[str, deque[int]] = {}
    for place, number in enumerate(target):
        for key in keys(number):
            waiting.setdefault(key, deque()).append(place)
    taken, lost = set[int](), []
    for number in source:
        first = len(target)
        for key in keys(number):
            line = waiting.get(key)
            while line and line[0] in taken:
                line.popleft()
            first = min(first, line[0]) if line else first
        if first < len(target):
            taken.add(first)
        else:
            lost.append(number)
    return lost, [number for place, number in enumerate(target) if place not in taken]


def _months(text: str, language: str) -> list[str]:
    """The numbers of the months that are named."""
    pattern = _pattern("months", language)
    if pattern is None:
        return []
    keys = [name[:3] for name in MONTHS[language]]
    found = (match[0] for match in pattern.finditer(text))
    # Asked as they were found: what is the same letter there, as ſ and s are, need not be one in lower case.
    return [next(str(n) for n, key in enumerate(keys, 1) if re.match(key, one, re.IGNORECASE)) for one in found]


def _spelt(text: str, language: str) -> int:
    """How many words of `text` are numbers."""
    if language == "zh":
        return len(_HAN.findall(text))
    pattern = _pattern("words", language)
    return 0 if pattern is None else sum(1 for _ in pattern.finditer(text))


@cache
def _pattern(kind: str, language: str) -> re.Pattern[str] | None:
    table = _WORDS if kind == "words" else _MONTHS
    return re.compile(rf"\b(?:{table[language]})\b", re.IGNORECASE) if language in table else None
