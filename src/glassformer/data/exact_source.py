"""English numbers, dates, times and sums of money as a source whose law is known.

Each text is drawn independently: a kind by its share, then a thing of that kind and a way of typing it, each uniformly.
So the probability of every text is known, and no model can have a lower loss on average. Texts that differ only in how
they are typed belong to the same split. Dates with their weekday are left out: to learn it takes too long.
"""

from __future__ import annotations

import datetime
import math
import random
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import accumulate, islice

from glassformer.common.errors import ConfigError, did_you_mean, one_of
from glassformer.data import numerals
from glassformer.data.numerals import CURRENCIES, FIRST_DAY, LEAP_YEAR, TYPING_STYLES, type_like_people
from glassformer.data.tokenizer import PairTokenizer

SIZES = {"train": 100_000, "valid": 1_000, "test": 2_000}
HELD_OUT = {"valid": 0.05, "test": 0.1}
_SMALL_WORDS = re.compile(r"\b(?:and|us|british|swiss) ")
MONTHS = {name: number for number, name in enumerate(
    ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
     "december"), 1)}  # fmt: skip
SIGNS = {"€": 0, "euro": 0, "$": 1, "dollar": 1, "£": 2, "pound": 2, "chf": 3, "franc": 3}  # places in CURRENCIES
assert CURRENCIES == ("EUR", "USD", "GBP", "CHF")


def draw(split: str, seed: int = 0, size: int | None = None) -> tuple[str, ...]:
    """`size` texts of `split` (train, valid or test), each drawn by itself; the same for the same arguments."""
    if split not in SIZES:
        raise ConfigError(f"numerals-text has no split `{split}`; choose {one_of(SIZES)}{did_you_mean(split, SIZES)}")
    return _drawn(split, seed, SIZES[split] if size is None else size)


@lru_cache(maxsize=4)
def _drawn(split: str, seed: int, size: int) -> tuple[str, ...]:
    rng = random.Random(f"{split} {seed}")
    kinds = [kind for kind, _, _ in _table()]
    ends = list(accumulate(kind.share for kind in kinds))
    found: list[str] = []
    while len(found) < size:
        place = rng.random() * ends[-1]  # Python promises the same numbers in every version for random() only
        kind = kinds[next(number for number, end in enumerate(ends) if place < end)]
        text = type_like_people(
            _english(kind, int(rng.random() * kind.size)), TYPING_STYLES[int(rng.random() * len(TYPING_STYLES))]
        )
        if numerals.split_of(normalized(text), HELD_OUT) == split:
            found.append(text)
    return tuple(found)


def log_probability(text: str) -> float:
    """How likely the source is to draw a text: the sum over all that could have become it, minus infinity for none."""
    plain, total, chance = normalized(text), 0.0, 0.0
    numbers: dict[Reader, int | None] = {}  # as each reader reads the text, once
    for kind, reader, first in _table():
        total += kind.share
        if reader not in numbers:
            numbers[reader] = reader(plain)
        number = numbers[reader]
        if number is not None and 0 <= number - first < kind.size:
            origin = _english(kind, number - first)
            ways = sum(type_like_people(origin, way) == text for way in TYPING_STYLES)
            chance += kind.share / kind.size * ways / len(TYPING_STYLES)
    return math.log(chance / total) if chance else -math.inf


def least_loss(texts: Sequence[str]) -> float:
    """The nats that these texts cost a model with the exact probabilities: no model can cost less on average."""
    return -math.fsum(map(log_probability, texts))


def determined_tokens(ids: Sequence[int], tokenizer: PairTokenizer, pieces: Sequence[int]) -> list[bool]:
    """Of each token of a text, whether the others leave no choice: with any other of `pieces` in its place, the text
    is none of the source's, or is cut into other tokens."""

    def possible(place: int, id: int) -> bool:
        other = [*ids[:place], id, *ids[place + 1 :]]
        (text,) = tokenizer.decode_target([other])
        return log_probability(text) > -math.inf and tokenizer.encode_target([text])[0] == other

    return [not any(possible(place, id) for id in pieces if id != own) for place, own in enumerate(ids)]


def normalized(text: str) -> str:
    """The form that all ways of typing a text share."""
    return _SMALL_WORDS.sub("", text.lower().replace(",", "").replace("-", " "))


@lru_cache(maxsize=1 << 16)
def _english(kind: numerals.NumeralKind, number: int) -> str:
    return kind.pair(number, "de")[0]


# The number of the thing that a bare text is, counted over some kinds that follow each other; None for another text.
Reader = Callable[[str], int | None]


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[numerals.NumeralKind, Reader, int], ...]:
    """Each kind, its reader, and the number that its first thing has there."""
    groups: list[tuple[int, Reader | None]] = [
        (4, _cardinals), (4, _digits), (3, _digits), (1, partial(_lookup, "ordinal", 1, 1000)),
        (1, partial(_lookup, "year", 1100, 2100)), (1, _days), (1, _days), (1, None), (1, _numeric_days),
        (1, _days_of_a_year), (1, _months), (1, _times), (4, _cents), (4, _cents), (3, _sums), (3, _sums),
    ]  # fmt: skip
    kinds, found = iter(numerals.KINDS), []
    for count, reader in groups:
        first = 0
        for kind in islice(kinds, count):
            if reader is not None:
                found.append((kind, reader, first))
            first += kind.size
    assert next(kinds, None) is None
    return tuple(found)


@lru_cache(maxsize=3)
def _spelled(form: str, first: int, end: int) -> dict[str, int]:
    return {normalized(numerals.spell(number, "en", form)): number - first for number in range(first, end)}


def _cardinals(plain: str) -> int | None:
    words, (left, thousand, right) = _spelled("cardinal", 0, 1000), plain.partition(" thousand")
    if not thousand:
        return words.get(left)
    rest = words.get(right.lstrip()) if right else 0
    return None if left not in words or rest is None else words[left] * 1000 + rest


def _lookup(form: str, first: int, end: int, plain: str) -> int | None:
    return _spelled(form, first, end).get(plain)


def _digits(plain: str) -> int | None:
    return int(plain) if re.fullmatch("[0-9]{1,7}", plain) else None


@lru_cache(maxsize=1)  # for the readers that need it
def _date(plain: str) -> tuple[int, ...]:
    """The month's number and the other numbers of a date."""
    month = next((MONTHS[word] for word in plain.split() if word in MONTHS), None)
    return () if month is None else (month, *map(int, re.findall("[0-9]{1,4}", plain)))


def _day(year: int, month: int, day: int, first: datetime.date) -> int | None:
    try:
        return (datetime.date(year, month, day) - first).days
    except ValueError:  # no such day
        return None


def _days(plain: str) -> int | None:
    date = _date(plain)
    return _day(date[2], date[0], date[1], FIRST_DAY) if len(date) == 3 else None


def _numeric_days(plain: str) -> int | None:
    match = re.fullmatch("([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", plain)
    return _day(int(match[3]), int(match[1]), int(match[2]), FIRST_DAY) if match else None


def _days_of_a_year(plain: str) -> int | None:
    date = _date(plain)
    return _day(LEAP_YEAR.year, *date, LEAP_YEAR) if len(date) == 2 else None


def _months(plain: str) -> int | None:
    date = _date(plain)
    return (date[1] - 1900) * 12 + date[0] - 1 if len(date) == 2 else None


def _times(plain: str) -> int | None:
    match = re.fullmatch("([0-9]{1,2}):([0-9]{2}) (am|pm)", plain)
    return (int(match[1]) % 12 + 12 * (match[3] == "pm")) * 60 + int(match[2]) if match else None


def _amount(form: str, plain: str) -> int | None:
    """The only amount of a text with one currency, where it has this form."""
    currencies = {place for sign, place in SIGNS.items() if sign in plain}
    amounts = re.findall(r"[0-9]+(?:\.[0-9]+)?", plain)
    if len(currencies) != 1 or len(amounts) != 1 or not re.fullmatch(form, amounts[0]):
        return None
    return int(amounts[0].replace(".", "")) * len(CURRENCIES) + currencies.pop()


def _cents(plain: str) -> int | None:
    return _amount(r"[0-9]{1,5}\.[0-9]{2}", plain)


def _sums(plain: str) -> int | None:
    number = _amount("[0-9]{1,4}", plain)
    return None if number is None else number - len(CURRENCIES)
