"""A sentence as a model has learnt to read it.

What people type, and what is copied out of other programs, has signs that mean the same as others to a reader and not
to a model: of "I can´t swim" and "I cant swim" it made "Ich kann schwimmen". They are put right before it reads them.
Code, addresses and the like stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from glassformer.data.protect import map_outside_spans, spans
from glassformer.pipelines.language import TABLES
from glassformer.pipelines.language.language import WORDS
from glassformer.pipelines.language.numbers import FEW, LANGUAGES, MONTHS, TENS, blank_out, chinese_value, one_of

_SILENT = dict.fromkeys((0xAD, 0x200B, 0x2060, 0xFEFF))  # a hyphen that is not seen, and spaces without width
_LIGATURES = {0xFB00 + n: letters for n, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"))}
_SPACE = re.compile(r"(?<![0-9])[\u00a0\u2000-\u200a\u202f\u205f]|[\u00a0\u2000-\u200a\u202f\u205f](?![0-9])")
_SPACES = re.compile(r"[ \t]*\t[ \t]*|  +")
DOUBLED = re.compile(r"(?<=[^\W\d_])''(?=[^\W\d_])")  # an apostrophe, as messages of Java and ICU write it
_APOSTROPHE = re.compile(rf"(?<=[^\W\d_])[´`′ʼ‘＇](?=[^\W\d_])|{DOUBLED.pattern}")
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
    text = map_outside_spans(text, lambda part: _normalize_plain(part, language))
    found = find_rewrites(text, language, target)
    whole = blank_out(text, spans(text), "\0") if found else ""
    parts, reach = [], 0
    for one in found:
        if "\0" not in whole[one.start : one.end]:
            parts += [text[reach : one.start], one.text]
            reach = one.end
    return "".join((*parts, text[reach:]))


def _normalize_plain(text: str, language: str) -> str:
    text = unicodedata.normalize("NFC", text).translate(_SILENT | _LIGATURES)
    text = _APOSTROPHE.sub("'", _SPACES.sub(" ", _SPACE.sub(" ", text)))
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


def is_all_caps(text: str, language: str) -> bool:
    """Whether a sentence is all in capitals, and not made of abbreviations."""
    if language not in WORDS or not _CAPITALS.search(text) or not (rest := blank_out(text, spans(text), " ")).isupper():
        return False
    words = [word for word in _WORD.findall(rest) if len(word) > 1]
    common = any(word.casefold() in WORDS[language] for word in words)
    return len(words) > 1 and (common or (len(words) > 2 and sum(map(len, words)) > _LONG * len(words)))


def to_sentence_case(text: str) -> str:
    """A sentence in capitals as it is written otherwise."""
    text = _I.sub("I", map_outside_spans(text, str.lower))
    first = _WORD.search(text)
    return text if first is None else text[: first.start()] + first[0].capitalize() + text[first.end() :]


@dataclass(frozen=True)
class Rewrite:
    """A stretch of a text, and what to write in its place in the same language."""

    start: int
    end: int
    text: str


STOP_INSIDE = re.compile(  # what shows that the full stop before it belongs to p.m. alone
    r" ?[a-z0-9,;:?!()–-]| (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|"
    r" (?:[A-Z]{2,4}|Eastern|Central|Pacific|Mountain|Greenwich|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"
)


def find_rewrites(text: str, language: str, target: str) -> list[Rewrite]:
    """What to rewrite in a `text` before it is translated into `target`; in order, none overlaps another."""
    if language not in LANGUAGES or target not in LANGUAGES or language == target:
        return []
    found: list[Rewrite] = []
    for one in sorted(_FINDERS[language](text, target), key=lambda one: one.start):
        if not found or found[-1].end <= one.start:
            found.append(one)
    return found


# The hours of each part of the day. An hour of a dial of twelve is certain if only one of its two is among them.
_NIGHT = (20, 21, 22, 23, 0, 1, 2, 3, 4)
_PARTS: dict[str, Iterable[int]] = {
    "a": range(12), "p": range(12, 24),
    "morning": range(1, 12), "afternoon": range(12, 19), "evening": range(16, 24), "night": _NIGHT,
    "morgens": range(1, 12), "früh": range(1, 12), "vormittags": range(6, 13), "mittags": range(11, 15),
    "nachmittags": range(12, 19), "abends": range(16, 24), "nachts": _NIGHT,
    "凌晨": range(7), "清晨": range(3, 10), "早上": range(3, 12), "早晨": range(3, 12), "上午": range(5, 13),
    "中午": range(11, 15), "下午": range(12, 19), "傍晚": range(16, 21), "晚上": (*range(17, 24), 0), "夜里": _NIGHT,
    "半夜": _NIGHT, "深夜": _NIGHT, "早": range(3, 12), "晚": (*range(17, 24), 0),
}  # fmt: skip


def _clock(hour: int, shift: int, part: str | None) -> str | None:
    """The time `shift` minutes from an hour, of a `part` of the day if there is one, as 7:30; None if in doubt."""
    either = (hour,) if hour > 12 or part is None else (hour % 12, hour % 12 + 12)
    fitting = [one for one in either if one in (range(25) if part is None else _PARTS[part])]
    if len(fitting) != 1 or not 0 <= fitting[0] * 60 + shift <= 24 * 60:
        return None
    hours, minute = divmod(fitting[0] * 60 + shift, 60)
    return f"{hours or 12 if part is None and hour else hours}:{minute:02}"  # half an hour before one o'clock is 12:30


def _number(text: str, words: dict[str, int]) -> int:
    return int(text) if text.isdecimal() else words[text.lower()]


# English.
_EN = {word: n for n, word in enumerate(FEW["en"][:13]) if n}
_EN_MINUTES = _EN | {"quarter": 15, "half": 30, "twenty": 20, "twenty-five": 25, "twenty five": 25}
_EN_HOUR = rf"(?:{one_of(_EN)}|1[0-2]|0?[1-9])"
_HALF = r"(?P<half>[ap])(?:m|\. ?m)\b(?P<stop>\.)?"
_EN_SPAN = re.compile(  # 3 to 5 pm
    r"(?<![\w.:,$€£/-])(?P<begin>1[0-2]|0?[1-9])(?::(?P<begun>[0-5]\d))?(?: ?(?P<first>[ap])(?:m|\. ?m)\b\.?)?"
    r"(?P<joint> ?[-–] ?| to | until | till | and )"
    rf"(?P<end>1[0-2]|0?[1-9])(?::(?P<ended>[0-5]\d))? ?{_HALF}(?!\w)",
    re.IGNORECASE,
)
_EN_TIME = re.compile(
    rf"(?<![\w.:,$€£/–-])(?:(?:a )?(?P<minutes>{one_of(_EN_MINUTES)}|[1-5]?\d)(?P<named> minutes?)?"
    rf"[ -](?P<side>past|to|after) (?P<to>{_EN_HOUR})|(?P<hour>{_EN_HOUR})(?:[:.](?P<minute>[0-5]\d))?)(?![\w-]*-)"
    rf"(?P<sharp> ?o['’] ?clock\b)?(?: ?{_HALF}| (?:in the|at) (?P<part>(?<=the )(?:morning|afternoon|evening)|"
    rf"(?<=at )night)\b(?! of\b))?(?!\w|[:.]\d)",
    re.IGNORECASE,
)
_EN_SHARP = re.compile(r"\b[Aa]t ((1\d|2[0-3]|0?[1-9]):00)(?![\w:]|\.\d| ?[AaPp]\.?[Mm]\b)")
_EN_AT = re.compile(r"\b(?:at|by|until|till|around|before|since|it's|it is|it was) $", re.IGNORECASE)
_EN_CALM = re.compile(r"[.,;:!?)]|$| (?:in the|on|and|when|every|today|tomorrow|yesterday)\b")
_EN_LISTED = re.compile(r"\d (?:or|and|&) $|\d ?[-–/] ?$")


def _english(text: str, target: str) -> Iterator[Rewrite]:
    spans = list(_EN_SPAN.finditer(text))
    for match in spans:
        if new := _english_span(text, match):
            joint = match["joint"] if match["joint"].strip().isalpha() else " to "
            yield Rewrite(match.start(), _end(text, match), joint.join(new))
    rest = blank_out(text, [match.span() for match in spans], "\0")
    for match in _EN_TIME.finditer(rest):
        if time := _english_time(rest, match):
            if time.endswith(":00"):  # without the last word it came out as half past, or as a number to call
                time = f"{time[:-3] if target == 'zh' else time} o'clock"
            yield Rewrite(match.start(), _end(rest, match), time)
    if target == "zh":
        yield from (Rewrite(*match.span(1), f"{int(match[2])} o'clock") for match in _EN_SHARP.finditer(rest))
    yield from english_dates(text, target)


def _english_span(text: str, match: re.Match[str]) -> list[str] | None:
    hours, half = (int(match["begin"]), int(match["end"])), match["half"].lower()
    between = text[max(0, match.start() - 8) : match.start()].lower() == "between "
    same_half = hours[0] % 12 < hours[1] < 12
    if not (same_half or match["first"]) or (match["joint"] == " and " and not between and not match["first"]):
        return None
    new = (
        _clock(hours[0], int(match["begun"] or 0), (match["first"] or half).lower()),
        _clock(hours[1], int(match["ended"] or 0), half),
    )
    return [one for one in new if one]


def _english_time(text: str, match: re.Match[str]) -> str | None:
    half, part, side = match["half"], match["part"], match["side"]
    before = text[max(0, match.start() - 8) : match.start()]
    at = _EN_AT.search(before)
    if half and match["hour"] and _EN_LISTED.search(before):
        return None  # 3 and 5 pm: what is 3?
    named = (half or part or "").lower() or None
    if side:
        minutes = match["minutes"].lower()
        shift = _number(minutes, _EN_MINUTES)
        usual = minutes in ("quarter", "half") or match["named"] or (shift % 5 == 0 and shift < 30)
        clear = match["named"] or minutes == "quarter"  # no span of numbers, as "five to six people"
        calm = _EN_CALM.match(text, match.end())
        to = minutes != "half" and ((clear and (at or calm)) or (at and calm))
        if not usual or not {"past": True, "after": minutes == "quarter", "to": to}[side.lower()]:
            return None
        return _clock(_number(match["to"], _EN), -shift if side.lower() == "to" else shift, named)
    spoken = match["hour"].isalpha()
    halved = half and not (spoken and text[match.start("half") : match.end("half") + 1] == "am")  # one am I
    parted = part and (at or match["minute"] or before.lower().endswith("from "))
    if (spoken and match["minute"]) or not (match["sharp"] or halved or parted):
        return None
    return _clock(_number(match["hour"], _EN), int(match["minute"] or 0), named)


def _end(text: str, match: re.Match[str]) -> int:
    """Where a time ends; the full stop of p.m. stays where it also ends the sentence."""
    return match.end() if not match["stop"] or STOP_INSIDE.match(text, match.end()) else match.start("stop")


# German. Rewritten times have no "Uhr", which a model takes for p.m. before noon.
_DE = {word: n for n, word in enumerate(FEW["de"]) if n}
_DE_TENS = {word: 10 * n for n, word in enumerate(TENS["de"][:4], 2)} | {"dreissig": 30}
_DE |= {f"{word}und{ten}": n + tens for word, n in list(_DE.items())[:9] for ten, tens in _DE_TENS.items()} | _DE_TENS
_DE |= {"eins": 1}
_DE_MINUTES = _DE | {"viertel": 15}
_DE_INTO = {"halb": -30, "viertel": -45, "dreiviertel": -15, "drei viertel": -15}
_DE_WORDS = one_of(_DE)
_DE_HOUR = rf"(?:{_DE_WORDS}|2[0-4]|1\d|0?\d)"
_DE_PART = r"(?: (?P<part>morgens|früh|vormittags|mittags|nachmittags|abends|nachts)\b)?"
_DE_SPAN = re.compile(  # 8 bis 10 Uhr
    rf"(?<![\w.:,/-])(?P<begin>{_DE_HOUR})(?:[:.](?P<begun>[0-5]\d))?(?: Uhr)?(?P<joint> ?[-–] ?| bis | und )"
    rf"(?P<end>{_DE_HOUR})(?:[:.](?P<ended>[0-5]\d))? Uhr\b{_DE_PART}(?![\w-]| (?:{_DE_WORDS}|\d))",
    re.IGNORECASE,
)
_DE_TIME = re.compile(
    rf"(?<![\w.:,/–-])(?:(?P<minutes>viertel|{_DE_WORDS}|[1-5]?\d)(?P<named> Minuten?)? (?P<side>vor|nach) )?"
    rf"(?:(?P<into>{one_of(_DE_INTO)}) )?(?P<hour>{_DE_HOUR})(?:[:.](?P<minute>[0-5]\d))?(?![\w-])"
    rf"(?P<uhr> Uhr\b(?: (?P<past>{_DE_WORDS}|[0-5]\d)\b)?)?{_DE_PART}(?![\w-]|[:.,]\d)",
    re.IGNORECASE,
)
_DE_AT = re.compile(r"\b(?:um|bis|ab|gegen|seit|es ist|es war) $", re.IGNORECASE)
_DE_LISTED = re.compile(r"(?:\d|\w) (?:und|oder) $|\d ?[-–/] ?$|\bvon $", re.IGNORECASE)
_DE_CALM = re.compile("[.,;:!?)]|$| (?:[a-zäöü]|Zeit|Ortszeit)")  # no noun that would be counted: vor acht Jahren


def _german(text: str, target: str) -> Iterator[Rewrite]:
    spans = list(_DE_SPAN.finditer(text))
    for match in spans:
        hours = [_number(match[one], _DE) for one in ("begin", "end")]
        part = match["part"] and match["part"].lower()
        shifts = (int(match["begun"] or 0), int(match["ended"] or 0))
        new = [_clock(hour, shift, part) for hour, shift in zip(hours, shifts, strict=True)]
        between = text[max(0, match.start() - 9) : match.start()].lower() == "zwischen "
        begin, end = new
        if begin and end and between is (match["joint"].lower() == " und ") and (not part or hours[0] < hours[1]):
            joint = match["joint"] if match["joint"].strip().isalpha() else " bis "
            yield Rewrite(*match.span(), f"{begin}{joint}{end}")
    rest = blank_out(text, [match.span() for match in spans], "\0")
    for match in _DE_TIME.finditer(rest):
        if time := _german_time(rest, match):
            yield Rewrite(*match.span(), time)
    yield from german_dates(text)


def _german_time(text: str, match: re.Match[str]) -> str | None:
    """The time that `match` tells, if it tells one."""
    before, part = text[max(0, match.start() - 7) : match.start()], match["part"] and match["part"].lower()
    hour, into, uhr = _number(match["hour"], _DE), (match["into"] or "").lower(), match["uhr"]
    calm = _DE_CALM.match(text, match.end())
    at = _DE_AT.search(before)
    shift = _DE_INTO.get(into, int(match["minute"] or 0))
    dial = hour <= 12 and not match["minute"] and not match["past"] and (uhr or match["hour"].lower() != "ein")
    if into and not (dial and (into == "halb" or at or uhr)):
        return None
    if match["side"]:
        minutes = _number(match["minutes"], _DE_MINUTES)
        usual = match["named"] or into or match["minutes"].lower() == "viertel" or minutes in (5, 10, 20, 25)
        if not dial or not usual or not (uhr or part or calm or into) or re.search(r"\bvon $", before):
            return None
        shift += minutes if match["side"].lower() == "nach" else -minutes
    elif not into:
        if not uhr and not (part and (at or match["minute"])):
            return None
        if _DE_LISTED.search(before):
            return None
        if match["past"]:
            if match["minute"] or not (part or calm):
                return None
            shift = _number(match["past"], _DE)
    return _clock(hour, shift, part)


# Chinese.
_ZH_NUMBER = "(?:[0-9]{1,2}|[一二三四五]?十[一二三四五六七八九]?|零?[一二两三四五六七八九]|零)"
_ZH_QUARTERS = {"半": 30, "一刻": 15, "三刻": 45}
_ZH_AFTER = (
    rf"半(?![点天年小数个分])|[一三]刻|钟|整|过?{_ZH_NUMBER}分(?!之[0-9一二三四五六七八九十]|钟)|"
    rf"差(?:一刻|{_ZH_NUMBER}分)"
)
_ZH_DAY = one_of(part for part in _PARTS if part > "一" and len(part) == 2)
_ZH_TIME = re.compile(
    "(?:(?P<day>[今明昨当])(?=[早晚][^上])(?P<dusk>[早晚])|"
    rf"(?P<part>{_ZH_DAY})|(?<![0-9.:/零一二两三四五六七八九十百千万亿第差期周拜])|"
    rf"(?<=[期周拜][一二三四五六])) ?(?:差(?P<lack>一刻|{_ZH_NUMBER}分)钟?到?)?(?P<hour>{_ZH_NUMBER})[点时]"
    rf"(?:(?P<after>{_ZH_AFTER})|(?P<minute>[0-9]{{2}}|[二三四五]?十[一二三四五六七八九]?|零[一二三四五六七八九])(?![0-9分]))?"
    rf"(?:(?P<joint>[到至~—-])(?P<end>{_ZH_NUMBER})[点时](?P<later>{_ZH_AFTER})?)?(?![0-9零一二三四五六七八九十点儿都也没不分.])"
)
_VERY = re.compile("[点时]十分$")  # 三点十分重要: three points, very important


def _zh_number(text: str) -> int:
    return int(text) if text.isdecimal() else chinese_value(text.removeprefix("零")) or 0


def _zh_shift(after: str | None) -> int:
    """The minutes that stand behind an hour, or with 差 are missing to it."""
    if not after or after in "钟整":
        return 0
    bare = after.lstrip("差过")
    minutes = _ZH_QUARTERS[bare] if bare in _ZH_QUARTERS else _zh_number(bare.rstrip("分"))
    return -minutes if after[0] == "差" else minutes


def _chinese(text: str, target: str) -> Iterator[Rewrite]:
    for match in _ZH_TIME.finditer(text):
        part, after, hour = match["part"] or match["dusk"], match["after"], _zh_number(match["hour"])
        shift = -_zh_shift(match["lack"]) or _zh_shift(after or match["minute"])
        few = after and re.fullmatch("[一二两三四五六七八九]分", after)  # 三点五分 may be a mark of 3.5
        if not part and (few or not (after or match["lack"]) or _VERY.search(match[0])):
            continue
        new = _clock(hour, shift, part)
        if new and match["end"]:
            end = _zh_number(match["end"])
            late = _clock(end, _zh_shift(match["later"]), part)
            new = f"{new}{match['joint']}{late}" if late and hour % 12 < end else None
        if new:
            yield Rewrite(*match.span(), (match["day"] + match["dusk"] if match["day"] else "") + new)


_FINDERS: dict[str, Callable[[str, str], Iterator[Rewrite]]] = {"en": _english, "de": _german, "zh": _chinese}


# Dates.
_EN_MONTHS = MONTHS["en"]
_EN_SHORT = {month[:3]: month for month in _EN_MONTHS if month != "May"} | {"Sept": "September"}
_EN_NAMES = _EN_SHORT | {month: month for month in _EN_MONTHS}
_MONTH_FULL, _MONTH_SHORT = one_of(_EN_MONTHS), rf"{one_of(_EN_SHORT)}\b\.?"
_DAY, _YEAR = r"(?P<day>3[01]|[12]\d|0?[1-9])", r"(?P<year>1\d{3}|2[01]\d\d)"
_EN_DATE = re.compile(
    rf"(?<![\w./:-])(?:(?:the )?{_DAY}(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH_SHORT}|{_MONTH_FULL})(?:,? {_YEAR})?|"
    rf"(?P<month2>{_MONTH_SHORT}|{_MONTH_FULL}) {_DAY.replace('day', 'day2')}(?P<nth>st|nd|rd|th)?"
    rf"(?P<comma>,)?(?: {_YEAR.replace('year', 'year2')})?|"
    rf"(?P<month3>{_MONTH_SHORT})(?= {_YEAR.replace('year', 'year3')}\b))(?![\w%]|[-–:/]\w|[.,]\d)"
)
_ARTICLE = re.compile(r"\b(?:the|a|an|this|that|our|my|his|her|their|your|its) $", re.IGNORECASE)


def english_dates(text: str, target: str) -> Iterator[Rewrite]:
    for match in _EN_DATE.finditer(text):
        start, end = match.span()
        written = match["month"] or match["month2"] or match["month3"]
        month, short = _EN_NAMES[written.rstrip(".")], written not in _EN_MONTHS
        day, year = int(match["day"] or match["day2"] or 0), match["year"] or match["year2"]
        if match["comma"] and not year:
            end -= 1
        if match["month"] and written.endswith(".") and not year and not STOP_INSIDE.match(text, end):
            end -= 1
        before = text[max(0, start - 6) : start]
        if match["month3"]:
            new = month
        elif year and not (target == "zh" and match["nth"] and match["comma"] and not short):  # which it gets right
            new = f"{month} {day} in {year}" if target == "zh" else f"{month} {day}, {year}"
        elif not year and (short or (match["month"] and target == "zh" and before.lower().endswith("on "))):
            new = _day_of(month, day, target, bool(_ARTICLE.search(before)))
        else:
            continue
        if new != text[start:end]:
            yield Rewrite(start, end, new)


def _day_of(month: str, day: int, target: str, article: bool) -> str:
    """A day without a year: a bare number beside a month is often taken for one."""
    nth = f"{day}{'th' if 10 < day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"
    if target == "zh":
        return f"{month} {nth}" if article else f"the {nth} of {month}"
    return f"{month} {nth}" if nth.endswith("th") else f"{day} {month}"


_DE_MONTHS = MONTHS["de"]
_DE_SHORT = {month[:3]: month for month in _DE_MONTHS if month != "Mai"}
_DE_SHORT |= {"Mrz": "März", "Febr": "Februar", "Sept": "September", "Jän": "Januar"}
_DE_DATE = re.compile(
    rf"(?<![\w./:,-])(?:{_DAY}\. ?)?(?P<month>{one_of(_DE_SHORT)})\b(?P<stop>\.)?(?: {_YEAR})?(?!\w|[-–:/]\w|[.,]\d)"
)
_ENDED = re.compile(r"""["'“”»)\]]*\s*$""")


def german_dates(text: str) -> Iterator[Rewrite]:
    for match in _DE_DATE.finditer(text):
        month, day, year = match["month"], match["day"], match["year"]
        name = month == "Jan" and not match["stop"] and not year  # the third Jan of the class
        if not name and (day or (match["stop"] and year)):
            last = match["stop"] and not year and _ENDED.match(text, match.end())
            new = f"{int(day)}. {_DE_SHORT[month]}" if day else _DE_SHORT[month]
            yield Rewrite(match.start(), match.end() - bool(last), f"{new} {year}" if year else new)
