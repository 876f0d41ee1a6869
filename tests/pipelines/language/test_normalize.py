"""Sentences as a model has learnt to read them."""

import pytest

from glassformer.data.protect import map_outside_spans
from glassformer.pipelines.language.normalize import is_all_caps, normalize, to_sentence_case


@pytest.mark.parametrize(
    ("text", "cleared"),
    [
        ("I can´t, don`t and wouldn‘t.", "I can't, don't and wouldn't."),
        ("I cant swim. It isnt true, and they wont pay.", "I can't swim. It isn't true, and they won't pay."),
        ("You CAN'T do that, and must NEVER try.", "You can't do that, and must never try."),
        ("the  second\u00a0floor,\tplease", "the second floor, please"),
        ("10\u00a0000 and 5\u202f%", "10\u00a0000 and 5 %"),
        ("o\ufb00\u00adice \ufb01les\u200b\ufeff", "office files"),
        ("Tu\u0308r", "Tür"),
        ("`I cant  do´it` and https://a.example/dont  here", "`I cant  do´it` and https://a.example/dont here"),
        ("approx. 5 hrs w/o a break, see No. 7", "approximately 5 hours without a break, see number 7"),
        ("It is 5 km approx.", "It is 5 km approximately."),
        ("I want an important want.", "I want an important want."),
        ("NEVER", "NEVER"),
        ("I AM VERY HAPPY. YOU MUST STAY.", "I AM VERY HAPPY. YOU MUST STAY."),
    ],
)
def test_it_is_put_as_it_is_meant(text, cleared):
    assert normalize(text, "en") == cleared
    assert normalize(cleared, "en") == cleared


def test_german_has_its_own_abbreviations():
    assert normalize("Hr. Meier kommt evtl. um 5, inkl. Fr. Weber.", "de") == (
        "Herr Meier kommt eventuell um 5, inklusive Frau Weber."
    )
    assert normalize("I cant", "de") == "I cant"
    assert normalize("不用  approx.", "zh") == "不用 approx."


@pytest.mark.parametrize(
    ("text", "told"),
    [("DO NOT OPEN THIS DOOR.", True), ("DANGER OF DEATH!", True), ("KEEP OUT", False), ("JSON HTML HTTP", False),
     ("NASA", False), ("STOP", False), ("The USA and the UK", False), ("DO NOT TOUCH `make`", True), ("...", False),
     ("不要 USA", False)],
)  # fmt: skip
def test_capitals_are_told_from_abbreviations(text, told):
    assert is_all_caps(text, "en") is told


def test_capitals_go_and_come_back():
    assert to_sentence_case("I MUST NOT RUN `MAKE` NOW.") == "I must not run `MAKE` now."
    assert to_sentence_case("“STOP IT NOW!”") == "“Stop it now!”"
    assert map_outside_spans("Die Straße `make` {name}", str.upper) == "DIE STRASSE `make` {name}"


def test_times_are_told_in_digits_but_not_within_code():
    assert normalize("Come at half past seven, not `half past seven`.", "en", "de") == (
        "Come at 7:30, not `half past seven`."
    )
    assert normalize("Come at half past seven.", "en") == "Come at half past seven."
