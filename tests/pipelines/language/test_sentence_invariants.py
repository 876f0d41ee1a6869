"""What a translation must hold, and whether it does."""

import random
import re
from itertools import pairwise, permutations

import pytest
from mutations import mutations

from glassformer.pipelines.language.invariants import Glossary, Invariants, find_words, word_pattern
from glassformer.pipelines.language.normalize import normalize


def lost(source, target, glossary=None, languages=("en", "de")):
    faults = Invariants(source, languages, glossary).faults(target)
    return [source[one.start : one.end] for one in faults.lost], faults.invented


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("Run `make` 3 times.", "Führen Sie `make` 3 mal aus.", ([], False)),
        ("Run `make` 3 times.", "Führen Sie make 3 mal aus.", (["`make`"], False)),
        ("Run `make` 3 times.", "Führen Sie `make` 4 mal aus.", (["3"], True)),
        ("Run `make`.", "`make` und `make`.", ([], True)),
        ("Run it.", "`Führen` Sie es aus.", ([], True)),
        ("Run it.", "Führen ` Sie es aus.", ([], True)),
        ("{a} {a}", "{a}", (["{a}", "{a}"], False)),
        ("See https://a.b/c", "Siehe https://a.b/cd", (["https://a.b/c"], True)),
        ("on 12/31/2026", "am 31.12.", (["12/31/2026"], True)),
    ],
)
def test_faults_are_told(source, target, told):
    assert lost(source, target) == told


def test_words_are_found_as_a_pattern_would_find_them():
    draw, letters, seen = random.Random(1), "ab 1-中日é.'Ж_", 0
    terms = ["".join(draw.choices(letters, k=draw.randint(1, 3))) for _ in range(60)]
    for term in terms:
        pattern = re.compile(word_pattern(term))
        for _ in range(40):
            text = "".join(draw.choices([term, *letters], k=draw.randint(0, 12)))
            expected = [match.span() for match in pattern.finditer(text)]
            assert find_words(term, text) == expected
            seen += bool(expected)
    assert 0 < seen < 60 * 40


def test_chinese_words_may_follow_at_once():
    assert lost("Set $PATH now.", "立即设置$PATH变量。", languages=("en", "zh")) == ([], False)
    assert lost("Set $PATH now.", "立即设置$PATHS变量。", languages=("en", "zh")) == (["$PATH"], True)


def test_another_script_is_kept_in_a_text_that_is_not_written_in_it():
    assert lost("Read it in 简体中文.", "Lesen Sie es auf 简体中文.") == ([], False)
    assert lost("Read it in 简体中文.", "用 Sim body 阅读它。", languages=("en", "zh")) == (["简体中文"], False)
    assert Invariants("[简体中文](README.zh-CN.md)", ("en", "zh")).is_wordless
    assert lost("请阅读 README。", "Read the README.", languages=("zh", "en")) == ([], False)


def test_terms_are_what_the_glossary_says():
    terms = Glossary({"kernel": "Kern", "Go": "Go", "x": "`y` 2"})
    assert lost("The kernel and `kernel`.", "Der Kern und `kernel`.", terms) == ([], False)
    assert lost("The kernel.", "Der Kernel.", terms) == (["kernel"], False)
    assert lost("Go and `Go x`", "und `Go x`", terms) == (["Go"], False)
    assert lost("an x here", "ein `y` 2 hier", terms) == ([], False)
    assert lost("an x 2 here", "ein `y` 2 hier", terms) == (["2"], False)


def test_hidden_and_filled_in_again():
    invariants = Invariants("Run `make` 1,234 times in {dir}.", ("en", "de"))
    marks = "\ue000\ue001\ue002"
    assert [one.fill for one in invariants.items] == ["`make`", "1.234", "{dir}"]
    assert invariants.mask(invariants.items, marks) == "Run \ue000 \ue001 times in \ue002."
    assert invariants.mask(invariants.items[1:2], marks) == "Run `make` \ue000 times in {dir}."
    assert invariants.unmask("\ue002: \ue001 mal \ue000", invariants.items, marks) == "{dir}: 1.234 mal `make`"
    assert invariants.unmask("\ue002: \ue001 mal", invariants.items, marks) is None
    assert invariants.unmask("\ue002: \ue001\ue001 mal \ue000", invariants.items, marks) is None
    assert invariants.fill_gaps(invariants.gaps()) == "Run `make` 1.234 times in {dir}."
    assert not invariants.is_wordless
    assert Invariants("`make` 12 — {a}", ("en", "de")).is_wordless


def test_signs_that_make_code_of_words_are_taken_out():
    assert (
        Invariants("Run `make` now.", ("en", "de")).without_new_markup("`make` jetzt `laufen` lassen")
        == "`make` jetzt laufen lassen"
    )


@pytest.mark.parametrize(
    ("source", "target", "languages", "told"),
    [
        ("Das kostet 20 €.", "That costs €20.", ("de", "en"), []),
        ("Das kostet 20 €.", "That costs 20 $.", ("de", "en"), ["20 €"]),
        ("It weighs 3.5 kg.", "Es wiegt 3,5 Kilogramm.", ("en", "de"), []),
        ("It weighs 3.5 kg.", "它重 3.5 公里。", ("en", "zh"), ["3.5 kg"]),
        ("He is 3 years old.", "Er ist 3 Stunden alt.", ("en", "de"), ["3 years"]),
        ("Er ist 19 Jahre alt.", "He's 19.", ("de", "en"), []),
        ("$20k", "20.000 $", ("en", "de"), []),
        ("$20k", "20 Dollar", ("en", "de"), ["$20k"]),
        ("1万人", "1 million people", ("zh", "en"), ["1万"]),
        ("1万人", "10,000 people", ("zh", "en"), []),
        ("3 million people", "300万人", ("en", "zh"), []),
        ("3 million people", "3 Menschen", ("en", "de"), ["3 million"]),
        ("3 Mio. Menschen", "3 million people", ("de", "en"), []),
        ("12345678901234567 trillion", "12345678901234567 Billionen", ("en", "de"), []),
        ("5 km for `5 km`", "5 km für `5 km`", ("en", "de"), []),
    ],
)
def test_units_and_scales_belong_to_a_number(source, target, languages, told):
    assert lost(source, target, languages=languages)[0] == told


@pytest.mark.parametrize(
    ("source", "languages", "fills"),
    [
        ("20 €, $20k and 5 miles", ("en", "de"), ["20 €", "20.000 $", "5 Meilen"]),
        ("3,5 kg für 1,5 Mio. Menschen", ("de", "en"), ["3.5 kg", "1.5 million"]),
        ("5万 14亿 1.5万", ("zh", "en"), ["50,000", "1.4 billion", "15,000"]),
        ("3 million, 25 billion", ("en", "zh"), ["300万", "250亿"]),
        ("1 million", ("en", "de"), ["1 Million"]),
        ("5 km and 20 $", ("en", "fr"), ["5", "20"]),
        ("an area of 5 m² 😀", ("en", "de"), ["5 m²", "😀"]),
    ],
)
def test_a_number_is_filled_in_with_its_unit(source, languages, fills):
    alphabet = frozenset("abcdefghijklmnopqrstuvwxyz 0123456789.,$€万亿üMä")
    invariants = Invariants(source, languages, alphabet=alphabet)
    assert [one.fill for one in invariants.items] == fills
    assert all(one.end <= other.start for one, other in pairwise(invariants.items))


def test_a_unit_alone_is_still_translated():
    assert Invariants("20", ("en", "de")).is_wordless
    assert Invariants("$20", ("en", "de")).is_wordless
    assert not Invariants("20 dollars", ("en", "de")).is_wordless


def test_pictures_at_the_ends_need_no_translation():
    alphabet = frozenset("abcdefghijklmnopqrstuvwxyz .")
    for text, core in (
        ("😀 so it is. 👍🏽", "so it is."),
        ("so 😀 it", "so 😀 it"),
        ("😀", "😀"),
        ("it is ❤️", "it is"),
    ):
        start, end = Invariants(text, ("en", "de"), alphabet=alphabet).core
        assert text[start:end] == core


DENSE = {
    "en": "On March 3, 2021, at half past 7 PM, one thousand and five of 12 kg cost $20k.",
    "de": "Am 3. März 2021 um halb acht kosten tausendfünf von 12 kg genau 20.000,50 €.",
    "zh": "2021年3月3日晚上7点半，一千零五个12公斤的东西要二十万元。",
}


@pytest.mark.parametrize(("source", "target"), [*permutations(DENSE, 2)])
def test_a_damaged_sentence_is_read_whatever_is_in_it(source, target):
    for changed in mutations(DENSE[source].encode(), seed=7, count=40):
        text = changed.decode("utf-8", "replace")
        normalize(text, source, target)
        invariants = Invariants(text, (source, target))
        for translation in (text, DENSE[target]):
            invariants.faults(translation)
            invariants.misses_number_word(translation)
