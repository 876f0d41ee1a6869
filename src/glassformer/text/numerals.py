"""The built-in corpus: English numbers, dates, times and sums of money, and what another language writes for them.

`num2words` and `Babel` know the right answer for each, so a model can be checked to the letter. A pair belongs to
train, valid or test by a hash of its target: no target (and no source) is ever in two of them, whatever the seed.
What people try first is always in train.

Left out: Chinese has no cardinals, ordinals and years, which num2words does not spell.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from glassformer.errors import ConfigError, DataError, did_you_mean, one_of
from glassformer.text.corpus import Pair

SIZES = {"train": 27_000, "valid": 1_000, "test": 1_000}
SHARES = {"valid": 0.037, "test": 0.037}  # of all pairs; a little more than asked for, since a hash deals unevenly
POOL = 29_500
# Numbers below a hundred and round ones: few among many, but what everyone types. They are all in train, and often.
TRIED_FIRST = (*range(100), *(digit * 10**zeros for zeros in range(2, 7) for digit in range(1, 10)))
REPEATS = 8
LOCALES = {"de": "de_DE", "fr": "fr_FR", "es": "es_ES", "zh": "zh_CN"}
SPELT = ("de", "fr", "es")
JOINTS = {"en": ", ", "de": "", "fr": " ", "es": " "}  # between thousands and the rest
CURRENCIES = ("EUR", "USD", "GBP", "CHF")
FIRST_DAY = datetime.date(1900, 1, 1)
LEAP_YEAR = datetime.date(2000, 1, 1)
DAYS = (datetime.date(2100, 1, 1) - FIRST_DAY).days


@dataclass(frozen=True)
class _Kind:
    """`size` different pairs, numbered; `share` of the corpus is drawn from them, or all if they are fewer."""

    share: float
    size: int
    pair: Callable[[int, str], Pair]  # number, target language


def generate(split: str, seed: int = 0, size: int | None = None, target: str = "de") -> list[Pair]:
    """`size` pairs of `split` (train, valid or test), English to `target`; the same for the same arguments."""
    if split not in SIZES:
        raise ConfigError(f"numerals has no split `{split}`; choose {one_of(SIZES)}{did_you_mean(split, SIZES)}")
    if target not in LOCALES:
        raise ConfigError(f"numerals cannot translate into `{target}`; choose {one_of(LOCALES)}")
    wanted = SIZES[split] if size is None else size
    if wanted < 1:
        raise ConfigError(f"numerals needs a size of at least 1, got {wanted}")
    share = SHARES.get(split, 1 - sum(SHARES.values()))
    # Up to the default size, a smaller corpus is the beginning of the larger one.
    total = POOL if wanted <= SIZES[split] else max(POOL, math.ceil(1.1 * wanted / share))
    pairs = _splits(seed, target, total)[split]
    if len(pairs) < wanted:
        raise ConfigError(f"numerals has {len(pairs)} pairs in `{split}`; a size of {wanted} is more than it can make")
    return list(pairs[:wanted])


@lru_cache(maxsize=4)
def _splits(seed: int, target: str, total: int) -> dict[str, tuple[Pair, ...]]:
    """All three splits, from one pass over about `total` different pairs."""
    rng = random.Random(seed)
    kinds = [kind for kind in _KINDS if target in SPELT or kind not in _SPELT_KINDS]
    shares = sum(kind.share for kind in kinds)
    answers: dict[str, str] = {}
    # The scarcest kind first: what it cannot fill of its share, the others do.
    for kind in sorted(kinds, key=lambda kind: kind.size / kind.share):
        numbers = _draw(rng, kind.size, round(total * kind.share / shares))
        total -= len(numbers)
        shares -= kind.share
        for number in numbers:
            source, answer = kind.pair(number, target)
            assert answers.setdefault(source, answer) == answer, f"two answers to {source!r}"
    pairs = list(answers.items())
    first = [_words("cardinal", 0)(number, target) for number in TRIED_FIRST] if target in SPELT else []
    pairs += first * REPEATS
    known = {answer for _, answer in first}
    order = [rng.random() for _ in pairs]
    splits: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    for place in sorted(range(len(pairs)), key=order.__getitem__):
        answer = pairs[place][1]
        splits["train" if answer in known else _split_of(answer)].append(pairs[place])
    return {name: tuple(split) for name, split in splits.items()}


def _split_of(target: str) -> str:
    digest = hashlib.blake2b(target.encode(), digest_size=8).digest()
    place = int.from_bytes(digest, "big") / 2**64
    for split, share in SHARES.items():
        if place < share:
            return split
        place -= share
    return "train"


def _draw(rng: random.Random, size: int, count: int) -> list[int]:
    """`count` different numbers below `size`, or all of them."""
    # Python promises the same numbers in every version for random() only.
    if count >= size:
        return list(range(size))
    drawn: dict[int, None] = {}
    while len(drawn) < count:
        drawn[int(rng.random() * size)] = None
    return list(drawn)


@lru_cache(maxsize=1)
def _libraries() -> tuple[Any, Any, Any]:
    try:
        import babel.dates
        import babel.numbers
        from num2words import num2words
    except ImportError as error:
        raise DataError(
            f"the numerals corpus needs the package `{error.name}`: pip install num2words Babel; "
            f"or train on text of your own"
        ) from None
    return num2words, babel.dates, babel.numbers


@lru_cache(maxsize=1 << 14)
def _spell(number: int, language: str, form: str = "cardinal") -> str:
    """`number` in words. Thousands and rest are spelt apart: num2words takes its time, and these two repeat."""
    thousands, rest = divmod(number, 1000)
    if form == "cardinal" and thousands and rest:
        joint = " and " if language == "en" and rest < 100 else JOINTS[language]
        return _spell(thousands * 1000, language) + joint + _spell(rest, language)
    return str(_libraries()[0](number, lang=language, to=form))


def _plain(text: str) -> str:
    """With plain spaces for the unbreakable ones, which nobody types."""
    return text.replace("\u202f", " ").replace("\xa0", " ")


def _words(form: str, first: int) -> Callable[[int, str], Pair]:
    def pair(number: int, target: str) -> Pair:
        return _spell(first + number, "en", form), _spell(first + number, target, form)

    return pair


def _date(style: str, first: datetime.date = FIRST_DAY) -> Callable[[int, str], Pair]:
    """Dates in a style: one of Babel's named ones, or a skeleton of fields."""

    def pair(number: int, target: str) -> Pair:
        day = first + datetime.timedelta(days=number)
        return _format_date(day, style, "en_US"), _format_date(day, style, LOCALES[target])

    return pair


def _format_date(day: datetime.date, style: str, locale: str) -> str:
    return _plain(_libraries()[1].format_date(day, _date_pattern(style, locale), locale=_locale(locale)))


@lru_cache(maxsize=64)
def _date_pattern(style: str, locale: str) -> str:
    """Babel's pattern for a style, looked up once; its search for a skeleton is slow."""
    return style if style in ("long", "full") else str(_locale(locale).datetime_skeletons[style].pattern)


@lru_cache(maxsize=8)
def _locale(name: str) -> Any:
    """Babel's locale, found once; given a name, it searches its files at every call."""
    from babel import Locale

    return Locale.parse(name)


def _month(number: int, target: str) -> Pair:
    day = datetime.date(1900 + number // 12, number % 12 + 1, 1)
    return _format_date(day, "yMMMM", "en_US"), _format_date(day, "yMMMM", LOCALES[target])


def _time(number: int, target: str) -> Pair:
    time = datetime.time(*divmod(number, 60))
    english, other = (
        _libraries()[1].format_time(time, "short", locale=_locale(name)) for name in ("en_US", LOCALES[target])
    )
    return _plain(english), _plain(other)


def _money(style: str) -> Callable[[int, str], Pair]:
    def pair(number: int, target: str) -> Pair:
        cents, currency = divmod(number, len(CURRENCIES))
        english, other = (
            _libraries()[2].format_currency(cents / 100, CURRENCIES[currency], locale=_locale(name), format_type=style)
            for name in ("en_US", LOCALES[target])
        )
        return _plain(english), _plain(other)

    return pair


_SPELT_KINDS = (
    _Kind(0.035, 1_000, _words("cardinal", 0)),
    _Kind(0.205, 9_000, _words("cardinal", 1_000)),
    _Kind(0.22, 990_000, _words("cardinal", 10_000)),
    _Kind(0.03, 999, _words("ordinal", 1)),
    _Kind(0.035, 1_000, _words("year", 1_100)),
)
_KINDS = (
    *_SPELT_KINDS,
    _Kind(0.13, DAYS, _date("long")),
    _Kind(0.09, DAYS, _date("full")),
    _Kind(0.06, DAYS, _date("yMd")),
    _Kind(0.0125, 366, _date("MMMMd", LEAP_YEAR)),
    _Kind(0.035, 2_400, _month),
    _Kind(0.048, 1_440, _time),
    _Kind(0.06, len(CURRENCIES) * 1_000_000, _money("standard")),
    _Kind(0.04, len(CURRENCIES) * 1_000_000, _money("name")),
)
