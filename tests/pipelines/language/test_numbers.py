"""Numbers are kept, as each language writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.pipelines.language.numbers import Number, compare_numbers, find_numbers, localize


def told(source, target, languages):
    lost, invented = compare_numbers(
        find_numbers(source, languages[0]), find_numbers(target, languages[1]), (source, target), languages
    )
    return [one.text for one in lost], [one.text for one in invented]


KEPT = [
    ("en", "de", "It costs 1,234.5 dollars.", "Es kostet 1.234,5 Dollar."),
    ("en", "de", "It costs 1,234.5 dollars.", "Es kostet 1,234.5 Dollar."),  # as it is
    ("en", "de", "10,000 users", "10 000 Benutzer"),
    ("en", "de", "10,000 users", "10000 Benutzer"),
    ("de", "en", "1.234,5 Punkte und 3,5 %", "1,234.5 points and 3.5%"),
    ("en", "de", "Due on 12/31/2026 at 3:00 PM.", "Fällig am 31.12.2026 um 15 Uhr."),
    ("en", "de", "Due on 1/3/2026.", "Fällig am 03.01.2026."),
    ("en", "de", "from 2026-01-03", "ab 03.01.2026"),
    ("en", "de", "the 1st of 2", "der 1. von 2"),
    ("en", "de", "until 2:30", "bis 2.30 Uhr"),
    ("en", "zh", "March 3", "3 月 3 日"),
    ("zh", "en", "3 月 3 日", "March 3"),
    ("en", "zh", "10,000 files", "1万个文件"),
    ("en", "zh", "150 million people", "1.5 亿人"),
    ("de", "en", "2 Milliarden", "2 billion"),
    ("en", "zh", "at 3 p.m.", "下午3点"),
    ("zh", "en", "晚上8点", "8 p.m."),
    ("en", "de", "Version 4.5.2 on x86", "Version 4.5.2 auf x86"),
    ("zh", "en", "第１２章", "Chapter 12"),
    ("en", "de", "two files", "2 Dateien"),
    ("en", "de", "in March 2026", "im 03/2026"),
    ("de", "en", "im ſeptember, MAI und im maı", "in 9, 5 and 5"),  # letters that are the same to a search
    ("en", "de", "12345678901234567890123456789 thousand", "12345678901234567890123456789000"),
    ("en", "zh", "0.05 million", "5万"),
    ("en", "de", "1.25 thousand", "1.250"),
    ("en", "de", "until 2:30:15 p.m.", "bis 14:30:15"),
]


@pytest.mark.parametrize(("source_language", "target_language", "source", "target"), KEPT)
def test_a_number_may_be_written_as_the_language_does(source_language, target_language, source, target):
    assert told(source, target, (source_language, target_language)) == ([], [])


@pytest.mark.parametrize(
    ("source", "target", "lost", "invented"),
    [
        ("7 files", "8 Dateien", ["7"], ["8"]),
        ("7 files", "Dateien", ["7"], []),
        ("7 files", "7 Dateien 7", [], ["7"]),
        ("3.5 and 3.5", "3,5", ["3.5"], []),
        ("1,234", "1,235", ["1,234"], ["1,235"]),
        ("1,234.5", "12.345", ["1,234.5"], ["12.345"]),
        ("10 and 20", "1020", ["10", "20"], ["1020"]),
        ("100 files", "hundert Dateien", ["100"], []),  # what is in digits stays so
        ("at 3 PM", "um 16 Uhr", ["3"], ["16"]),
        ("12/31/2026", "31.11.2026", ["12"], ["11"]),
        ("00:00:5e", "5e", ["00", "00"], []),
        ("2 million", "2000", ["2"], []),
    ],
)
def test_what_is_lost_or_made_up_is_told(source, target, lost, invented):
    assert told(source, target, ("en", "de")) == (lost, invented)


def test_a_number_that_is_put_in_is_written_in_the_language():
    assert localize("1,234.5", "en", "de") == "1.234,5"
    assert localize("1.234,5", "de", "en") == "1,234.5"
    assert localize("4.5", "en", "de") == "4.5"  # it may be a version
    assert localize("12/31/2026", "en", "de") == "12/31/2026"
    assert localize("1,234", "en", "zh") == "1,234"


def test_stretches_are_left_out():
    assert [one.text for one in find_numbers("`a1` 2", "en", [(0, 4)])] == ["2"]


def test_a_number_beside_a_stretch_apart_is_its_own():
    text = "c=1 007 und 10 000"
    assert [one.text for one in find_numbers(text, "de", [(0, 3)])] == ["007", "10\u202f000"]
    assert [one.text for one in find_numbers(text, "de")] == ["1\u202f007", "10\u202f000"]


def slowly(source, target):
    """Each number of the source takes the first of the target that is written as it is; then, that means the same."""
    left = list(target)
    for same in (lambda a, b: a.text == b.text, lambda a, b: not a.values.isdisjoint(b.values)):
        lost = []
        for number in source:
            match = next((one for one in left if same(number, one)), None)
            if match is None:
                lost.append(number)
            else:
                left.remove(match)
        source = lost
    return source, left


SOME = st.lists(st.tuples(st.sampled_from("123"), st.frozensets(st.sampled_from("12345"), max_size=3)), max_size=8)


@given(SOME, SOME)
def test_numbers_are_compared_as_one_by_one(source, target):
    source, target = ([Number(i, i + 1, *one) for i, one in enumerate(several)] for several in (source, target))
    assert compare_numbers(source, target, ("", ""), ("xx", "xx")) == slowly(source, target)
