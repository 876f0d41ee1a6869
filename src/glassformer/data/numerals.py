"""The built-in corpus: English numbers, dates, times and sums of money, and what another language writes for them.

`num2words` and `Babel` give the right answer for each. A hash of the target puts a pair into train, valid or test, so
that no source or target is in two of them, whatever the seed. What people try first is always in train.

English comes as the libraries write it and as people type it: see TYPING_STYLES. Bare digits are a number, never a
year. An amount keeps its form: "$5" is "5 $". Chinese lacks the kinds that num2words does not spell.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

from glassformer.common.errors import ConfigError, DataError, did_you_mean, one_of
from glassformer.data.corpus import Pair

SIZES = {"train": 38_000, "valid": 1_000, "test": 1_000}
SHARES = {"valid": 0.037, "test": 0.037}  # of all pairs; a little more than asked for, since a hash deals unevenly
POOL = 42_180  # pairs in all, with those that come several times
# What everyone types: small and round numbers, years of our time in digits, small sums. All are in train, and often.
COMMON_NUMBERS = (*range(100), *(digit * 10**zeros for zeros in range(2, 7) for digit in range(1, 10)))
COMMON_YEARS = range(1980, 2031)
SMALL_SUMS = 20
REPEATS = 12
LabelledPair = tuple[str, str, str]  # English, what another language writes for it, and what kind it is
LOCALES = {"de": "de_DE", "fr": "fr_FR", "es": "es_ES", "zh": "zh_CN"}
SPELLED = ("de", "fr", "es")
JOINERS = {"en": ", ", "de": "", "fr": " ", "es": " "}  # between thousands and the rest
CURRENCIES = ("EUR", "USD", "GBP", "CHF")
FIRST_DAY = datetime.date(1900, 1, 1)
LEAP_YEAR = datetime.date(2000, 1, 1)
DAYS = (datetime.date(2100, 1, 1) - FIRST_DAY).days

# What people leave out of, or change in, what the libraries write; each as often as the others.
TYPING_STYLES = (
    *("as written",) * 4,
    "no comma",
    "no hyphen",
    "no comma, no word",
    "no comma, no hyphen, no word",
    "other case",
    "no comma, no hyphen, no word, other case",
)
_SMALL_WORDS = re.compile(r"\b(?:and|US|British|Swiss) ")


@dataclass(frozen=True)
class NumeralKind:
    """`size` different pairs, numbered; `share` of the corpus is drawn from them, or all if they are fewer."""

    share: float
    size: int
    pair: Callable[[int, str], Pair]  # number, target language
    name: str = "number"


def generate(split: str, seed: int = 0, size: int | None = None, target: str = "de", kinds: bool = False) -> list[Pair]:
    """`size` pairs of `split` (train, valid or test), English to `target`; the same for the same arguments.

    `kinds`: the target is not a translation but a label: number, date, time or money."""
    if split not in SIZES:
        raise ConfigError(f"numerals has no split `{split}`; choose {one_of(SIZES)}{did_you_mean(split, SIZES)}")
    if target not in LOCALES:
        raise ConfigError(f"numerals cannot translate into `{target}`; choose {one_of(LOCALES)}")
    wanted = SIZES[split] if size is None else size
    if wanted < 1:
        raise ConfigError(f"numerals needs a size of at least 1, got {wanted}")
    share = SHARES.get(split, 1 - sum(SHARES.values()))
    # Up to the default size, a smaller corpus is the beginning of the larger one.
    total = POOL - REPEATS * len(_common_pairs(target))
    if wanted > SIZES[split]:
        total = max(total, math.ceil(1.2 * wanted / share))
    found = _splits(seed, target, total)[split]
    if len(found) < wanted:
        raise ConfigError(f"numerals has {len(found)} pairs in `{split}`; a size of {wanted} is more than it can make")
    return [(source, name if kinds else answer) for source, answer, name in found[:wanted]]


@lru_cache(maxsize=4)
def _splits(seed: int, target: str, total: int) -> dict[str, tuple[LabelledPair, ...]]:
    """All three splits, from one pass over about `total` different pairs."""
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS if target in SPELLED or kind not in _SPELLED_KINDS]
    shares = sum(kind.share for kind in kinds)
    answers: dict[str, tuple[str, str]] = {}  # and what kind each is
    # The scarcest kind first: what it cannot fill of its share, the others do.
    for kind in sorted(kinds, key=lambda kind: kind.size / kind.share):
        before = len(answers)
        _draw(rng, kind, round(total * kind.share / shares), target, answers)
        total -= len(answers) - before
        shares -= kind.share
    first = _common_pairs(target)
    pairs = [*((source, *answer) for source, answer in answers.items()), *first * REPEATS]
    known = {answer for _, answer, _ in first}
    order = [rng.random() for _ in pairs]
    splits: dict[str, list[LabelledPair]] = {"train": [], "valid": [], "test": []}
    for place in sorted(range(len(pairs)), key=order.__getitem__):
        answer = pairs[place][1]
        splits["train" if answer in known else split_of(answer, SHARES)].append(pairs[place])
    return {name: tuple(split) for name, split in splits.items()}


def split_of(text: str, shares: Mapping[str, float]) -> str:
    """The split of a text by its hash: one of the held-out `shares`, or train; independent of all other texts."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    place = int.from_bytes(digest, "big") / 2**64
    for split, share in shares.items():
        if place < share:
            return split
        place -= share
    return "train"


def type_like_people(source: str, style: str) -> str:
    """`source` as people type it: without commas, hyphens or small words, in another case of letters."""
    if "comma" in style:
        source = source.replace(",", "")
    if "hyphen" in style:
        source = source.replace("-", " ")
    if "word" in style:
        source = _SMALL_WORDS.sub("", source)
    if "case" in style:
        source = source.capitalize() if source.islower() else source.lower()
    return source


def _draw(rng: random.Random, kind: NumeralKind, count: int, target: str, answers: dict[str, tuple[str, str]]) -> None:
    """Add `count` more pairs of `kind` to `answers`, or all there are."""
    size, end = kind.size * len(TYPING_STYLES), len(answers) + count
    drawn: set[int] = set()
    while len(answers) < end and len(drawn) < size:
        # Python promises the same numbers in every version for random() only.
        number = int(rng.random() * size) if count < size else len(drawn)
        if number not in drawn:
            drawn.add(number)
            source, answer = kind.pair(number // len(TYPING_STYLES), target)
            source = type_like_people(source, TYPING_STYLES[number % len(TYPING_STYLES)])
            assert answers.setdefault(source, (answer, kind.name))[0] == answer, f"two answers to {source!r}"


@lru_cache(maxsize=4)
def _common_pairs(target: str) -> tuple[LabelledPair, ...]:
    """What people try first, in all the ways they type it."""
    sums = [_money("standard", 0, number, target, whole=True) for number in range(len(CURRENCIES) * SMALL_SUMS)]
    pairs: list[Pair] = []
    if target in SPELLED:
        pairs += [_words("cardinal", 0, number, target) for number in COMMON_NUMBERS]
        pairs += [_digits(0, number, target) for number in (*COMMON_NUMBERS, *COMMON_YEARS)]
        pairs += [_digits(0, number, target, grouped=True) for number in COMMON_NUMBERS]
    named = [*((*pair, "money") for pair in sums), *((*pair, "number") for pair in pairs)]
    return tuple(
        dict.fromkeys(
            (type_like_people(source, way), answer, name) for source, answer, name in named for way in TYPING_STYLES
        )
    )


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
def spell(number: int, language: str, form: str = "cardinal") -> str:
    """`number` in words. Thousands and rest are spelt apart: num2words takes its time, and these two repeat."""
    thousands, rest = divmod(number, 1000)
    if form == "cardinal" and thousands and rest:
        joint = " and " if language == "en" and rest < 100 else JOINERS[language]
        return spell(thousands * 1000, language) + joint + spell(rest, language)
    return str(_libraries()[0](number, lang=language, to=form))


def _plain(text: str) -> str:
    """`text` with plain spaces in place of non-breaking ones."""
    return text.replace("\u202f", " ").replace("\xa0", " ")


def _words(form: str, first: int, number: int, target: str) -> Pair:
    return spell(first + number, "en", form), spell(first + number, target, form)


def _digits(first: int, number: int, target: str, grouped: bool = False) -> Pair:
    number += first
    return f"{number:,}" if grouped else str(number), spell(number, target)


def _date(style: str, number: int, target: str, first: datetime.date = FIRST_DAY, english: str = "en_US") -> Pair:
    """A date in a style: one of Babel's named ones, or a skeleton of fields."""
    day = first + datetime.timedelta(days=number)
    return _format_date(day, style, english), _format_date(day, style, LOCALES[target])


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
    format_time = partial(_libraries()[1].format_time, time, "short")
    return _plain(format_time(locale=_locale("en_US"))), _plain(format_time(locale=_locale(LOCALES[target])))


def _money(style: str, first: int, number: int, target: str, whole: bool = False) -> Pair:
    """A sum with cents, from 0.00 on, or a whole one, from 1 on; the currencies take turns."""
    count, currency = divmod(first + number, len(CURRENCIES))
    amount = count + 1 if whole else count / 100
    format_currency = partial(_libraries()[2].format_currency, amount, CURRENCIES[currency])

    def written(locale: str) -> str:
        place, bare = _locale(locale), whole and style == "standard"
        pattern = place.currency_formats["standard"].pattern.replace(".00", "") if bare else None
        return _plain(format_currency(pattern, locale=place, format_type=style, currency_digits=not whole))

    return written("en_US"), written(LOCALES[target])


def _by_length(
    share: float, ends: tuple[int, ...], pair: Callable[[int, int, str], Pair], name: str = "number"
) -> list[NumeralKind]:
    """Numbers up to each of `ends` in equal parts: drawn from all alike, short ones would be too rare to be learnt."""
    kinds = pairwise((0, *ends))
    return [NumeralKind(share / len(ends), end - first, partial(pair, first), name) for first, end in kinds]


_CENTS = tuple(len(CURRENCIES) * end for end in (1_000, 10_000, 100_000, 1_000_000))
_WHOLE = tuple(len(CURRENCIES) * end for end in (99, 999, 9_999))
_SPELLED_KINDS = (
    *_by_length(0.28, (1_000, 10_000, 100_000, 1_000_000), partial(_words, "cardinal")),
    *_by_length(0.19, (1_000, 10_000, 100_000, 1_000_000), _digits),
    *_by_length(0.05, (10_000, 100_000, 1_000_000), partial(_digits, grouped=True)),
    NumeralKind(0.035, 999, partial(_words, "ordinal", 1)),
    NumeralKind(0.035, 1_000, partial(_words, "year", 1_100)),
)
KINDS = (
    *_SPELLED_KINDS,
    NumeralKind(0.1, DAYS, partial(_date, "long"), "date"),
    NumeralKind(0.03, DAYS, partial(_date, "long", english="en_GB"), "date"),
    NumeralKind(0.08, DAYS, partial(_date, "full"), "date"),
    NumeralKind(0.05, DAYS, partial(_date, "yMd"), "date"),
    NumeralKind(0.015, 366, partial(_date, "MMMMd", first=LEAP_YEAR), "date"),
    NumeralKind(0.03, 2_400, _month, "date"),
    NumeralKind(0.05, 1_440, _time, "time"),
    *_by_length(0.08, _CENTS, partial(_money, "standard"), "money"),
    *_by_length(0.03, _CENTS, partial(_money, "name"), "money"),
    *_by_length(0.06, _WHOLE, partial(_money, "standard", whole=True), "money"),
    *_by_length(0.045, _WHOLE, partial(_money, "name", whole=True), "money"),
)
