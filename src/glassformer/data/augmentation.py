"""Augmented and synthetic sentence pairs, from which a model learns what would otherwise need rules.

    augment(pairs, "en", "de")      pairs as people write: without capitals, in a list, with an address in the text
    synthetic("en", "de", 10_000)   pairs of templates: dates, times, amounts, units, places, names, addresses

Noise is on the source alone, since a target is what a person wants to read: make the pairs once per direction. Two
changes are on both sides: all capitals, and a missing full stop. Each pair follows from the seed and its number alone.
Templates and lists are in augmentation.toml; Babel writes dates, times, numbers and names of countries and languages.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from babel import Locale, dates, numbers

from glassformer.common.errors import ConfigError, one_of
from glassformer.common.strings import WIDE
from glassformer.data.corpus import Pair
from glassformer.data.numerals import SPELLED, spell
from glassformer.data.protect import map_outside_spans, spans

TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
Augmented = tuple[str, str, str]  # source, target, kind
Item = TypeVar("Item")

FIRST_DAY, DAYS = datetime.date(1880, 1, 1), 57_000
LONG, SHORT = 900, 60  # characters: of joined sentences at most, of a heading at most
LETTERS = {"n": "0123456789", "x": "0123456789abcdef", "A": "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
TRIES = 4  # kinds of change to try on a pair, since few fit every pair
_STOP = re.compile(r"\s*(?:\.\.\.|[.!?…。！？])$")
_ENDED = re.compile(r"[.!?…。！？][\"'”’“»」）)]*$")
_UNSPACED = re.compile(f"[{WIDE}]")
_QUOTE = re.compile('["“”„«‘「]')
_SMALL_WORDS = "an?|and|as|at|but|by|for|from|in|into|of|on|or|the|to|with"  # of a title
_CODE = r"\S*(?:[#/\\@_]|\.\w)"  # an address, a hashtag, the name of a file
_PLAIN = re.compile(rf"(?<!\S)(?!{_CODE})\S+")
_TITLE_LETTER = re.compile(rf"(?:^|(?<![\w'’#/\\@.])(?!(?:{_SMALL_WORDS})\b))(?!{_CODE})[a-z]")
_SLOT = re.compile(r"<([A-Za-z_]+)(\d?)>")


def _pick(rng: Random, among: Sequence[Item]) -> Item:
    return among[int(rng.random() * len(among))]  # Python promises the same numbers in every version for random() only


# Templates.
def _fill(row: str | Sequence[str], languages: Pair, rng: Random, **given: Pair) -> Pair:
    """Both sides of a row of the tables, with a value in each slot: a given one, or a drawn one."""
    cells, known = row.split("|") if isinstance(row, str) else row, TABLES["languages"]
    left, right = (cells[known.index(code) if len(cells) > 1 and code in known else 0] for code in languages)
    values = {f"<{name}>": value for name, value in given.items()}
    for slot in _SLOT.finditer(f"{left} {right}"):
        if slot[0] not in values:  # what is no slot, a tag, stays
            values[slot[0]] = SLOTS[slot[1]](rng, *languages) if slot[1] in SLOTS else (slot[0], slot[0])
    return _SLOT.sub(lambda slot: values[slot[0]][0], left), _SLOT.sub(lambda slot: values[slot[0]][1], right)


def _listed(name: str, change: Callable[[str], str], rng: Random, *languages: str) -> Pair:
    left, right = _fill(_pick(rng, _rows(name)), (languages[0], languages[1]), rng)
    return change(left), change(right)


@cache
def _rows(name: str) -> list[str]:
    return re.split(r";\s+", TABLES["lists"][name].strip())


def _letters(letters: str, count: int, rng: Random, *languages: str) -> Pair:
    text = _pick(rng, letters.lstrip("0")) + "".join(_pick(rng, letters) for _ in range(count - 1))
    return text, text


@cache
def _locale(language: str) -> Locale:
    return Locale.parse(language)


def _moment(style: str, rng: Random, source: str, target: str) -> Pair:
    """A date or a time; into English, numeric dates are written out."""
    day = FIRST_DAY + datetime.timedelta(days=int(rng.random() * DAYS))
    time = datetime.time(int(rng.random() * 24), _pick(rng, (0, 5, 10, 15, 20, 30, 30, 40, 45, 50, *range(60))))
    if style == "date":
        style = _pick(rng, ("long", "long", "long", "numeric", "numeric", "iso"))
    if style in ("time", "halves"):  # of the day, where the source tells them
        style = "clock" if source not in ("en", "zh") or (style == "time" and rng.random() < 0.4) else "halves"

    def write(language: str, role: str) -> str:
        forms = TABLES["patterns"][style].get(language, {"to": "", "from": [""]})
        patterns = [one for one in forms["from"] if not one.startswith("dd/") or day.day > 12]  # 13/5/2024 is one date
        pattern = _pick(rng, patterns) if role == "from" else forms["to"]
        if style in ("halves", "clock", "hour"):
            text = dates.format_time(time, pattern or "short", locale=_locale(language))
            if language == "en" and role == "from":
                text = re.sub(
                    "[AP]M", lambda half: _pick(rng, (half[0], half[0].lower(), f"{half[0][0].lower()}.m.")), text
                )
        else:
            text = dates.format_date(day, pattern or ("full" if style == "fulldate" else "long"), _locale(language))
        return re.sub(r"(\d+)nth", lambda match: _nth(int(match[1])), text).replace("\u202f", " ")

    return write(source, "from"), write(target, "to")


def _nth(number: int) -> str:
    return f"{number}{'th' if 10 < number < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _decimal(highest: float, places: int, rng: Random, source: str, target: str) -> Pair:
    value = round(2 + (highest - 2) * rng.random() ** 2, places)
    pattern = "#,##0.00" if places == 2 and highest > 100 else "#,##0.##"  # euros and cents
    left, right = (numbers.format_decimal(value, pattern, _locale(language)) for language in (source, target))
    return left.replace("\u202f", " "), right.replace("\u202f", " ")


def _number_words(rng: Random, source: str, target: str) -> Pair:
    """A number in words, where num2words has the language; digits of the source stay digits."""
    number, spelled = 13 + int(187 * rng.random() ** 2), ("en", *SPELLED)
    left = spell(number, source) if source in spelled else str(number)
    return left, spell(number, target) if {source, target} <= {*spelled} else str(number)


def _country(case: int, rng: Random, source: str, target: str) -> Pair:
    """A country alone, or behind in, from or to; in German these are part of the slot."""
    codes, articles = TABLES["codes"], TABLES["articles"]
    code = _pick(rng, [*codes["countries"].split(), *articles])

    def write(language: str) -> str:
        name = str(_locale(language).territories[code])
        if language == "de":
            return str(articles[code][case]) if code in articles else ("", "in ", "aus ", "nach ")[case] + name
        return f"the {name}" if language == "en" and code in codes["with_the"].split() else name

    return write(source), write(target)


def _language(rng: Random, source: str, target: str) -> Pair:
    code = _pick(rng, TABLES["codes"]["languages"].split())
    return str(_locale(source).languages[code]), str(_locale(target).languages[code])


Slot = Callable[[Random, str, str], Pair]
SLOTS: dict[str, Slot] = {
    **{style: partial(_moment, style) for style in ("date", "time", *TABLES["patterns"])},
    **{name: partial(_decimal, *limits) for name, limits in TABLES["decimals"].items()},
    **{f"{case}country": partial(_country, number) for number, case in enumerate(("", "in_", "from_", "to_"))},
    **{name: partial(_listed, name, str) for name in TABLES["lists"]},
    **{change("word"): partial(_listed, "word", change) for change in (str.capitalize, str.upper)},
    **{sign * count: partial(_letters, letters, count) for sign, letters in LETTERS.items() for count in range(1, 9)},
    "words": _number_words,
    "language": _language,
}


def synthetic(source: str, target: str, count: int, seed: int = 0) -> Iterator[Augmented]:
    """`count` pairs of templates, with the kind of each; some come twice. Languages without templates get dates, times,
    numbers, countries and addresses alone."""
    kinds = [kind for kind in TABLES["templates"] if (kind == "bare") != ({source, target} <= {*TABLES["languages"]})]
    for number in range(count):
        rng = Random(f"{seed} {number}")
        kind = _pick(rng, kinds)
        left, right = _fill(_pick(rng, TABLES["templates"][kind]), (source, target), rng)
        yield left.replace(".m..", ".m."), right, kind


# Changes. Each gets the languages and the pairs up to the one to change; None says that it does not fit.
def _drop_stop(text: str) -> str:
    return _STOP.sub("", text)


def _noise(kind: str, rng: Random, languages: Pair, *pairs: Pair) -> Pair:
    text, target = pairs[-1]
    for pattern, new in TABLES["noise"][kind].get(languages[0], ()):
        text = map_outside_spans(text, partial(re.compile(pattern).sub, new))
    return text, target


def _lower_case(rng: Random, languages: Pair, *pairs: Pair) -> Pair:
    text = map_outside_spans(pairs[-1][0], partial(_PLAIN.sub, lambda word: word[0].lower()))
    return _drop_stop(text) if rng.random() < 0.4 else text, pairs[-1][1]


def _capitals(rng: Random, languages: Pair, *pairs: Pair) -> Pair | None:
    """Without digits, since a unit such as mW is another one in capitals, and without Chinese."""
    source, target = (map_outside_spans(side, str.upper) for side in pairs[-1])
    fits = not re.search(rf"[\d{WIDE}]", source) and sum(map(str.isupper, source)) > len(source) / 2
    return (source, target) if fits else None


def _title_case(rng: Random, languages: Pair, *pairs: Pair) -> Pair | None:
    source, target = map(_drop_stop, pairs[-1])
    title = partial(_TITLE_LETTER.sub, lambda letter: letter[0].upper())
    return (map_outside_spans(source, title), target) if languages[0] == "en" and len(source) < 2 * SHORT else None


def _no_stop(rng: Random, languages: Pair, *pairs: Pair) -> Pair:
    """A question or a call keeps its mark in the target; a plain full stop is missing on both sides."""
    source, target = pairs[-1]
    return _drop_stop(source), _drop_stop(target) if source.endswith((".", "。")) and target[-1] in ".。" else target


def _misspelling(rng: Random, languages: Pair, *pairs: Pair) -> Pair | None:
    """Two letters of a word change places."""
    text, target = pairs[-1]
    kept = {place for start, end in spans(text) for place in range(start, end)}
    words = [word for word in re.finditer(r"(?<!\S)[a-z]{5,}(?![^\s,;:!?])", text) if word.start() not in kept]
    if not words:
        return None
    word = _pick(rng, words)
    place = word.start() + 1 + int(rng.random() * (len(word[0]) - 2))
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :], target


def _join(pairs: Sequence[Pair], *between: str) -> Pair | None:
    """Pairs in one line, if all are whole sentences."""
    if not all(_ENDED.search(side) for pair in pairs for side in pair):
        return None
    made = []
    for sides in zip(*pairs, strict=True):
        text = sides[0]
        for side in sides[1:]:
            joint = "" if _UNSPACED.search(text[-2:]) else " "
            text += " ".join(["", *between, ""]) + side if between else joint + side
        made.append(text)
    return (made[0], made[1]) if max(map(len, made)) <= LONG else None


def _joined(rng: Random, languages: Pair, *pairs: Pair) -> Pair | None:
    """With the pairs before it; or a short one, now and then, repeated."""
    if rng.random() < 0.03 and len(pairs[-1][0]) < SHORT:
        return _join(pairs[-1:] * _pick(rng, (2, 2, 3)))
    return _join(pairs[-2 - int(rng.random() * 3) :]) if len(pairs) > 1 else None


def _framed(kind: str, rng: Random, languages: Pair, *pairs: Pair) -> Pair | None:
    """In a list, in quotes, as a heading; or with something beside it that goes through as it is."""
    source, target = pairs[-1]
    if (kind == "heading" and len(source) > SHORT) or (kind == "quotation" and _QUOTE.search(source + target)):
        return None
    if kind == "copy" and len(pairs) > 1 and rng.random() < 0.2:
        return _join(pairs[-2:], _fill("<item>", languages, rng)[0])
    body = _drop_stop(source), _drop_stop(target)
    stop = source[len(body[0]) :], target[len(body[1]) :]
    return _fill(_pick(rng, TABLES["frames"][kind]), languages, rng, text=pairs[-1], body=body, stop=stop)


Change = Callable[..., "Pair | None"]
CHANGES: dict[str, tuple[float, Change]] = {  # how often to try each, and the function
    "capitals": (4, _capitals),
    "title case": (8, _title_case),
    "lower case": (8, _lower_case),
    "no stop": (10, _no_stop),
    **{kind: (8, partial(_noise, kind)) for kind in TABLES["noise"]},
    "misspelling": (3, _misspelling),
    "joined": (30, _joined),
    "list": (5, partial(_framed, "list")),
    "label": (3, partial(_framed, "label")),
    "heading": (8, partial(_framed, "heading")),
    "quotation": (5, partial(_framed, "quotation")),
    "copy": (30, partial(_framed, "copy")),
    "emoji": (8, partial(_framed, "emoji")),
}


def augment(
    pairs: Iterable[Pair],
    source: str,
    target: str,
    seed: int = 0,
    rate: float = 1.0,
    kinds: Collection[str] = CHANGES.keys(),
) -> Iterator[Augmented]:
    """A `rate` of the pairs, each changed in one way, with the kind of the change; without those that no change fits.
    Neighbours are joined, so the pairs of a document should come in its order."""
    if unknown := [kind for kind in kinds if kind not in CHANGES]:
        raise ConfigError(f"there is no augmentation `{unknown[0]}`; choose {one_of(CHANGES)}")
    weights = [CHANGES[kind][0] for kind in kinds]
    before: deque[Pair] = deque(maxlen=4)
    for number, pair in enumerate(pairs):
        before.append(pair)
        rng = Random(f"{seed} {number}")
        if rng.random() < rate and all(map(all, before)):
            for kind in rng.choices([*kinds], weights, k=TRIES):
                made = CHANGES[kind][1](rng, (source, target), *before)
                if made and all(made) and made[0] != pair[0]:
                    yield *made, kind
                    break
