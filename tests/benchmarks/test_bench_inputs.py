"""The 300 inputs are well formed, and every check of an answer passes a right one and fails a broken one."""

import re
from collections import Counter

import pytest

import glassformer as gf
from benchmarks.inputs import (
    ALWAYS,
    CHECKS,
    DIRECTIONS,
    Answer,
    Case,
    ask,
    date_pattern,
    judge,
    number_pattern,
    read_cases,
)

CASES = read_cases()
TRAIN = "The train to Vienna leaves at nine. I will bring the tickets."
LIST = "# Shopping\n\n- milk\n- [x] bread"
SLEEP = "Der Hund schläft heute im Garten."
# A check, what it wants, a text into German with a right answer, and a broken one.
JUDGED = [
    ("has", ["Zug|Bahn"], "The train is late.", "Der Zug hat Verspätung.", "Das Training ist spät."),
    ("lacks", ["Dollar"], "It costs 5 euros.", "Es kostet 5 Euro.", "Es kostet 5 Dollar."),
    ("keep", ["{name}"], "Hello {name}!", "Hallo {name}!", "Hallo {Name}!"),
    ("quoted", ["Freiheit"], 'The word "freedom".', "Das Wort „Freiheit“.", "Das Wort Freiheit."),
    ("numbers", ["1234.5", "3"], "1,234.5 m, not 3.", "1.234,5 m, nicht drei.", "1.234 m, nicht drei."),
    ("dates", ["2026-12-31"], "Until 12/31/2026.", "Bis 31. Dezember 2026.", "Bis 12/31/2026."),
    ("sentences", 2, TRAIN, "Der Zug fährt um neun. Ich bringe die Karten.", "Der Zug nach Wien fährt um neun Uhr."),
    ("same", True, "?!? 42", "?!? 42", "? 42"),
    ("doubt", True, "qwrt", "qwrt", "Quadrat"),
    ("filled", True, "Hello", "Hallo", " "),
    ("translated", True, "Good morning", "Guten Morgen", "Good morning."),
    ("language", True, TRAIN, "Der Zug nach Wien fährt um neun Uhr.", "Der Zug fährt. I will bring the tickets."),
    ("language", True, "Dogs sleep.", "Hunde schlafen.", "Hunde 睡觉。"),
    ("short", True, TRAIN, "Der Zug nach Wien fährt um neun.", "Der Zug."),
    ("long", True, "Dogs sleep.", "Hunde schlafen.", "Die Hunde, die hier schlafen, schlafen hier."),
    ("repetition", True, "The dog sleeps.", SLEEP, "Der Hund ist im Garten, und " * 3),
    ("layout", True, LIST, "# Einkauf\n\n- Milch\n- [x] Brot", "# Einkauf\n- Milch\n- [x] Brot"),
    ("layout", True, LIST, "# Einkauf\n\n- Milch\n- [x] Brot", "Einkauf: Milch, Brot"),
]  # fmt: skip


def test_there_are_300_and_no_two_are_one():
    assert len(CASES) == len({(one.text, one.to, one.source) for one in CASES}) == 300
    kinds = Counter(one.kind for one in CASES)
    assert len(kinds) == 22
    assert min(kinds.values()) >= 12
    assert {one.direction for one in CASES} == set(DIRECTIONS)
    assert {one.kind for one in CASES if one.direction == "zh-en"} == set(kinds)


def test_each_case_is_well_formed():
    for case in CASES:
        assert case.checks, case
        assert set(case.checks) <= set(CHECKS), case
        assert set(case.skip) <= set(ALWAYS), case
        for name in ("has", "lacks", "quoted"):
            for pattern in case.checks.get(name, []):
                re.compile(pattern)
        for text in case.checks.get("keep", []):
            assert text in case.text or text == "❤", case
        for date in case.checks.get("dates", []):
            assert re.fullmatch(r"(?:\d{4}|-)-\d\d-\d\d", date), case
        if case.kind == "long":
            assert len(case.text) > (150 if case.direction == "zh-en" else 500)
            assert len(case.checks["has"]) >= 15


def test_no_case_passes_as_it_is_but_those_that_should():
    passed = [one for one in CASES if not judge(one, Answer(one.text)).faults]
    assert {one.kind for one in passed} == {"noise", "repeated"}
    assert not [one for one in CASES if one.kind != "noise" and not judge(one, Answer("")).faults]


def only(name, wanted, text):
    return Case("", "en-de", text, skip=tuple(one for one in ALWAYS if one != name), checks={name: wanted})


@pytest.mark.parametrize(("name", "wanted", "text", "right", "broken"), JUDGED, ids=[one[0] for one in JUDGED])
def test_a_check_passes_a_right_answer_and_fails_a_broken_one(name, wanted, text, right, broken):
    assert judge(only(name, wanted, text), Answer(right)).faults == ()
    (fault,) = judge(only(name, wanted, text), Answer(broken)).faults
    assert fault.split(":")[0] == name


def test_a_note_can_be_asked_for_and_stands_for_doubt():
    for name in ("note", "doubt"):
        assert judge(only(name, True, "qwrt"), Answer("Quadrat")).faults
        assert not judge(only(name, True, "qwrt"), Answer("Quadrat", ("this may be wrong",))).faults


def test_every_check_is_judged():
    assert {one[0] for one in JUDGED} | {"note"} == set(CHECKS)


@pytest.mark.parametrize(
    ("number", "to", "right", "wrong"),
    [
        ("3000000", "zh", ["300万", "3,000,000", "三百万"], ["3万", "30万"]),
        ("3200000", "de", ["3,2 Millionen", "3.200.000"], ["32 Millionen", "3,2 Milliarden"]),
        ("12000000", "en", ["12 million", "twelve million"], ["1.2 million", "120 million"]),
        ("2", "zh", ["两个", "2 个"], ["12 个", "1.2"]),
    ],
)
def test_a_number_is_found_in_each_form(number, to, right, wrong):
    for text in right:
        assert re.search(number_pattern(number, to), text), text
    for text in wrong:
        assert not re.search(number_pattern(number, to), text), text


@pytest.mark.parametrize(
    ("date", "to", "right", "wrong"),
    [
        ("2026-03-01", "de", ["1. März 2026", "01.03.2026", "1.3.26", "2026-03-01"], ["3/1/2026", "11.3.2026"]),
        ("2026-03-01", "en", ["March 1, 2026", "1 March 2026", "03/01/2026"], ["March 10, 2026", "1 May 2026"]),
        ("2026-03-11", "zh", ["2026年3月11日", "2026-03-11", "二〇二六年三月十一日"], ["3/11/2026", "2026年3月1日"]),
        ("--05-17", "en", ["May 17", "17th of May"], ["May 7", "17 June"]),
        ("--12-24", "de", ["24.12.", "24. Dezember"], ["12/24", "24. November"]),
    ],
)  # fmt: skip
def test_a_date_is_found_in_each_form(date, to, right, wrong):
    for text in right:
        assert re.search(date_pattern(date, to), text), text
    for text in wrong:
        assert not re.search(date_pattern(date, to), text), text


def test_an_answer_comes_with_its_notes_or_as_its_error(monkeypatch):
    assert ask(Case("", "en-de", "Das ist gut.", "en")).notes
    monkeypatch.setattr(gf, "translate", lambda text, to, source: 1 / 0, raising=False)
    found = ask(CASES[0])
    assert found.error
    assert judge(CASES[0], found).faults == ("error",)
