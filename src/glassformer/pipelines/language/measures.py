"""Amounts of money and of other units: where a text has one, which it is, and how a language writes it.

A translator that keeps a number may still make euros of dollars, or kilometres of kilograms. `find_measures` is strict
and finds what the source surely says; `mentioned_units` is lenient and gives all that a translation may have said. Some
forms mean one of several units, as ¥ and "pounds": they are units of their own, and any unit they may mean fits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from glassformer.common.strings import HAN
from glassformer.pipelines.language import TABLES, word_lists
from glassformer.pipelines.language.numbers import LANGUAGES, SCALES, one_of

Span = tuple[int, int]


class Forms(NamedTuple):
    """How a unit is written: by symbols, which are the same everywhere, and in words, a plural behind its singular."""

    symbols: tuple[str, ...]
    en: tuple[str, ...] = ()
    de: tuple[str, ...] = ()
    zh: tuple[str, ...] = ()

    def words(self, language: str) -> tuple[str, ...]:
        words: tuple[str, ...] = getattr(self, language)
        return words


def _split(forms: str) -> tuple[str, ...]:
    return tuple(forms.split(", ")) if forms else ()


def _units(kind: str) -> dict[str, Forms]:
    return {unit: Forms(*map(_split, forms)) for unit, forms in TABLES["units"][kind].items()}


MONEY, TIMES = _units("money"), _units("times")
UNITS = MONEY | TIMES | _units("others")
WRITTEN: dict[str, dict[str, str]] = TABLES["written"]
BEFORE = {"人民币": "CNY", "百分之": "%", "千分之": "‰", "摄氏": "°C", "华氏": "°F"}  # what stands before a number
SHORT_SCALES = {"k": 3, "K": 3, "m": 6, "M": 6, "mn": 6, "b": 9, "B": 9, "bn": 9, "tn": 12}  # of money alone
WRITTEN_SCALES = {
    "en": SCALES["en"],
    "de": SCALES["de"] | {"Millionen": 6, "Milliarden": 9, "Billionen": 12},
    "zh": SCALES["zh"] | {"百": 2, "十万": 5},
}

MEANT = {unit: _split(others) for unit, others in TABLES["meant"].items()}
MADE = {  # units that a translation may put together, as in 每小时60英里
    "km/h": ("km", "hour"), "mph": ("mile", "hour"), "m/s": ("m", "second"), "MB/s": ("MB", "second"),
    "Mbit/s": ("Mbit", "second"), "Gbit/s": ("Gbit", "second"),
}  # fmt: skip
LOOSE = {
    language: {form: units for units, forms in table.items() for form in forms.split()}
    for language, table in TABLES["loose"].items()
}
PARTS = {form: unit for unit, forms in TABLES["parts"].items() for form in forms.split()}
TRAPS = word_lists("traps")


@dataclass(frozen=True)
class Measure:
    """A number with its unit."""

    start: int
    end: int
    unit: str
    number: Span
    scale: int = 0  # the power of ten that is written between or behind them: 3 in $20k, 4 in 5万元
    plain: bool = True  # nothing but number, space and unit; not so with a scale, in 5-mile and in 500多公里


_SPACE = "[ \u00a0\u2009\u202f]?"
_LETTER = rf"[^\W{HAN}]"  # or digit: what ends no word where Chinese is written without spaces
_SINGLE_END = rf"(?!{_LETTER}|['’&+#-]|\.\w)"
_UNGLUED = set("sABKJ")  # iPhone 5s, 5A, 4K
_WIDE = {ord("０") + n: str(n) for n in range(10)} | {ord("＄"): "$", ord("￥"): "¥", ord("％"): "%", ord("￡"): "£"}
_WIDE |= {ord("º"): "°", ord("˚"): "°"}  # often typed for it
_DIGIT = re.compile("[0-9０-９]")
_RUN = r"[0-9]+(?:[.,:/'’–-][0-9]+|[\u00a0\u202f][0-9]{3}(?![0-9]))*"
_NUMBER = re.compile(_RUN)
_SPACED = re.compile(rf"[0-9]{{1,3}}(?: [0-9]{{3}})+(?![0-9])(?:,[0-9]+)?|{_RUN}")  # 10 000 in German
_STUCK = re.compile(rf"(?:(?:(?<![0-9])[xX]|(?![xX]){_LETTER})-?|[#@\\]|第 ?)\Z")  # a name or a rank
_YEAR = re.compile("1[0-9]{3}|2[01][0-9]{2}")
_MONTH = re.compile("[ 0-9]*月")
_LABEL = re.compile(  # what a number with a letter behind it is the name of
    r"(?:\b(?:section|chapter|figure|fig|table|part|paragraph|article|appendix|room|class|type|level|no|number|model|"
    r"version|page|seat|gate|line|route|group|size|step|vitamin|iphone|abschnitt|kapitel|abbildung|abb|tabelle|teil|"
    r"absatz|artikel|paragraf|anhang|raum|zimmer|klasse|typ|stufe|nr|nummer|modell|seite|platz|linie|gruppe|größe|"
    r"schritt)|§)\.?[ \u00a0]?\Z",
    re.IGNORECASE,
)


def find_measures(text: str, language: str) -> list[Measure]:
    """The numbers in digits that have a unit beside them, in order."""
    if not _DIGIT.search(text) or language not in LANGUAGES:
        return []
    text = text if text.isascii() else text.translate(_WIDE)
    found: list[Measure] = []
    for match in (_SPACED if language == "de" else _NUMBER).finditer(text):
        taken = found[-1].end if found else 0
        measure = _unit_first(text, match, language, taken) or _unit_last(text, match, language)
        found += [measure] if measure else []
    return found


def mentioned_units(text: str, language: str) -> Counter[str]:
    """All units that `text` names, or may name, with a number or without."""
    if language not in LANGUAGES:
        return Counter()
    text = text if text.isascii() else text.translate(_WIDE)
    names = _loose_names(language)
    found: Counter[str] = Counter()
    for match in _loose(language).finditer(text):
        form = match[match.lastgroup or 0]
        found.update(names.get(form) or names.get(form.lower(), ()))
    for unit, (first, second) in MADE.items():
        found[unit] = max(found[unit], min(found[first], found[second]))
    return +found


def format_measure(number: str, unit: str, language: str) -> str:
    """A number with its unit as `language` usually writes it."""
    if style := WRITTEN[language].get(unit):
        return style.format(number)
    forms = UNITS[unit]
    if unit in forms.symbols and unit not in MONEY:
        return f"{number} {unit}"
    words = forms.words(language)
    if language == "zh":
        return number + ("" if unit in MONEY and unit not in ("cent", "pence") else " ") + words[0]
    return f"{number} {words[0] if number == '1' else words[:2][-1]}"


def _unit_first(text: str, number: re.Match[str], language: str, taken: int) -> Measure | None:
    """The measure whose unit stands before its number, with what is said of it again behind: $2 million, $20 USD."""
    start, end = number.span()
    before = _before().search(text, max(taken, start - 6), start) if start > taken else None
    if before is None:
        return None
    unit, scale = _names(language)[before["unit"]], 0
    if multiple := _scale_behind(language).match(text, end):
        scale, end = _power(multiple["scale"], language), multiple.end()
    again = _unit_behind(language).match(text, end)
    if again and again["unit"]:
        other = _name(again["unit"], language)
        if other == unit or other in MEANT.get(unit, ()) or unit in MEANT.get(other, ()):
            end, unit = again.end(), other if unit == "¥" else unit
    return Measure(before.start(), end, unit, number.span(), scale, multiple is None)


def _unit_last(text: str, number: re.Match[str], language: str) -> Measure | None:
    """The measure whose unit stands behind its number."""
    start, end = number.span()
    behind = _unit_behind(language).match(text, end)
    if behind is None or _STUCK.search(text, max(0, start - 2), start):
        return None
    form = behind["money"] or behind["unit"] or behind["many"] or behind["joined"]
    unit, glued = _name(form, language), not behind["gap"]
    if len(form) == 1 and form.isascii() and form.isalpha():
        label = _LABEL.search(text, max(0, start - 14), start)
        if label or (glued and form in _UNGLUED):
            return None
    if unit in TIMES and _YEAR.fullmatch(number[0]) and form.lower() in ("s", UNITS[unit].words(language)[0].lower()):
        return None  # the word for one, not for many, behind what may be a year: 2026年, "in 2026 second place"
    if not unit or (form == "年" and _MONTH.match(text, behind.end())):
        return None
    scale = _power(behind["scale"] or behind["scales"] or "", language)
    return Measure(start, behind.end(), unit, (start, end), scale, bool(behind["unit"]))


def _power(form: str, language: str) -> int:
    """The power of ten that a scale stands for."""
    bare = form.rstrip("多余").capitalize() if language == "de" else form.rstrip("多余").lower()
    return SHORT_SCALES.get(form) or WRITTEN_SCALES[language].get(bare, 0)


def _name(form: str, language: str) -> str:
    """The unit that is written so; nothing for a word that only looks like one."""
    names = _names(language)
    return names[form] if form in names else names[form.lower()]


@cache
def _names(language: str) -> dict[str, str]:
    """Units by their symbols, their words in small letters, and what stands before a number."""
    traps = dict.fromkeys((word.lower() for word in TRAPS[language]), "")
    words = {word.lower(): name for name, forms in UNITS.items() for word in forms.words(language)}
    symbols = {symbol: name for name, forms in UNITS.items() for symbol in forms.symbols}
    return traps | words | BEFORE | symbols


@cache
def _loose_names(language: str) -> dict[str, tuple[str, ...]]:
    """All units that a form may mean in a translation."""
    names = {form: (unit, *MEANT.get(unit, ())) for form, unit in _names(language).items() if unit}
    parts = {form: (unit,) for form, unit in PARTS.items()} if language == "de" else {}
    loose = {form: _split(units) for form, units in (LOOSE[language] | LOOSE["symbols"]).items()}
    return parts | names | loose


def _in_any_case(forms: Iterable[str]) -> str:
    return f"(?ai:{one_of(forms)})"


def _words(units: Iterable[Forms], language: str) -> str:
    words = [word for forms in units for word in forms.words(language)]
    if language == "zh":
        return one_of([*words, *TRAPS["zh"]])
    return rf"{_in_any_case(words)}(?!{_LETTER})"


def _symbols(units: Iterable[Forms], single: bool) -> Iterator[str]:
    """Either the symbols that are one letter, or all others."""
    for symbol in (symbol for forms in units for symbol in forms.symbols):
        if (len(symbol) == 1 and symbol.isascii() and symbol.isalpha()) is single:
            yield symbol


@cache
def _before() -> re.Pattern[str]:
    signs = [symbol for forms in MONEY.values() for symbol in forms.symbols if symbol not in ("¢", "ct")]
    return re.compile(rf"(?<!{_LETTER})(?P<unit>{one_of([*signs, *BEFORE])}){_SPACE}\Z")


@cache
def _scales(language: str, money: bool) -> str:
    if language == "zh":
        words = rf"(?:{one_of(WRITTEN_SCALES['zh'])}[多余]?|[多余])"
    else:
        words = rf"{_in_any_case(WRITTEN_SCALES[language])}(?!{_LETTER})"
    return rf"(?:{words}|{one_of(SHORT_SCALES)})" if money else words


@cache
def _scale_behind(language: str) -> re.Pattern[str]:
    return re.compile(rf"{_SPACE}(?P<scale>{_scales(language, True)})(?!{_LETTER})")


@cache
def _unit_behind(language: str) -> re.Pattern[str]:
    """A unit, maybe behind a scale; where money is, the scale may be a letter, and "5m euros" are no metres."""
    money, units = MONEY.values(), UNITS.values()
    coins = rf"(?:{one_of(_symbols(money, False))}(?!{_LETTER})|{_words(money, language)})"
    full = rf"(?:{one_of(_symbols(units, False))}(?!{_LETTER})|{_words(units, language)})"
    unit = rf"(?:{full}|{one_of(_symbols(units, True))}{_SINGLE_END})"
    return re.compile(
        rf"(?P<gap>{_SPACE})(?:(?P<scale>{_scales(language, True)})\.?{_SPACE}(?P<money>{coins})|(?P<unit>{unit})|"
        rf"(?P<scales>{_scales(language, False)})\.?{_SPACE}(?P<many>{unit}))|[-\u2011](?P<joined>{full})"
    )


@cache
def _loose(language: str) -> re.Pattern[str]:
    units = UNITS.values()
    words = [word for forms in units for word in forms.words(language)] + [*LOOSE[language]]
    begin = rf"(?<![^\W\d{HAN}])"
    single = [*_symbols(units, True), *LOOSE["symbols"]]
    parts = [
        rf"{begin}(?P<symbol>{one_of(_symbols(units, False))})(?![^\W\d{HAN}])",
        rf"(?:(?<=[0-9])|(?<=[0-9][ \u00a0\u2009\u202f-]))(?P<single>{one_of(single)})(?!{_LETTER})",
    ]
    traps = TRAPS[language]
    if language == "zh":
        parts.append(rf"(?P<word>{one_of([*words, *traps])})")
    elif language == "en":
        parts.append(rf"{begin}(?P<word>{_in_any_case(words)})(?!{_LETTER})")
    else:  # a longer word may begin so: Eurobetrag, Meilenlauf
        long, short = [word for word in words if len(word) > 3], [word for word in words if len(word) < 4]
        parts.append(rf"{begin}(?P<trap>{_in_any_case(traps)})\w*")
        parts.append(rf"{begin}(?P<long>{_in_any_case(long)})[a-zäöüß]*")
        parts.append(rf"{begin}(?P<word>{_in_any_case(short)})(?!{_LETTER})")
        parts.append(rf"(?P<part>{_in_any_case(PARTS)})")
    return re.compile("|".join(parts))
