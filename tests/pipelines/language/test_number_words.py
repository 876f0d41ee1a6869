"""Numbers in words: found, read, and said again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from glassformer.pipelines.language.invariants import Invariants
from glassformer.pipelines.language.numbers import (
    SMALL,
    NumberWord,
    find_number_words,
    possible_number_words,
    spell_chinese,
)

SENTENCES = {"en": "We saw {} people.", "de": "Wir sahen {} Leute.", "zh": "我们看到{}个人。"}
numbers = st.one_of(st.integers(SMALL + 1, 9_999), st.integers(10_000, 999_999_999))


@given(numbers, st.sampled_from(sorted(SENTENCES)))
def test_what_another_writes_is_read(value, language):
    word = spell_chinese(value) if language == "zh" else num2words(value, lang=language)
    text = SENTENCES[language].format(word)
    assert [(text[one.start : one.end], one.value) for one in find_number_words(text, language)] == [(word, value)]
    assert possible_number_words(text, language)[value] == 1
    assert possible_number_words(text, language)[value + 1] == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(10, "十"), (15, "十五"), (110, "一百一十"), (1_001, "一千零一"), (10_010, "一万零一十"), (20_300, "二万零三百"),
     (200_000, "二十万"), (100_000_000, "一亿"), (300_310_234, "三亿零三十一万零二百三十四"), (0, "零")],
)  # fmt: skip
def test_chinese_numbers_are_as_they_are_written(value, text):
    assert spell_chinese(value) == text


@pytest.mark.parametrize(
    ("language", "text", "values"),
    [
        ("en", "two hundred and fifty thousand", [250_000]),
        ("en", "Twenty one people, THIRTY-TWO dogs and a hundred and five cats", [21, 32, 105]),
        ("en", "in nineteen eighty-four and in twenty twenty-six", [1984, 2026]),
        ("en", "between one hundred and two hundred people", [100, 200]),
        ("en", "three to five", [3, 5]),
        ("de", "im Jahr neunzehnhundertvierundachtzig", [1984]),
        ("de", "zwei Millionen und dreißig Leute", [2_000_030]),
        ("de", "Eine Million Leute", [1_000_000]),
        ("zh", "一九八四年十二月二十五日", [1984, 25]),
        ("zh", "两百七十五个人，三百万个人", [275, 3_000_000]),
    ],
)
def test_numbers_are_read_as_they_are_meant(language, text, values):
    assert [one.value for one in find_number_words(text, language)] == values


@pytest.mark.parametrize(
    ("language", "text"),
    [(language, text) for language, texts in {
        "en": ["a hundred people", "half a million", "hundreds of thousands", "seven thirty", "fifty-fifty",
               "a twenty-second delay", "the twenty-first century", "twenty one-dollar bills", "twenty point five",
               "between one hundred and twenty people", "three-fourths", "three.js", ":four:", "the Big Five",
               'the string "forty"', "forty and a half", "one or two"],
        "de": ["hundert Leute", "die einundzwanzigste", "gib acht", "zwanzig Komma fünf", "zweihundert und zwanzig",
               "zwanzig dreißig", "Jahrhundert"],
        "zh": ["十分", "第二十一", "九十年代", "三十五点二", "百分之二十", "几十", "五六十", "二百五", "十进制",
               "千万"],
    }.items() for text in texts],
)  # fmt: skip
def test_what_reads_otherwise_is_left_alone(language, text):
    assert find_number_words(text, language) == []


@pytest.mark.parametrize(
    ("language", "text", "value"),
    [("en", "the twenty-first", 21), ("en", "in her thirties", 30), ("en", "thanks a million", 1_000_000),
     ("de", "zwanzigmal", 20), ("de", "hundertprozentig", 100), ("de", "neunhundert- und sechzehn Leute", 916),
     ("de", "der dritte", 3), ("de", "am siebten", 7), ("zh", "第二十一", 21), ("zh", "百万", 1_000_000),
     ("zh", "两个", 2)],
)  # fmt: skip
def test_a_translation_may_say_it_in_many_ways(language, text, value):
    assert possible_number_words(text, language)[value] == 1


def test_chinese_that_nobody_writes_says_nothing():
    assert not possible_number_words("三十两本书", "zh")
    assert not possible_number_words("九十百六", "zh")


@pytest.mark.parametrize(
    ("source", "target", "languages", "unsaid"),
    [
        ("eighty-eight mistakes", "achtundachtzig Fehler", ("en", "de"), False),
        ("eighty-eight mistakes", "88 Fehler", ("en", "de"), False),
        ("eighty-eight mistakes", "achtzehn Fehler", ("en", "de"), True),
        ("eighty-eight mistakes in 88 lines", "Fehler in 88 Zeilen", ("en", "de"), True),
        ("eighty-eight mistakes", "八十个错误", ("en", "zh"), True),
        ("eighty-eight mistakes", "88 个错误", ("en", "zh"), False),
        ("two million people", "200万人", ("en", "zh"), False),
        ("run `forty`", "führen Sie `forty` aus", ("en", "de"), False),
        ("eighty-eight mistakes", "quatre-vingts erreurs", ("en", "fr"), False),
    ],
)
def test_a_translation_that_says_another_number_is_told(source, target, languages, unsaid):
    assert Invariants(source, languages).misses_number_word(target) is unsaid


def test_numbers_are_put_in_digits_or_in_the_words_of_another_language():
    invariants = Invariants("Seventy-six people and two hundred thousand `forty`", ("en", "de"))
    assert invariants.respell() == "76 people and 200,000 `forty`"
    assert invariants.respell("de") == "sechsundsiebzig people and zweihunderttausend `forty`"
    assert NumberWord(0, 1, 200_000).digits("de") == "200.000"
    assert NumberWord(0, 1, 200_000).words("zh") == "二十万"
