"""Dates that a small model gets wrong as they are written, as it knows them: "28 Jan 1999" as January 28, 1999."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from glassformer.pipelines.language.words import MONTHS, one_of


@dataclass(frozen=True)
class Moment:
    """A stretch of a text, and what to write in its place in the same language."""

    start: int
    end: int
    told: str


STOP_INSIDE = re.compile(  # what says that the full stop before it is that of p.m. alone
    r" ?[a-z0-9,;:?!()–-]| (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|"
    r" (?:[A-Z]{2,4}|Eastern|Central|Pacific|Mountain|Greenwich|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"
)


_EN_MONTHS = MONTHS["en"]
_EN_SHORT = {month[:3]: month for month in _EN_MONTHS if month != "May"} | {"Sept": "September"}
_EN_NAMES = _EN_SHORT | {month: month for month in _EN_MONTHS}
_FULL, _SHORT = one_of(_EN_MONTHS), rf"{one_of(_EN_SHORT)}\b\.?"
_DAY, _YEAR = r"(?P<day>3[01]|[12]\d|0?[1-9])", r"(?P<year>1\d{3}|2[01]\d\d)"
_EN_DATE = re.compile(
    rf"(?<![\w./:-])(?:(?:the )?{_DAY}(?:st|nd|rd|th)?(?: of)? (?P<month>{_SHORT}|{_FULL})(?:,? {_YEAR})?|"
    rf"(?P<month2>{_SHORT}|{_FULL}) {_DAY.replace('day', 'day2')}(?P<nth>st|nd|rd|th)?"
    rf"(?P<comma>,)?(?: {_YEAR.replace('year', 'year2')})?|"
    rf"(?P<month3>{_SHORT})(?= {_YEAR.replace('year', 'year3')}\b))(?![\w%]|[-–:/]\w|[.,]\d)"
)
_ARTICLE = re.compile(r"\b(?:the|a|an|this|that|our|my|his|her|their|your|its) $", re.IGNORECASE)


def english_dates(text: str, target: str) -> Iterator[Moment]:
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
            told = month
        elif year and not (target == "zh" and match["nth"] and match["comma"] and not short):  # which it gets right
            told = f"{month} {day} in {year}" if target == "zh" else f"{month} {day}, {year}"
        elif not year and (short or (match["month"] and target == "zh" and before.lower().endswith("on "))):
            told = _day_of(month, day, target, bool(_ARTICLE.search(before)))
        else:
            continue
        if told != text[start:end]:
            yield Moment(start, end, told)


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


def german_dates(text: str) -> Iterator[Moment]:
    for match in _DE_DATE.finditer(text):
        month, day, year = match["month"], match["day"], match["year"]
        name = month == "Jan" and not match["stop"] and not year  # the third Jan of the class
        if not name and (day or (match["stop"] and year)):
            last = match["stop"] and not year and _ENDED.match(text, match.end())
            told = f"{int(day)}. {_DE_SHORT[month]}" if day else _DE_SHORT[month]
            yield Moment(match.start(), match.end() - bool(last), f"{told} {year}" if year else told)
