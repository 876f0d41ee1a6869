"""English numbers, dates, times and sums of money as a source whose law is known.

Each text is drawn by itself: a kind by its share, a thing of that kind evenly, a way of typing it evenly. So every text
has a probability that can be computed, and nothing that learns the source can foresee its texts better, on average,
than these probabilities do. Texts that are the same but for the way they are typed belong to the same split.

Left out are dates with their weekday: it follows from the date, but nobody sees how in a few minutes.
"""

from __future__ import annotations

import datetime
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
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
    numbers: dict[Reader, set[int]] = {}  # as each reader reads the text, once
    for kind, reader, first in _table():
        total += kind.share
        if reader not in numbers:
            numbers[reader] = set(reader(plain))
        for number in numbers[reader]:
            if 0 <= number - first < kind.size:
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


# The numbers of the things that a bare text may be, counted over some kinds that follow each other.
Reader = Callable[[str], Iterator[int]]


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


def _cardinals(plain: str) -> Iterator[int]:
    words, (left, thousand, right) = _spelled("cardinal", 0, 1000), plain.partition(" thousand")
    if left in words and (not thousand or right.lstrip() in words or not right):
        yield words[left] * 1000 + words.get(right.lstrip(), 0) if thousand else words[left]


def _lookup(form: str, first: int, end: int, plain: str) -> Iterator[int]:
    if plain in (words := _spelled(form, first, end)):
        yield words[plain]


def _digits(plain: str) -> Iterator[int]:
    if re.fullmatch("[0-9]{1,7}", plain):
        yield int(plain)


@lru_cache(maxsize=1)
def _dates(plain: str) -> list[tuple[int, list[int]]]:
    """The month's number and the other numbers of a date; cached, since three readers need them."""
    name = next((word for word in plain.split() if word in MONTHS), None)
    return [] if name is None else [(MONTHS[name], [int(word) for word in re.findall("[0-9]{1,4}", plain)])]


def _day(year: int, month: int, day: int, first: datetime.date) -> Iterator[int]:
    try:
        yield (datetime.date(year, month, day) - first).days
    except ValueError:  # no such day
        return


def _days(plain: str) -> Iterator[int]:
    for month, numbers in _dates(plain):
        if len(numbers) == 2:
            yield from _day(numbers[1], month, numbers[0], FIRST_DAY)


def _numeric_days(plain: str) -> Iterator[int]:
    if match := re.fullmatch("([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", plain):
        yield from _day(int(match[3]), int(match[1]), int(match[2]), FIRST_DAY)


def _days_of_a_year(plain: str) -> Iterator[int]:
    for month, numbers in _dates(plain):
        if len(numbers) == 1:
            yield from _day(LEAP_YEAR.year, month, numbers[0], LEAP_YEAR)


def _months(plain: str) -> Iterator[int]:
    for month, numbers in _dates(plain):
        if len(numbers) == 1:
            yield (numbers[0] - 1900) * 12 + month - 1


def _times(plain: str) -> Iterator[int]:
    if match := re.fullmatch("([0-9]{1,2}):([0-9]{2}) (am|pm)", plain):
        yield (int(match[1]) % 12 + 12 * (match[3] == "pm")) * 60 + int(match[2])


@lru_cache(maxsize=1)
def _amounts(plain: str) -> list[tuple[str, int]]:
    currencies = {place for sign, place in SIGNS.items() if sign in plain}
    amounts = re.findall(r"[0-9]+(?:\.[0-9]+)?", plain) if len(currencies) == 1 else []
    return [(amounts[0], currencies.pop())] if len(amounts) == 1 else []


def _cents(plain: str) -> Iterator[int]:
    for amount, currency in _amounts(plain):
        if re.fullmatch(r"[0-9]{1,5}\.[0-9]{2}", amount):
            yield int(amount.replace(".", "")) * len(CURRENCIES) + currency


def _sums(plain: str) -> Iterator[int]:
    for amount, currency in _amounts(plain):
        if re.fullmatch("[0-9]{1,4}", amount):
            yield (int(amount) - 1) * len(CURRENCIES) + currency
