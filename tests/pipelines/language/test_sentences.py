"""Paragraphs are cut into sentences, and nothing of them is lost."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glassformer.pipelines.language import sentences as module
from glassformer.pipelines.language.sentences import split_sentences

SAMPLES = {
    "en": [
        ["Dr. Smith lives in the U.S. now.", "He likes it, e.g. the food."],
        ["Use version 3.5 of .NET.", "It runs on System.IO too."],
        ["Wait... what did you say?", "Nothing!", "Really?!", "Yes."],
        ["He is laughing at me.", "I can see him."],
        ['He said "Stop." to me.', '"I will not," she said.'],
        ["Select **More** (...) in the list.", "Then close it."],
        ["See [the page](https://example.com/a.b?c=d. e).", "It helps."],
        ["A line without a full stop"],
        ["This is plan B\u00a0.", "We like it."],  # on which the library fails
        ["See Fig. 3 for details.", "Mr. Jones paid $3.50."],
    ],
    "de": [
        ["Das gilt z. B. für Dr. Müller.", "Er kam am 3. Mai an."],
        ["Verwenden Sie z.B. `www.contoso.com. x` oder bzw. das andere.", "Danach geht es weiter."],
        ["Reguläre Ausdrücke in .NET usw. sind schnell.", "Er redet über mich.", "Stell dir das vor!"],
        ["„Kommst du?“, fragte sie.", "„Ja.“"],
    ],
    "zh": [
        ["你好。", "我叫汤姆！", "你呢？"],
        ["这是第一句。", "40%的人去了。", ".NET 很快。"],
        ["请参阅 System.IO。", "版本是 3.5。"],
    ],
}
MARKERS = re.compile(r"(?:\w{1,5}[.)]|[-*+•‣◦–—])[ \t]+")  # of lists
CODE = re.compile(r"`[^`]*`|https?://[^)]*")


def whole(text):
    return [match.span() for match in CODE.finditer(text)]


@pytest.mark.parametrize(("language", "parts"), [(k, parts) for k, list_ in SAMPLES.items() for parts in list_])
def test_sentences_end_where_they_end(language, parts):
    text = ("" if language == "zh" else " ").join(parts)
    assert [piece.text for piece in split_sentences(text, language, whole(text)) if not piece.gap] == parts


@pytest.mark.parametrize(
    "marker", ["1.", "12)", "a.", "B)", "iv.", "XII)", "-", "*", "•", "–", "1.2.", ">", "- 1.", "> * b)"]
)
@given(
    st.lists(st.sampled_from(["first", "The last one.", "third\twide", "x"]), min_size=1),
    st.sampled_from(["", "  ", "\t"]),
)
@settings(max_examples=20, deadline=None)
def test_the_marker_of_an_item_stands_between(marker, items, indent):
    text = "\n".join(f"{indent}{marker} {item}" for item in items)
    pieces = split_sentences(text, "en")
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.text for piece in pieces if not piece.gap] == [cell for item in items for cell in item.split("\t")]


@pytest.mark.parametrize(
    "text",
    ["3. Mai 2021 ist ein Tag.", "z. B. hier", "1.2 Sekunden", "5 - 3 ist 2.", "1.5 Liter", "-5 Grad", "1.", "-"],
)
def test_what_only_looks_like_a_marker_is_part_of_its_sentence(text):
    assert [piece.text for piece in split_sentences(text, "de") if not piece.gap] == [text]


def test_white_space_and_line_breaks_stand_between():
    text = "  One.  Two.\n\n\tThree\r\nfour. \n"
    assert [piece.text for piece in split_sentences(text, "en")] == [
        "  ", "One.", "  ", "Two.", "\n\n\t", "Three", "\r\n", "four.", " \n",
    ]  # fmt: skip
    assert split_sentences("", "en") == []
    assert split_sentences(" \n", "en") == [(" \n", True)]


PARTS = st.sampled_from(
    ["One", "z. B.", "e.g.", ". ", "! ", "?", "。", "！", "\n", "\n\n", "\t", " ", "“", "”", '"', "`a. b`", ".NET",
     "3.", "1)", "…", "...", "ü", "你好", "\u2028", "\r", "\x1c", "\ue000", "\U0001f600", "\ud800", "(", ")", "* ", "a"]
)  # fmt: skip


@example("* \x1cOne", "en")
@given(st.one_of(st.lists(PARTS, max_size=30).map("".join), st.text(max_size=40)), st.sampled_from(["en", "de", "zh"]))
@settings(max_examples=150, deadline=None)
def test_pieces_give_the_text_back_and_no_stretch_is_cut(text, language):
    pieces = split_sentences(text, language, whole(text))
    assert "".join(piece.text for piece in pieces) == text
    ends = {0}
    for piece in pieces:
        ends.add(max(ends) + len(piece.text))
        assert piece.text
        assert piece.gap == (not MARKERS.sub("", piece.text).strip())
        assert piece.gap or (piece.text == piece.text.strip() and "\n" not in CODE.sub("", piece.text))
    assert not any(start < end < stop for start, stop in whole(text) for end in ends)
    assert not any(one.gap and other.gap for one, other in pairwise(pieces))


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u0085", "\u202f", "\u2003"])
@pytest.mark.parametrize("language", ["en", "de", "zh"])
def test_the_library_is_not_asked_what_it_fails_at(language, space, capfd):
    text = f"A{space}. Plan B{space}. {space}C{space}."
    assert "".join(piece.text for piece in split_sentences(text, language)) == text
    assert capfd.readouterr().err == ""


def test_where_it_fails_plain_rules_cut(monkeypatch, capfd):
    monkeypatch.setattr(module, "_masked", lambda text, whole: text)
    assert split_sentences("One here. Plan B\u00a0. Two", "en")[0].text == "One here."
    assert "panicked" in capfd.readouterr().err


@pytest.mark.parametrize("language", ["en", "de", "zh"])
@pytest.mark.parametrize("unit", ["。", "'", "<!--", "a. ", "！”", "me. "])
def test_a_line_of_nothing_else_is_soon_cut(unit, language):
    line = (unit * module.LONGEST_LINE)[: module.LONGEST_LINE]
    begin = time.process_time()
    split_sentences(f"{line}\n{line}{line}\n{line}", language)
    assert time.process_time() - begin < 5
