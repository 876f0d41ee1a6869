"""Numbers in words, in English, German and Chinese: where a text has one, what it says, and how to say it.

`exact` finds those that say one number and nothing else: not "a hundred" or "hundreds", which may be many, and not what
reads in two ways, as "seven thirty" or "a twenty-second delay". `said` is all that a translation may have said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from glassformer.common.errors import DataError
from glassformer.data.numerals import spell
from glassformer.pipelines.language.words import FEW, SCALES, TENS, one_of

LANGUAGES = ("en", "de", "zh")
SMALL = 12  # up to here a translation may say a number in other words, as "both", or a word be none, as in 十进制


@dataclass(frozen=True)
class Spelt:
    """A number in words."""

    start: int
    end: int
    value: int

    def digits(self, language: str) -> str:
        """It as `language` writes it in digits."""
        mark = "" if self.value < 10_000 or language == "zh" else "." if language == "de" else ","
        return f"{self.value:,}".replace(",", mark)

    def words(self, language: str) -> str:
        """It as `language` says it; in digits where there is nobody to ask."""
        try:
            return in_chinese(self.value) if language == "zh" else spell(self.value, language)
        except DataError:
            return self.digits(language)


def exact(text: str, language: str) -> list[Spelt]:
    """The numbers of some size that are told in words in `text`, and mean exactly that."""
    if language not in LANGUAGES or not _TELLING[language].search(text):
        return []
    found = _exact_chinese(text) if language == "zh" else _exact(text, language)
    least = 3 if language == "en" else SMALL + 1
    return [one for one in found if one.value >= least]


def said(text: str, language: str) -> Counter[int]:
    """All that is told in words in `text`, or may be, and how often."""
    if language == "en":
        text = _EN_ORDINAL.sub(lambda match: _ORDINALS[match[0].lower()], text)
        return Counter(_english(match[0]) for match in _NUMBERS["en"].finditer(text))
    if language == "de":
        text = _DE_JOINT.sub("", text.lower().replace("dritt", "drei").replace("siebt", "sieben"))
        return Counter(_german(match[0]) for match in _DE_BEGINNING.finditer(text))
    runs = [match[0] for match in _CHINESE.finditer(text)] if language == "zh" else []
    values = [_chinese(run) or _chinese("一" + run) for run in runs]
    return Counter(value for value in values if value)


_TELLING = {  # a text without any of these says nothing beyond that
    "en": re.compile(
        r"\b(?:t(?:hree|en\b|welve|hirt|went)|f(?:our|ive\b|ift|orty)|s(?:ix|even)|eight|nine|eleven|"
        r"hundred|thousand|million|[bt]r?illion)",
        re.IGNORECASE,
    ),
    "de": re.compile("zehn|zig|drei(?:ß|ss)ig|hundert|tausend|illi", re.IGNORECASE),
    "zh": re.compile("[十百千万亿]|[零〇一二三四五六七八九]{4}年"),
}


def _exact(text: str, language: str) -> Iterator[Spelt]:
    value = _english if language == "en" else _german
    taken = -2
    for match in _NUMBERS[language].finditer(text):
        start, end = match.span()
        beside = _BESIDE[language].match(text, end)
        alone = start > taken + 1 and not beside
        taken = beside.end() if beside else end
        name = _NAME.match(text, max(0, start - 2)) or _QUOTED.fullmatch(text, max(0, start - 1), end + 1)
        if alone and not name and not _VAGUE[language].search(text, max(0, start - 8), end):
            yield Spelt(start, end, value(match[0]))


# English: two million, three hundred thousand and forty-five; as a year, nineteen eighty-four.
_FEW, _TENS = FEW["en"], TENS["en"]
_EN = {word: n for n, word in enumerate(_FEW)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}
_EN_SCALES: dict[str, int] = {word: 10**power for word, power in SCALES["en"].items()}
_ORDINALS = {f"{word}th": word for word in (*_FEW[4:], "hundred", *_EN_SCALES)}
_ORDINALS |= {f"{word[:-1]}{end}": word for word in _TENS for end in ("ieth", "ies")}
_ORDINALS |= {"first": "one", "second": "two", "third": "three", "fifth": "five", "eighth": "eight", "ninth": "nine"}
_ORDINALS["twelfth"] = "twelve"
_EN_ORDINAL = re.compile(rf"\b{one_of(_ORDINALS)}\b", re.IGNORECASE)
_UNIT = rf"(?:-{one_of(_FEW[1:10])}\b| {one_of(_FEW[1:10])}\b(?!-))"
_ROUND = rf"{one_of(_TENS)}\b{_UNIT}?"  # from twenty to ninety-nine
_TWO = rf"(?:{_ROUND}|{one_of(_FEW)}\b)"
_HUNDREDS = rf"(?:{_TWO}|a)[ -]hundred\b(?:(?: and)?[ -]{_TWO}(?![ -]hundred\b))?"
_THREE = rf"(?:{_HUNDREDS}|{_TWO})"
_SCALE = rf"[ -]{one_of(_EN_SCALES)}\b"
_MORE = rf"(?:(?:,? and)? {_THREE}|, {_HUNDREDS})"
_EN_NUMBER = (
    rf"{one_of((*_FEW[13:], 'twenty'))} (?:{_ROUND}|{one_of(_FEW[10:])}\b)(?!-)|"
    rf"(?:{_THREE}|a){_SCALE}(?:(?:{_MORE}|, {_THREE}){_SCALE})*{_MORE}?|{_THREE}"
)


def _english(text: str) -> int:
    whole = part = 0
    for word in re.findall("[a-z]+", text.lower()):
        value = _EN.get(word, 1)
        if word in _EN_SCALES:
            whole, part = whole + part * _EN_SCALES[word], 0
        elif word == "hundred" or (0 < part < 100 and value >= 10):  # "eighty" is the second half of a year
            part = part * 100 + (value if word != "hundred" else 0)
        elif word != "and":
            part += value
    return whole + part


# German: zwei Millionen dreihunderttausendfünfundvierzig; as a year, neunzehnhundertvierundachtzig.
_DE_FEW, _DE_TENS = FEW["de"], TENS["de"]
_DE = {word: n for n, word in enumerate(_DE_FEW)} | {word: 10 * n for n, word in enumerate(_DE_TENS, 2)}
_DE |= {"": 0, "eins": 1, "eine": 1, "dreissig": 30}
_DE_SCALES: dict[str, int] = {word.lower(): 10 ** SCALES["de"][word] for word in ("Million", "Milliarde", "Billion")}
_DE_TEN = one_of((*_DE_TENS, "dreissig"))
_DE_TWO = rf"(?:{one_of(_DE_FEW[1:10])}und{_DE_TEN}|{_DE_TEN}|{one_of(('eins', *_DE_FEW[1:]))})"
_DE_THREE = rf"(?:{one_of(_DE_FEW[1:])}?hundert(?:(?:und)?{_DE_TWO})?|{_DE_TWO})"
_DE_SIX = rf"(?:{_DE_THREE}?tausend(?:(?:und)?{_DE_THREE})?|{_DE_THREE})"
_DE_PARTS = re.compile(rf" ({one_of(_DE_SCALES)})(?:en|n)?\b(?: und)? ?")
_DE_SCALE = r"(?:Million(?:en)?|Milliarden?|Billion(?:en)?)"
_DE_NUMBER = rf"(?:eine|{_DE_SIX}) {_DE_SCALE}\b(?: (?:und )?{_DE_SIX})?|{_DE_SIX}"
_DE_BEGINNING = re.compile(rf"(?<!\w)(?:{_DE_NUMBER})", re.IGNORECASE)  # of a word, as in "zwanzigmal"
_DE_JOINT = re.compile(rf"(?<=hundert|tausend)-? (?:und )?(?={_DE_TWO})")  # zweihundert und zwanzig


def _german(text: str) -> int:
    before, *more = _DE_PARTS.split(text.lower())
    if not more:
        return _german_part(before, 1000)
    return _german_part(before, 1000) * _DE_SCALES[more[0]] + _german_part(more[1], 1000)


def _german_part(text: str, unit: int) -> int:
    before, found, after = text.partition("tausend" if unit == 1000 else "hundert")
    if found:
        return (_german_part(before, 100) or 1) * unit + _german_part(after.removeprefix("und"), 100)
    if unit == 1000:
        return _german_part(text, 100)
    return _DE[text] if text in _DE else sum(_DE[part] for part in text.split("und"))


_NUMBERS = {
    language: re.compile(rf"(?<![\w.:/@#&-])(?:{number})(?!\w|[.:/@]\w|:)", re.IGNORECASE)  # nor in three.js or :four:
    for language, number in (("en", _EN_NUMBER), ("de", _DE_NUMBER))
}
_BESIDE = {  # what makes another number of it, or leaves open which it is
    "en": re.compile(
        rf"[ -](?:{one_of((*_EN, *_ORDINALS))}\b|{one_of(_ORDINALS.keys() - {'second'})}s\b|"
        rf"hundred|{one_of(_EN_SCALES)})| point\b| and a half\b",
        re.IGNORECASE,
    ),
    "de": re.compile(rf"(?:(?<=hundert|tausend)-? und)? (?:{_DE_SIX}\b|{_DE_SCALE}|Komma\b)", re.IGNORECASE),
}
_QUOTED = re.compile('["\'`“”‘„«][^"]+["\'`”’“»]')
_NAME = re.compile(r"[\w,] (?:T(?:hree|en|welve)|F(?:our|ive)|S(?:ix|even)|E(?:ight|leven)|Nine)\b")  # the Big Five
_VAGUE = {
    "en": re.compile(rf"\ba[ -](?:hundred|{one_of(_EN_SCALES)})$|\bbetween .* and ", re.IGNORECASE),
    "de": re.compile(r"\b(?:hundert|tausend)$", re.IGNORECASE),
}

# Chinese: 二百三十万零四十五, and digit by digit a year, 一九八四.
_CHINESE = re.compile("[零〇一二两三四五六七八九十百千万亿]+")
_ZH_DIGITS = "".join(FEW["zh"])
_ZH_UNITS = {"千": 1000, "百": 100, "十": 10, "": 1}
_ZH_BEFORE = re.compile("[第几数双之点/]$")
_ZH_AFTER = re.compile("年代|世纪|分之|点[零一二三四五六七八九]|[几/]")


def _exact_chinese(text: str) -> Iterator[Spelt]:
    for match in _CHINESE.finditer(text):
        start, end = match.span()
        run = match[0].replace("〇", "零")
        value = _chinese(run)
        if len(run) == 4 and text[end : end + 1] == "年" and set(run) <= set(_ZH_DIGITS):
            yield Spelt(start, end, int("".join(str(_ZH_DIGITS.index(digit)) for digit in run)))
        elif value and not _ZH_BEFORE.search(text[:start][-1:]) and not _ZH_AFTER.match(text, end):
            yield Spelt(start, end, value)


def _chinese(run: str) -> int | None:
    """The number that is written so, and not a little otherwise, as 二百五 is, or 五六十."""
    run = re.sub("^两$|两(?=[百千万亿])", "二", run.replace("〇", "零"))
    whole = part = digit = 0
    for letter in run:
        if letter in _ZH_DIGITS:
            digit = _ZH_DIGITS.index(letter)
        elif letter in _ZH_UNITS:
            part, digit = part + (digit or letter == "十") * _ZH_UNITS[letter], 0
        else:
            part, digit = part + digit, 0
            whole, part = (whole + part * 10**4, 0) if letter == "万" else ((whole + part) * 10**8, 0)
    value = whole + part + digit
    same = value < 10**16 and in_chinese(value).replace("一十", "十") == run.replace("一十", "十")
    return value if same else None


def in_chinese(value: int) -> str:
    """`value` in Chinese characters."""
    text = _whole_chinese(value) or _ZH_DIGITS[0]
    return text.removeprefix("一") if text.startswith("一十") else text


def _whole_chinese(value: int) -> str:
    for name, unit in (("亿", 10**8), ("万", 10**4)):
        if value >= unit:
            many, rest = divmod(value, unit)
            return _whole_chinese(many) + name + ("零" if 0 < rest < unit // 10 else "") + _whole_chinese(rest)
    text = zero = ""
    for name, unit in _ZH_UNITS.items():
        digit = value // unit % 10
        text += zero + _ZH_DIGITS[digit] + name if digit else ""
        zero = "零" if text and not digit else ""
    return text
