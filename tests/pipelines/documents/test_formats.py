"""Plain text, messages, subtitles, and what is no document."""

import re
from datetime import timedelta

import polib
import pytest
import srt
import standins
from hypothesis import given
from hypothesis import strategies as st
from placeholder_strings import assert_valid, make_samples, po_file
from standins import through

from glassformer.common.errors import DataError
from glassformer.pipelines.documents.segments import DocumentStats


def test_plain_text_keeps_its_lines_indents_and_list_signs():
    text = "\ufeffTitle\r\n=====\r\n\r\n  * one\r\n  2) two\t\r\n\r\n\r\n> three"
    made, _, asked = through("x.TXT", text)
    assert made == text.upper()
    assert asked == ["Title", "one", "two", "three"]


def test_lines_that_were_broken_for_their_width_are_one_text_and_broken_again():
    text = (
        "  - The quick brown fox jumps over the\n    lazy dog, and the dog sleeps on and\n    on.\n"
        "Short line.\nAnother short line.\n"
    )
    made, _, asked = through("x.txt", text)
    assert asked[0] == "The quick brown fox jumps over the lazy dog, and the dog sleeps on and on."
    assert asked[1:] == ["Short line.", "Another short line."]
    assert made == text.upper()
    longer, *_ = through("x.txt", text, lambda text: f"{text} {text}")
    assert max(map(len, longer.splitlines())) <= 39


PO = r"""# A translator's word
msgid ""
msgstr ""
"Language: de\n"

#: a.c:1
#, c-format
msgid "%d file in \"%s\"\n"
msgid_plural "%d files in \"%s\"\n"
msgstr[0] ""
msgstr[1] ""

msgctxt "menu"
msgid ""
"one\n"
"<b>two</b> three"
msgstr ""

msgid "four"
msgstr "vier"

#, fuzzy
msgid "five"
msgstr ""

#~ msgid "six"
#~ msgstr ""
"""


def test_messages_without_a_translation_get_one_and_the_rest_stays():
    made, _, asked = through("x.po", PO, standins.vowels)
    assert asked == ['%d file in "%s"', '%d files in "%s"', "one", "<b>two</b> three", "five"]
    before, after = polib.pofile(PO), polib.pofile(made)
    assert [(one.msgid, one.comment, one.flags, one.obsolete) for one in after] == [
        (one.msgid, one.comment, one.flags, one.obsolete) for one in before
    ]
    assert after.metadata == before.metadata
    assert after[0].msgstr_plural == {0: '%d fïlë ïn "%s"\n', 1: '%d fïlës ïn "%s"\n'}
    assert [one.msgstr for one in after[1:]] == ["önë\n<b>twö</b> thrëë", "vier", "fïvë", ""]
    lines = made.splitlines()
    assert [line for line in PO.splitlines() if line not in lines] == ['msgstr[0] ""', 'msgstr[1] ""']
    assert through("x.po", PO.replace("\n", "\r\n"), standins.vowels)[0] == made.replace("\n", "\r\n")


def test_a_language_without_plural_gets_what_is_said_of_many():
    made, _, asked = through("x.po", 'msgid "one"\nmsgid_plural "many"\nmsgstr[0] ""\n')
    assert asked == ["many"]
    assert made == 'msgid "one"\nmsgid_plural "many"\nmsgstr[0] "MANY"\n'


@pytest.mark.parametrize("change", standins.HARD.values())
def test_messages_whose_formats_a_translation_changes_stay_untranslated(change):
    samples = make_samples(200)
    made, stats, _ = through("x.po", po_file(samples), change)
    assert_valid(made.encode())
    formats = [(one, entry.msgstr) for one, entry in zip(samples, polib.pofile(made), strict=True) if one.flag]
    assert all(text.count(token) == one.text.count(token) for one, text in formats if text for token in one.tokens)
    assert stats.untranslated >= sum(not text and change(one.text) != one.text for one, text in formats)


@pytest.mark.parametrize(
    ("flag", "text", "made"),
    [
        ("java-format", "It''s {0}", "„'s {0}“"),
        ("possible-java-format", "Not {0}", "Don't {0}"),
        ("scheme-format", "~s is no number~%", "~ ist keine Zahl~ %"),
        ("lisp-format", "~a is ~d", "~d ist ~a"),
        ("object-pascal-format", "%0:s is %1:d", "%0: ist %1:d"),
        ("c-format", "half of %s", "50 % davon"),
    ],
)
def test_a_format_of_any_family_that_breaks_leaves_its_message_untranslated(flag, text, made):
    po = f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n#, {flag}\nmsgid "{text}"\nmsgstr ""\n'
    assert through("x.po", po, lambda _: made)[:2] == (po, DocumentStats(1, 0, 1))
    kept = through("x.po", po, lambda one: f"{one} ja")[0]
    assert "ja" in kept
    assert_valid(kept.encode())


def test_a_message_over_lines_is_one_text_and_never_in_pieces():
    message = "Delete {n, plural,\n  one {<b>#</b> file}\n  other {<b>#</b> files}\n}?"
    po = str(polib.POEntry(msgid=message))
    for name, text in (("x.txt", message), ("x.po", po)):
        assert through(name, text)[2] == [re.sub(r"\s*\n\s*", " ", message)]
    made, stats, asked = through("x.po", po, lambda text: text.replace("<b>", ""))
    assert (made, stats.untranslated, len(asked)) == (po, 1, 1)


@pytest.mark.parametrize("text", ["msgid one\n", 'msgid "a\nmsgstr ""\n', "x.po"])
def test_messages_that_cannot_be_read_are_told(text):
    with pytest.raises(DataError, match=r"x\.po: no PO file"):
        through("x.po", text)


SRT = """1
00:00:01,000 --> 00:00:02,500
One two three,
four five.

2
00:00:03,000 --> 00:00:04,000 X1:10
{\\an8}<i>Six</i> seven

3
00:00:05,000 --> 00:00:06,000
- Eight?
- Nine!
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_subtitles_keep_numbers_times_and_speakers(newline):
    made, _, asked = through("x.srt", SRT.replace("\n", newline))
    assert asked == ["One two three, four five.", "<i>Six</i> seven", "Eight?", "Nine!", "Six", "seven"]
    assert made.replace(newline, "\n") == SRT.replace(
        "One two three,\nfour five.", "ONE TWO THREE,\nFOUR FIVE."
    ).replace("Six</i> seven", "SIX</i> SEVEN").replace("Eight", "EIGHT").replace("Nine", "NINE")
    times = [(one.index, one.start, one.end) for one in srt.parse(SRT)]
    assert [(one.index, one.start, one.end) for one in srt.parse(made)] == times


CONTENT = st.lists(st.sampled_from(["one", "2", "3.5", "- four", "", "six --> 7", "00:08"]), max_size=5)


@given(st.lists(CONTENT, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_subtitles_are_those_of_another_reader(contents, newline):
    second = timedelta(seconds=1)
    titles = [srt.Subtitle(i, i * second, (i + 1) * second, "\n".join(one)) for i, one in enumerate(contents)]
    text = "".join(one.to_srt(strict=False) for one in titles)
    made, *_ = through("x.srt", text.replace("\n", newline))
    found = [[(one.index, one.start, one.end, one.content.split()) for one in srt.parse(some)] for some in (text, made)]
    assert found[1] == [(*rest, [word.upper() for word in words]) for *rest, words in found[0]]


def test_long_subtitles_are_broken_into_as_many_lines_as_they_had():
    made, *_ = through("x.srt", SRT, lambda text: "今天天气很好，我们去公园散步吧。" if "One" in text else text)
    assert "今天天气很好，我\n们去公园散步吧。" in made


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("x.rst", b"one", r"x\.rst: a file of the kind `\.rst` cannot be translated; there are \.txt, \.md"),
        ("x", b"one", "kind ``"),
        ("x.md", b"a\xff", r"x\.md: not UTF-8 \(byte 2 is 0xff\); convert it first"),
        ("x.txt", b"a\0b", r"x\.txt: no text \(byte 2 is 0\)"),
        ("x.txt", "a".encode("utf-16"), "UTF-16; convert it first"),
        ("x.srt", b"1\n00:00:xx\n\n", "no SubRip file"),
    ],
)
def test_what_is_no_document_is_told(name, data, told):
    with pytest.raises(DataError, match=told):
        through(name, data)


@pytest.mark.parametrize("name", ["x.txt", "x.md", "x.html", "x.po", "x.srt"])
def test_an_empty_document_stays_empty(name):
    made, _, asked = through(name, b"")
    assert (made, asked) == ("", [])
