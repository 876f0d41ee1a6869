"""The built-in corpus: right, repeatable, and fairly split."""

from __future__ import annotations

import datetime
import random
import re
import sys
from collections import Counter
from functools import lru_cache

import pytest

from glassformer.common.errors import ConfigError, DataError
from glassformer.data import numerals
from glassformer.data.numerals import generate


def test_sizes_and_disjoint_splits() -> None:
    splits = {split: generate(split) for split in ("train", "valid", "test")}
    assert {split: len(pairs) for split, pairs in splits.items()} == {"train": 38_000, "valid": 1_000, "test": 1_000}
    for side in (0, 1):
        seen = [{pair[side] for pair in pairs} for pairs in splits.values()]
        assert len(set.union(*seen)) == sum(map(len, seen))
    for name, pairs in splits.items():
        repeated = {source for source, count in Counter(source for source, _ in pairs).items() if count > 1}
        assert repeated == ({source for source, _, _ in numerals._common_pairs("de")} if name == "train" else set())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numerals, "POOL", 12_500)
    # In a cache of their own, so that the whole corpus stays in the other one.
    monkeypatch.setattr(numerals, "_splits", lru_cache(numerals._splits.__wrapped__))


@pytest.mark.usefixtures("small")
def test_splits_stay_disjoint_across_seeds() -> None:
    tested = {target for _, target in generate("test", size=90)}
    assert not tested & {target for _, target in generate("train", seed=1, size=2_000)}
    assert not tested & {target for _, target in generate("train", size=2_000)}


@pytest.mark.usefixtures("small")
def test_more_than_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(numerals.SIZES, "valid", 300)
    assert len({source for source, _ in generate("valid", size=400)}) == 400
    monkeypatch.setitem(numerals.SIZES, "valid", 1_000)
    with pytest.raises(ConfigError, match="a size of 1000 is more than it can make"):  # of the small pool
        generate("valid", size=1_000)


@pytest.mark.usefixtures("small")
def test_a_function_of_the_seed() -> None:
    first = generate("valid", seed=3, size=90)
    numerals._splits.cache_clear()
    assert generate("valid", seed=3, size=90) == first != generate("valid", seed=4, size=90)
    assert generate("valid", seed=3, size=10) == first[:10]


def test_examples() -> None:
    day = (datetime.date(2021, 3, 3) - numerals.FIRST_DAY).days
    assert numerals._date("long", day, "de") == ("March 3, 2021", "3. März 2021")
    assert numerals._date("full", day, "fr") == ("Wednesday, March 3, 2021", "mercredi 3 mars 2021")
    assert numerals._date("long", day, "zh") == ("March 3, 2021", "2021年3月3日")
    assert numerals._words("cardinal", 0, 21, "de") == ("twenty-one", "einundzwanzig")
    assert numerals._words("ordinal", 1, 20, "es") == ("twenty-first", "vigésimo primero")
    assert numerals._words("year", 1100, 884, "de") == ("nineteen eighty-four", "neunzehnhundertvierundachtzig")
    assert numerals._time(15 * 60 + 45, "de") == ("3:45 PM", "15:45")
    assert numerals._money("standard", 0, 4 * 123450, "de") == ("€1,234.50", "1.234,50 €")
    assert numerals._money("standard", 0, 4 * 1233 + 1, "de", whole=True) == ("$1,234", "1.234 $")
    assert numerals._money("standard", 0, 4 * 4 + 1, "zh", whole=True) == ("$5", "US$5")
    assert numerals._money("name", 0, 0, "fr", whole=True) == ("1 euro", "1 euro")
    assert numerals._digits(1_000, 999, "de") == ("1999", "eintausendneunhundertneunundneunzig")
    assert numerals._digits(1_000, 1_021, "es", grouped=True) == ("2,021", "dos mil veintiuno")


@pytest.mark.parametrize("language", ["en", "de", "fr", "es"])
def test_spelling_in_parts_is_num2words(language: str) -> None:
    from num2words import num2words

    numbers = [1_000, 1_001, 1_100, 21_000, 80_080, 200_001, 999_999, *random.Random(0).sample(range(1_000_000), 100)]
    assert [numerals.spell(n, language) for n in numbers] == [num2words(n, lang=language) for n in numbers]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("target", ["fr", "es", "zh"])
def test_other_languages(target: str) -> None:
    pairs = generate("train", target=target, size=2_500)
    assert len(pairs) == 2_500
    assert len({source for source, _ in pairs}) > 1_200  # what is tried first comes several times
    answers = dict(pairs)
    assert ("21" in answers) == (target != "zh")
    assert "$5" in answers
    assert any("hundred" in source for source, _ in pairs) == (target != "zh")


def test_wrong_options() -> None:
    with pytest.raises(ConfigError, match="did you mean `valid`"):
        generate("vaild")
    with pytest.raises(ConfigError, match="choose `de`"):
        generate("train", target="xx")
    with pytest.raises(ConfigError, match="at least 1"):
        generate("train", size=0)


def test_missing_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    numerals._libraries.cache_clear()
    monkeypatch.setitem(sys.modules, "num2words", None)
    with pytest.raises(DataError, match="pip install num2words Babel"):
        generate("test", seed=77)


def test_what_people_type_first_is_learnt() -> None:
    learnt = dict(generate("train"))
    typed = {
        "21": "einundzwanzig",
        "1999": "eintausendneunhundertneunundneunzig",
        "2021": "zweitausendeinundzwanzig",
        "$5": "5 $",
        "twenty-one": "einundzwanzig",
        "twenty one": "einundzwanzig",
        "Twenty-one": "einundzwanzig",
    }
    assert {source: learnt.get(source) for source in typed} == typed
    dates = [source for source in learnt if re.fullmatch("[A-Z][a-z]+ [0-9]+ [0-9]{4}", source)]
    assert learnt.items() >= {source: spoken(source) for source in dates}.items()
    assert len(dates) > 300


def spoken(date: str) -> str:
    from babel.dates import format_date

    return format_date(datetime.datetime.strptime(date, "%B %d %Y"), "long", locale="de_DE")


@pytest.mark.parametrize(
    ("source", "typed"),
    [
        ("four thousand, one hundred and fifty-seven", "four thousand one hundred fifty seven"),
        ("Wednesday, March 3, 2021", "Wednesday March 3 2021"),
        ("$1,234.50", "$1234.50"),
        ("5 US dollars", "5 dollars"),
    ],
)
def test_commas_hyphens_and_small_words_are_left_out(source: str, typed: str) -> None:
    assert numerals.type_like_people(source, "no comma, no hyphen, no word") == typed
    assert numerals.type_like_people(source, "as written") == source
    other = numerals.type_like_people(source, "other case")
    assert other != source or not any(map(str.isalpha, source))
    assert other.lower() == source.lower()


@pytest.mark.parametrize("target", ["de", "fr", "es", "zh"])
def test_a_source_has_one_answer(target: str) -> None:
    answers: dict[str, tuple[str, str]] = {}
    rng = random.Random(5)
    for kind in numerals.KINDS if target in numerals.SPELLED else numerals.KINDS[len(numerals._SPELLED_KINDS) :]:
        numerals._draw(rng, kind, 300, target, answers)  # fails where there are two
    for source, *answer in numerals._common_pairs(target):
        assert answers.setdefault(source, tuple(answer)) == tuple(answer)


def test_a_kind_stands_beside_the_same_texts() -> None:
    """What is told of a text follows from how it was made, and no label stands in a text."""
    for split in ("train", "valid", "test"):
        texts, kinds = generate(split), generate(split, kinds=True)
        assert [source for source, _ in texts] == [source for source, _ in kinds]
    told = dict(generate("train", kinds=True))
    assert set(told.values()) == {"number", "date", "time", "money"}
    assert told["twenty-one"] == "number"
    signs = re.compile(r"[€$£]|CHF|euro|dollar|pound|franc", re.IGNORECASE)
    for source, kind in told.items():
        assert (signs.search(source) is not None) == (kind == "money"), source
        assert (re.fullmatch(r"\d+:\d\d [AP]M", source, re.IGNORECASE) is not None) == (kind == "time"), source
        assert kind not in source
