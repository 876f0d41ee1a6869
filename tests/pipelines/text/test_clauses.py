"""Long sentences by their clauses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_in import StandIn

import glassformer as gf
from glassformer.pipelines.language.sentences import Part, join_clauses, split_clauses
from glassformer.pipelines.text import sentence_translator

CLAUSE = "one two three four five six seven eight nine"
LONG = ", and ".join([CLAUSE] * 6) + "."


def words(texts):
    return [text.split() for text in texts]


def cut(text):
    return [part.text for part in split_clauses(text, words)]


def test_parts_end_where_clauses_do_and_hold_as_many_as_fit():
    parts = cut(LONG)
    assert [len(part.split()) for part in parts] == [39, 20]
    assert all(part.endswith(",") for part in parts[:-1])
    assert " ".join(parts) == LONG


@pytest.mark.parametrize(
    "inside",
    [
        f"({CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE})",
        f'"{CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE}"',
        f"`{CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE}`",
        f"„{CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE}“",
        f"“{CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE}, {CLAUSE}”",
        f'({CLAUSE} "{CLAUSE}, {CLAUSE}" {CLAUSE}, {CLAUSE})',
        f"{CLAUSE} {CLAUSE} {CLAUSE} {CLAUSE} on January 3, 1901",
        f"{CLAUSE} {CLAUSE} {CLAUSE} {CLAUSE} the dog, which {CLAUSE}",
        f"{CLAUSE} {CLAUSE} {CLAUSE} {CLAUSE} der Hund, der {CLAUSE}",
    ],
)
def test_what_belongs_together_stays_together(inside):
    assert cut(f"Say, {inside}, and go.") == ["Say,", f"{inside},", "and go."]


def test_a_clause_alone_is_not_cut_however_long():
    assert cut(" ".join([CLAUSE] * 9)) == [" ".join([CLAUSE] * 9)]


def test_chinese_is_cut_without_spaces():
    letters = lambda texts: [list(text) for text in texts]  # noqa: E731
    text = "，".join(["一二三四五六七八九"] * 6) + "。"
    parts = split_clauses(text, letters)
    assert "".join(part.text for part in parts) == text
    assert len(parts) == 2
    assert not any(part.spaced for part in parts)


@given(st.text(alphabet='ab ,;:，；("`)1\n', max_size=200))
def test_parts_say_all_of_the_text_in_order(text):
    parts = split_clauses(text, words)
    assert "".join(part.text for part in parts).replace(" ", "").replace("\n", "") == "".join(text.split())
    assert all(part.text for part in parts)


def test_translations_become_one_sentence():
    parts = [Part("If it rains,", []), Part("we stay;", [], True), Part("Tom is here.", [], True)]
    told = ["Wenn es regnet.", "Wir bleiben", "Tom ist da."]
    assert join_clauses(parts, told, "de") == "Wenn es regnet, wir bleiben; Tom ist da."
    assert join_clauses(parts, ["下雨。", "我们留下", "汤姆在这里。"], "zh") == "下雨，我们留下；汤姆在这里。"
    asked = [
        Part("if it rains,", []),
        Part("you stay,", [], True),
        Part("in town,", [], True),
        Part("it's late.", [], True),
    ]
    told = ["Wenn es regnet!", "Sie bleiben.", "IN DER STADT.", "Es ist spät."]
    assert join_clauses(asked, told, "de") == "Wenn es regnet, Sie bleiben, IN DER STADT, es ist spät."
    wide = [Part("下雨，", []), Part("我们留下。", [])]
    assert join_clauses(wide, ["When it rains.", "We stay."], "en") == "When it rains, we stay."


class Judge(StandIn):
    """One that finds a whole text as likely as `whole`, and parts of it as likely as `part`."""

    whole, part = -0.9, -0.1

    def translate(self, texts, *, search, **options):
        made = super().translate(texts, search=search, **options)
        score = self.whole if len(self.calls) == 1 else self.part
        return [[gf.Translation(one.text, score, one.tokens)] for (one,) in made]


THINGS = ("report", "table", "file", "folder", "page", "list", "name", "user", "service")
TEXT = "; ".join(f"the {thing} opens the window and then the {thing} is closed by the server" for thing in THINGS) + "."


def germanised(text):
    return text.replace("window", "Fenster")


def judged(de, text=TEXT, whole=-0.9, part=-0.1, **options):
    judge = Judge(de, germanised)
    judge.whole, judge.part = whole, part
    (made,) = gf.TextTranslator(judge, source="en", target="de").details([text], **options)
    return made.sentences[0], judge.calls


def test_a_doubtful_sentence_is_translated_by_its_clauses(de):
    made, calls = judged(de)
    assert made.way == "clauses"
    assert made.text == germanised(TEXT)
    assert [len(texts) > 1 for texts, _ in calls] == [False, True]
    assert " ".join(calls[1][0]) == TEXT


@pytest.mark.parametrize(
    ("text", "whole", "part", "options"),
    [
        (TEXT, -0.2, -0.1, {}),  # not doubted
        (TEXT.split(";")[0] + ".", -0.9, -0.9, {}),  # short
        (TEXT.replace(";", ""), -0.9, -0.1, {}),  # of one clause
        (TEXT, -0.9, -0.1, {"length_penalty": 0.6}),  # scores are no means
        (TEXT, -0.9, -0.1, {"beam": 1, "sampling": gf.Sampling(seed=1)}),
    ],
)
def test_others_are_translated_once(de, text, whole, part, options):
    made, calls = judged(de, text, whole, part, **options)
    assert made.way == "plain"
    assert len(calls) == 1


def test_parts_that_are_no_likelier_change_nothing(de):
    made, calls = judged(de, part=-0.85)
    assert (made.way, made.text) == ("plain", germanised(TEXT))
    assert len(calls) == 2


def test_the_box_says_more_of_a_long_sentence_of_every_day(monkeypatch):
    text = (
        "My sister lives in Berlin, and my brother works in Shanghai, and our parents stayed in Beijing, and the old "
        "doctor was born in Vienna, and my best friend studied in Paris, and the boys next door come from London, and "
        "we spent a whole winter in Madrid, and nobody wants to go to Rome, and she bought a small house in Tokyo, and "
        "he lost his passport in Boston, and they got married in Chicago, and I have never been to Moscow."
    )
    zh = gf.TextTranslator(gf.Translator.load("en-zh", to="zh", precision="auto"))
    (made,) = zh.details([text])
    assert made.sentences[0].way == "clauses"
    monkeypatch.setattr(sentence_translator, "LONG", 10**6)
    (whole,) = zh.translate([text])
    kept, before = (
        sum(name in said for name in ("柏林", "巴黎", "伦敦", "马德里", "罗马", "东京", "波士顿", "芝加哥"))
        for said in (made.text, whole)
    )
    assert kept == 8 > before


def test_parts_that_go_round_in_circles_are_not_taken(de):
    judge = Judge(de, lambda text: germanised(text) if text == TEXT else "so " * 30 + "ist es.")
    (made,) = gf.TextTranslator(judge, source="en", target="de").details([TEXT])
    assert (made.sentences[0].way, made.text) == ("plain", germanised(TEXT))


def test_no_number_is_cut():
    text = "，".join(["人" * 39] * 2) + "10，000人，" + "人" * 30
    letters = lambda texts: [list(text) for text in texts]  # noqa: E731
    assert not any(part.text.endswith("10，") for part in split_clauses(text, letters))
