"""The numbers of a text, in digits and in words, and whether a translation keeps them.

A translation keeps a number as it is or as the language writes it: 1,234.5 as 1.234,5, 3 PM as 15, 10,000 as 1万,
3/1/2026 as 01.03.2026, March as 3月. Digits of the source stay digits. A number in digits that the source lacks is made
up, unless a word of the source says it.

Of numbers in words, `find_number_words` gives those that say one number and nothing else: not "a hundred" or
"hundreds", which may be many, and not what reads in two ways, as "seven thirty" or "a twenty-second delay".
`possible_number_words` gives all that a translation may have said.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from glassformer.pipelines.language import TABLES, word_lists

LANGUAGES = ("en", "de", "zh")
Span = tuple[int, int]
FEW, TENS, MONTHS = word_lists("few"), word_lists("tens"), word_lists("months")
SCALES: dict[str, dict[str, int]] = TABLES["scales"]  # powers of ten


def one_of(words: Iterable[str]) -> str:
    """A pattern of them, the longest first."""
    return f"(?:{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})"


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


def find_numbers(text: str, language: str, apart: Sequence[Span] = ()) -> list[Number]:
    """The numbers in digits of `text`, outside the stretches `apart`."""
    text = text.translate(_DIGITS) if not text.isascii() else text
    if _NUMBER.search(text) is None:
        return []
    text = blank_out(text, apart, "\0")  # what stands there is part of no number beside it
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
        scale, reach = _scale_behind(text, match.end(), language)
        found.append(with_scale(Number(match.start(), match.end(), match[0], meant, 0, reach), scale, language))
    return found


def with_scale(number: Number, scale: int, language: str) -> Number:
    """A number that has no scale yet, with the one written behind it."""
    values = (
        frozenset(_times_power_of_ten(value, scale) for value in values_of(number.text, language)) if scale else None
    )
    return replace(number, values=values, scale=scale) if values and not number.scale else number


def blank_out(text: str, stretches: Sequence[Span], mark: str) -> str:
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


def _times_power_of_ten(value: str, power: int) -> str:
    """`value` times a power of ten, to the last digit."""
    whole, _, part = value.partition(".")
    whole, part = whole + part[:power].ljust(power, "0"), part[power:].rstrip("0")
    return ".".join(filter(None, (whole.lstrip("0") or "0", part)))


def _scale_behind(text: str, end: int, language: str) -> Span:
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


def format_scaled(token: str, scale: int, source: str, target: str) -> str:
    """A number with such a word behind it, as the target's language writes it: 5万 is 50,000, and 3 million 300万."""
    values = values_of(token.translate(_DIGITS), source)
    value = _times_power_of_ten(min(values, key=len, default=token), scale)
    whole, _, part = value.partition(".")
    names = _SCALE_NAMES[target]
    power = max((power for power in names if power < len(whole)), default=0)
    if not power:
        return swap_marks(f"{int(value):,}", "en", target) if value.isdecimal() else swap_marks(value, "en", target)
    few = ".".join(filter(None, (whole[:-power], (whole[-power:] + part).rstrip("0"))))
    one, many = names[power]
    return swap_marks(few, "en", target) + (one if few == "1" else many)


def swap_marks(token: str, source: str, target: str) -> str:
    """A number with the other marks, where German is one of the languages."""
    return token.translate({ord(","): ".", ord("."): ","}) if (source == "de") != (target == "de") else token


def localize(token: str, source: str, target: str) -> str:
    """A number of the source as the target's language writes it; one that may be a version stays as it is."""
    token = token.translate(_DIGITS)
    if "de" not in (source, target) or source == target:
        return token
    comma, point = (",", "\\.") if target == "de" else ("\\.", ",")
    grouped = re.fullmatch(rf"[0-9]{{1,3}}(?:{comma}[0-9]{{3}})+(?:{point}[0-9]+)?", token)
    return swap_marks(token, source, target) if grouped else token


def compare_numbers(
    source: list[Number], target: list[Number], texts: tuple[str, str], languages: tuple[str, str]
) -> tuple[list[Number], list[Number]]:
    """The numbers of a source that its translation has lost, and those of the translation that it made up; words are
    looked for in `texts`."""
    lost, left = _match(source, target, lambda number: (f"{number.text}e{number.scale}",))
    lost, left = _match(lost, left, lambda number: number.values)
    if lost:
        months = Counter(_months_named(texts[1], languages[1]))
        source, lost = lost, []
        for number in source:
            value = number.text.lstrip("0")
            months[value] -= 1
            if months[value] < 0:
                lost.append(number)
    if left:
        named = set(_months_named(texts[0], languages[0]))
        left = [number for number in left if number.text.lstrip("0") not in named]
        left = left[_count_number_words(texts[0], languages[0]) :]
    return lost, left


def _match(
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


def _months_named(text: str, language: str) -> list[str]:
    """The numbers of the months that `text` names."""
    pattern = _pattern("months", language)
    if pattern is None:
        return []
    keys = [name[:3] for name in MONTHS[language]]
    found = (match[0] for match in pattern.finditer(text))
    # Asked as they were found: what is the same letter there, as ſ and s are, need not be one in lower case.
    return [next(str(n) for n, key in enumerate(keys, 1) if re.match(key, one, re.IGNORECASE)) for one in found]


def _count_number_words(text: str, language: str) -> int:
    """How many words of `text` are numbers."""
    if language == "zh":
        return len(_HAN.findall(text))
    pattern = _pattern("words", language)
    return 0 if pattern is None else sum(1 for _ in pattern.finditer(text))


@cache
def _pattern(kind: str, language: str) -> re.Pattern[str] | None:
    table = _WORDS if kind == "words" else _MONTHS
    return re.compile(rf"\b(?:{table[language]})\b", re.IGNORECASE) if language in table else None


# Numbers in words.
SMALL = 12  # up to here a translation may say a number in other words, as "both", or a word be none, as in 十进制


@dataclass(frozen=True)
class NumberWord:
    """A number in words."""

    start: int
    end: int
    value: int

    def digits(self, language: str) -> str:
        """The number as `language` writes it in digits."""
        mark = "" if self.value < 10_000 or language == "zh" else "." if language == "de" else ","
        return f"{self.value:,}".replace(",", mark)

    def words(self, language: str) -> str:
        """The number in words of `language`."""
        from glassformer.data.numerals import spell  # seldom needed, and its libraries take their time to load

        return spell_chinese(self.value) if language == "zh" else spell(self.value, language)


def find_number_words(text: str, language: str) -> list[NumberWord]:
    """The numbers of some size that `text` says in words, and that mean exactly that."""
    if language not in LANGUAGES:
        return []
    found = _find_in_chinese(text) if language == "zh" else _find_in_letters(text, language)
    least = 3 if language == "en" else SMALL + 1
    return [one for one in found if one.value >= least]


def possible_number_words(text: str, language: str) -> Counter[int]:
    """All numbers that `text` says in words, or may say, and how often."""
    if language == "en":
        text = _EN_ORDINAL.sub(lambda match: _ORDINALS[match[0].lower()], text)
        return Counter(_english_value(match[0]) for match in _NUMBERS["en"].finditer(text))
    if language == "de":
        text = _DE_JOINT.sub("", text.lower().replace("dritt", "drei").replace("siebt", "sieben"))
        return Counter(_german_value(match[0]) for match in _DE_BEGINNING.finditer(text))
    runs = [match[0] for match in _CHINESE.finditer(text)] if language == "zh" else []
    values = [chinese_value(run) or chinese_value("一" + run) for run in runs]
    return Counter(value for value in values if value)


def _find_in_letters(text: str, language: str) -> Iterator[NumberWord]:
    value = _english_value if language == "en" else _german_value
    taken = -2
    for match in _NUMBERS[language].finditer(text):
        start, end = match.span()
        beside = _NEIGHBOUR[language].match(text, end)
        alone = start > taken + 1 and not beside
        taken = beside.end() if beside else end
        name = _NAME.match(text, max(0, start - 2)) or _QUOTED.fullmatch(text, max(0, start - 1), end + 1)
        if alone and not name and not _VAGUE[language].search(text, max(0, start - 8), end):
            yield NumberWord(start, end, value(match[0]))


# English: two million, three hundred thousand and forty-five; as a year, nineteen eighty-four.
_FEW, _TENS = FEW["en"], TENS["en"]
_VALUES = {
    language: {word: n for n, word in enumerate(FEW[language])} | {word: 10 * n for n, word in enumerate(tens, 2)}
    for language, tens in TENS.items()
}
_EN = _VALUES["en"]
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


def _english_value(text: str) -> int:
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
_DE = _VALUES["de"] | {"": 0, "eins": 1, "eine": 1, "dreissig": 30}
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


def _german_value(text: str) -> int:
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
_NEIGHBOUR = {  # what makes another number of it, or leaves open which it is
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


def _find_in_chinese(text: str) -> Iterator[NumberWord]:
    for match in _CHINESE.finditer(text):
        start, end = match.span()
        run = match[0].replace("〇", "零")
        value = chinese_value(run)
        if len(run) == 4 and text[end : end + 1] == "年" and set(run) <= set(_ZH_DIGITS):
            yield NumberWord(start, end, int("".join(str(_ZH_DIGITS.index(digit)) for digit in run)))
        elif value and not _ZH_BEFORE.search(text[:start][-1:]) and not _ZH_AFTER.match(text, end):
            yield NumberWord(start, end, value)


def chinese_value(run: str) -> int | None:
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
    same = value < 10**16 and spell_chinese(value).replace("一十", "十") == run.replace("一十", "十")
    return value if same else None


def spell_chinese(value: int) -> str:
    """`value` in Chinese characters."""
    text = _spell_chinese(value) or _ZH_DIGITS[0]
    return text.removeprefix("一") if text.startswith("一十") else text


def _spell_chinese(value: int) -> str:
    for name, unit in (("亿", 10**8), ("万", 10**4)):
        if value >= unit:
            many, rest = divmod(value, unit)
            return _spell_chinese(many) + name + ("零" if 0 < rest < unit // 10 else "") + _spell_chinese(rest)
    text = zero = ""
    for name, unit in _ZH_UNITS.items():
        digit = value // unit % 10
        text += zero + _ZH_DIGITS[digit] + name if digit else ""
        zero = "零" if text and not digit else ""
    return text
