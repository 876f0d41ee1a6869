"""Words of the three languages that stand for numbers: of quantities, of scales, of months."""

from __future__ import annotations

from collections.abc import Iterable


def _apart(**words: str) -> dict[str, list[str]]:
    return {language: some.split() for language, some in words.items()}


FEW = _apart(
    en="zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen",
    de="null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn",
    zh="零 一 二 三 四 五 六 七 八 九",
)
TENS = _apart(
    en="twenty thirty forty fifty sixty seventy eighty ninety",
    de="zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
)
MONTHS = _apart(
    en="January February March April May June July August September October November December",
    de="Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
)
SCALES = {  # by their power of ten
    "en": {"thousand": 3, "million": 6, "billion": 9, "trillion": 12},
    "de": {"Tausend": 3, "Tsd": 3, "Million": 6, "Mio": 6, "Milliarde": 9, "Mrd": 9, "Billion": 12},
    "zh": {"千": 3, "万": 4, "亿": 8, "千万": 7, "百万": 6, "万亿": 12},
}


def one_of(words: Iterable[str]) -> str:
    """A pattern of them, the longest first."""
    return f"(?:{'|'.join(sorted(words, key=len, reverse=True))})"
