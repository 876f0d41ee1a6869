"""Inputs as people write them, and what any right translation of each holds. The cases are in `inputs.toml`.

A case is listed under its kind and direction, `[[dates.en-de]]`. It has a `text`, a `source` where the person names the
language, `repeat` for a text so many times as long, and checks by name. The checks of `ALWAYS` apply to every text with
a letter, except those that the case lists in `skip`. Nothing here uses the rules of the translator that it judges.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from babel import Locale
from num2words import num2words
from py3langid.langid import MODEL_FILE, LanguageIdentifier

import glassformer as gf
from glassformer.common.strings import HAN

FILE = Path(__file__).with_name("inputs.toml")
DIRECTIONS = ("en-de", "de-en", "en-zh", "zh-en")
SHORTEST, LONGEST, SLACK = 0.45, 2.2, 15  # length of a translation to its source's; a Chinese character counts as three
FEWEST_WORDS, SURE = 5, 5.0  # of a sentence whose language is judged; by how much another must be likelier (logarithm)
SCALES = {
    "en": {"thousand": 3, "million": 6, r"m\b": 6, "billion": 9, "bn": 9},
    "de": {"Tausend": 3, "Million": 6, "Mio": 6, "Milliarde": 9, "Mrd": 9},
    "zh": {"千": 3, "万": 4, "百万": 6, "千万": 7, "亿": 8},
}
DIGITS = "〇一二三四五六七八九"
QUOTE = "[\"'«»„“”‚‘’‹›「」『』《》]"
_QUOTED = re.compile('["«»„“”「『《].*?["«»“”」』》]')
_CHINESE = re.compile(f"[{HAN}]")
_UNIT = re.compile(f"[{HAN}]|[^\\W{HAN}]+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n")
_MARKER = re.compile(r"\s*(?:#+|(?:[-*+•]|\d+[.)])(?: \[[ x]\])?(?= |$))?")


@dataclass(frozen=True)
class Case:
    kind: str
    direction: str
    text: str
    source: str | None = None
    skip: tuple[str, ...] = ()
    checks: dict[str, Any] = field(default_factory=dict)

    @property
    def to(self) -> str:
        return self.direction[-2:]


@dataclass(frozen=True)
class Answer:
    """A translation and the warnings that came with it, or an error."""

    text: str
    notes: tuple[str, ...] = ()
    error: bool = False

    @property
    def plain(self) -> str:
        """The text with one form of each sign: no full width, no spaces that do not break."""
        return unicodedata.normalize("NFKC", self.text)


@dataclass(frozen=True)
class Result:
    """A case, its answer, and the faults of the answer: none if it passes."""

    case: Case
    answer: Answer
    faults: tuple[str, ...]

    def __str__(self) -> str:
        source, text = f"{self.case.text!r:.600}", f"{self.answer.text!r:.1000}"
        notes = [f"  note: {one}" for one in self.answer.notes]
        head = f"{self.case.kind} {self.case.direction}: {source}"
        return "\n".join([head, f"  → {text}", *notes, *(f"  ✗ {one}" for one in self.faults)])


def read_cases(file: Path = FILE) -> list[Case]:
    cases = []
    for kind, directions in tomllib.loads(file.read_text(encoding="utf-8")).items():
        for direction, entries in directions.items():
            for one in entries:
                text = one.pop("text") * one.pop("repeat", 1)
                cases.append(Case(kind, direction, text, one.pop("source", None), tuple(one.pop("skip", ())), one))
    return cases


def ask(case: Case) -> Answer:
    """What a person gets from `gf.translate`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = gf.translate(case.text, to=case.to, source=case.source)
        except Exception as error:
            return Answer(f"{type(error).__name__}: {error}", error=True)
    return Answer(text, tuple(str(one.message) for one in caught))


def judge(case: Case, answer: Answer) -> Result:
    if answer.error:
        return Result(case, answer, ("error",))
    always = [] if "same" in case.checks or not any(map(str.isalpha, case.text)) else ALWAYS
    faults = []
    for name, wanted in ({name: True for name in always if name not in case.skip} | case.checks).items():
        for one in wanted if isinstance(wanted, list) else [wanted]:
            if fault := CHECKS[name](case, answer, one):
                told = one if fault is True else fault
                faults.append(name if told is True else f"{name}: {told}")
    return Result(case, answer, tuple(faults))


def finds(answer: Answer, pattern: str) -> bool:
    return re.search(pattern, answer.plain, re.IGNORECASE) is not None


def number_pattern(number: str, to: str) -> str:
    """1234.5 as 1,234.5, 1.234,5 or 1234,50; 3000000 as 3 million, three million or 300万; 3 as three."""
    whole, _, rest = number.partition(".")
    grouped = re.sub(r"\B(?=(?:\d{3})+$)", "[.,'’ ]?", whole)
    forms = [grouped + (f"[.,]{rest}0*" if rest else "(?:[.,]0{1,2})?")]
    for name, power in SCALES[to].items():
        scaled = f"{(Decimal(number) / 10**power).normalize():f}"
        if not scaled.startswith("0") and len(scaled) <= 6:
            digits = scaled.replace(".", "[.,]") + "0*" * ("." in scaled)
            forms.append(f"(?:{digits}{in_words(scaled, to)})[ -]?{name}")
    return rf"(?<!\d)(?<!\d[.,])(?:{'|'.join(forms)})(?!\d)(?![.,]\d)" + in_words(number, to)


def in_words(number: str, to: str) -> str:
    """A small number in words, as an alternative: `|three`."""
    if not number.isdecimal() or int(number) > 20:
        return ""
    others = {"zh2": "[二两双]", "de1": "ein", "en1": r"\b(?:one|an?)\b", "en2": "two|both", "de2": "zwei|beide"}
    return "|" + (others.get(to + number) or (chinese(int(number)) if to == "zh" else num2words(int(number), lang=to)))


def chinese(number: int) -> str:
    """A number from 1 to 99, for num2words has no Chinese."""
    tens, ones = divmod(number, 10)
    return DIGITS[tens] * (tens > 1) + "十" * (tens > 0) + DIGITS[ones] * (ones > 0)


def date_pattern(date: str, to: str) -> str:
    """2026-12-31 as a language writes it, in digits or with the month's name; --12-31 has no year."""
    year, month, day = date[:-6].strip("-"), int(date[-5:-3]), int(date[-2:])
    m, d, y = f"0?{month}", f"0?{day}", f"(?:{year[:2]})?{year[2:]}"
    if to == "zh":
        years = f"(?:{y}|{year.translate(str.maketrans('0123456789', DIGITS))}) ?年 ?" if year else ""
        forms = [f"{years}(?:{m}|{chinese(month)}) ?月 ?(?:{d}|{chinese(day)}) ?[日号]?"]
    else:
        name = rf"{Locale(to).months['format']['wide'][month][:3]}\w*\.?"
        after = f"{y}" if year else ""
        forms = [rf"{d}\. ?(?:{m}\.|{name}) ?{after}"]
        if to == "en":
            forms = [
                a + sign + b + (sign + after) * (year != "") for sign in ("/", "-", r"\.") for a, b in ((m, d), (d, m))
            ]
            forms += [rf"(?:{name} (?:the )?{d}(?:st|nd|rd|th)?|{d}(?:st|nd|rd|th)? (?:of )?{name}),? ?{after}"]
    return rf"(?<!\d)(?:{'|'.join([f'{year}[-/.]{m}[-/.]{d}'] * (year != '') + forms)})(?!\d)"


def length(text: str) -> int:
    return len(text) + 2 * len(_CHINESE.findall(text))


def most_repeated(text: str) -> int:
    """How often the commonest run of four words comes, or of seven characters of Chinese."""
    units = _UNIT.findall(text.casefold())
    size = 7 if 2 * len(_CHINESE.findall(text)) > len(units) else 4
    return max(Counter(zip(*(units[i:] for i in range(size)), strict=False)).values(), default=0)


def outline(text: str) -> list[str]:
    """The indent and the marker of each line; `-` for an empty line."""
    found = ((line, _MARKER.match(line)) for line in text.strip().split("\n"))
    return [marker[0] if line.strip() and marker else "-" for line, marker in found]


def bare(text: str) -> str:
    return text.casefold().strip(" .!?。！？\n")


@cache
def identifier() -> Any:
    made = LanguageIdentifier.from_model_file(MODEL_FILE)
    made.set_languages(["en", "de", "zh"])
    return made


def other_languages(case: Case, answer: Answer, _: bool) -> list[str]:
    """The sentences surely of another language, but for what is kept or quoted; and Chinese where none should be."""
    plain = _QUOTED.sub(" ", answer.plain)
    for one in case.checks.get("keep", []):
        plain = plain.replace(one, " ")
    seen = _CHINESE.search(answer.plain if case.to == "zh" else plain)
    faults = ["no Chinese in it" if case.to == "zh" else "Chinese in it"] if (case.to == "zh") != bool(seen) else []
    for sentence in _SENTENCE.split(plain):
        scores = dict(identifier().rank(sentence))
        best = max(scores, key=scores.__getitem__)
        if len(_UNIT.findall(sentence)) >= FEWEST_WORDS and scores[best] - scores[case.to] > SURE:
            faults.append(f"{best}: {sentence:.60}")
    return faults


# Each says what is wrong with an answer, for one thing that its case wants: true, a word for it, or something false.
# Patterns are regular expressions, sought in `Answer.plain` whatever the case of letters.
CHECKS: dict[str, Callable[[Case, Answer, Any], Any]] = {
    "has": lambda case, answer, pattern: not finds(answer, pattern),
    "lacks": lambda case, answer, pattern: finds(answer, pattern),
    "keep": lambda case, answer, text: text not in answer.text,
    "quoted": lambda case, answer, pattern: not finds(answer, f"{QUOTE} ?(?:{pattern})[ .,;:!?。…]*{QUOTE}"),
    "numbers": lambda case, answer, number: not finds(answer, number_pattern(number, case.to)),
    "dates": lambda case, answer, date: not finds(answer, date_pattern(date, case.to)),
    "sentences": lambda case, answer, least: len(re.findall(r"[.!?。]+", answer.plain)) < least,
    "same": lambda case, answer, _: answer.text.strip() != case.text.strip(),
    "note": lambda case, answer, _: not answer.notes,
    "doubt": lambda case, answer, _: not answer.notes and bare(answer.text) != bare(case.text),  # as it was, or a note
    "filled": lambda case, answer, _: not answer.text.strip(),
    "translated": lambda case, answer, _: bare(answer.text) == bare(case.text),
    "language": other_languages,
    "short": lambda case, answer, _: length(answer.text) < SHORTEST * length(case.text) - SLACK,
    "long": lambda case, answer, _: length(answer.text) > LONGEST * length(case.text) + SLACK,
    "repetition": lambda case, answer, _: most_repeated(answer.plain) >= 3 > most_repeated(case.text),
    "layout": lambda case, answer, _: outline(answer.text) != outline(case.text) and outline(answer.text),
}
ALWAYS = ("filled", "translated", "language", "short", "long", "repetition", "layout")
