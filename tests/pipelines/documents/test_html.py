"""HTML: the text between tags is translated; tags, code, scripts and what its author keeps stay."""

import html
from functools import partial

import pytest
import standins
from hypothesis import given
from hypothesis import strategies as st

from glassformer.pipelines.documents.html import Token, translate_fragments, unpaired_tags

through = partial(standins.through, "x.html")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("<p class=a title='one'>one</p>", "<p class=a title='one'>ONE</p>"),
        ("<title>one</title><h1>two</h1>", "<title>ONE</title><h1>TWO</h1>"),
        ("<p>one\n   two</p>", "<p>ONE TWO</p>"),
        ("<pre>one</pre><script>one()</script><style>one{}</style>", None),
        ("<p>one <code>two</code> three</p>", "<p>ONE <code>two</code> THREE</p>"),
        ("<p translate='no'>one</p><p>a <b class='x notranslate'>b</b></p>", None),
        ("<!-- one --><?one?><!DOCTYPE html>", None),
        ("<p>one<br>two<br/>three", "<p>ONE<br>TWO<br/>THREE"),
        ("<td><img alt='one' src=x> one</td>", "<td><img alt='one' src=x> ONE</td>"),
        ("<textarea>one</textarea><svg><text>one</text></svg>", None),
        ("<option>one<option>two", "<option>ONE<option>TWO"),
        ("one", "ONE"),
        ("", ""),
        ("<p>1 &lt; 2</p>", "<p>1 &lt; 2</p>"),
        ("<p>one &lt;two&gt; &amp; a&amp;b</p>", None),
    ],
)
def test_what_is_read_is_translated_and_the_rest_stays(text, wanted):
    if wanted is None:
        wanted = text
    made, _, _ = through(text, standins.upper if wanted != text or "&" not in text else str)
    if "<b class" in text:
        wanted = text.replace("<p>a", "<p>A")
    assert made == wanted


def test_a_sentence_goes_to_the_translator_whole_with_its_tags():
    made, stats, asked = through('<li>One <a href="x?a=1&amp;b">two</a>,\n <em>three</em>.', standins.vowels)
    assert asked == ['One <a href="x?a=1&amp;b">two</a>, <em>three</em>.']
    assert (
        made == '<li>Önë <a href="x?a=1&amp;b">twö</a>, <em>thrëë</em>.'.encode("ascii", "xmlcharrefreplace").decode()
    )
    assert stats.in_pieces == 0


def test_code_in_a_sentence_is_one_sign_to_the_translator():
    made, stats, asked = through(
        "<p>Use <code>a b</code> or <kbd>c</kbd> <i>now</i>.</p>", lambda text: text[::-1] if "<" not in text else text
    )
    assert stats.in_pieces == 0
    assert made == "<p>Use <code>a b</code> or <kbd>c</kbd> <i>now</i>.</p>"
    assert "a b" not in asked[0]


@pytest.mark.parametrize(
    "lose",
    [
        lambda text: text.replace("<b>", ""),
        lambda text: text.replace("</b>", "") + "</b>x<b></b>",
        lambda text: f"{text}<p>",
    ],
)
def test_a_translation_with_other_tags_is_made_again_in_pieces(lose):
    made, stats, _ = through("<p>one <b>two</b> three</p>", lambda text: lose(text) if "<" in text else text.upper())
    assert made == "<p>ONE <b>TWO</b> THREE</p>"
    assert stats.in_pieces == 1


def test_references_are_read_and_signs_written_so_that_they_are_no_markup():
    made, _, asked = through(
        '<meta charset="utf-8"><p>caf&eacute; &amp; t&#234;te&nbsp;&mdash; x &lt; y</p>', lambda text: f"{text} < & > ö"
    )
    assert asked == ["café & tête\xa0— x &lt; y"]
    assert made == '<meta charset="utf-8"><p>café &amp; tête\xa0— x &lt; y &lt; &amp; &gt; ö</p>'


def test_a_page_that_does_not_say_that_it_is_utf_8_stays_ascii():
    assert through("<p>one</p>", lambda text: "schön 好")[0] == "<p>sch&#246;n &#22909;</p>"
    assert through('<meta charset="UTF-8"><p>one</p>', lambda text: "schön")[0].endswith("<p>schön</p>")
    assert through("<p>één</p>", lambda text: "schön")[0] == "<p>schön</p>"


def test_tags_that_are_closed_elsewhere_stay_where_they_are():
    made, stats, asked = through("<a name=x>One two<p>three <b>four<br>five</b> six")
    assert made == "<a name=x>ONE TWO<p>THREE <b>FOUR<br>FIVE</b> SIX"
    assert asked[0] == "One two"
    assert stats.untranslated == 0


def partner(run, at):
    """The slow way: whether the tags of one name that follow close as many as they open, somewhere."""
    depth = 0
    for one in run[at:]:
        if one.name == run[at].name and one.kind in ("start", "end"):
            depth += 1 if one.kind == "start" else -1
            if depth == 0:
                return True
    return False


@given(st.lists(st.tuples(st.sampled_from(["start", "end", "text"]), st.sampled_from(["a", "b"])), max_size=12))
def test_tags_without_a_partner_are_those_that_the_slow_way_finds(tags):
    run = [Token(0, 0, kind, name) for kind, name in tags]
    tagged = [i for i, one in enumerate(run) if one.kind != "text"]
    assert [unpaired_tags(run)[i] for i in tagged] == [not partner(run, i) for i in tagged]


@pytest.mark.parametrize("text", ["<a " * 30_000, "<b>a" * 30_000, "</a>" * 30_000], ids=["open", "nested", "closed"])
def test_what_no_person_would_write_is_read_in_no_time(text):
    """Hours, if every tag were looked for through all the others."""
    expected = html.escape(text.upper(), quote=False) if ">" not in text else text  # signs of words, or no words
    assert translate_fragments([text, "<i>one</i>"], standins.StandIn(standins.upper)) == [expected, "<i>ONE</i>"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<p>one</p><a b="two<p>three</p>', '<p>ONE</p><a b="two<p>three</p>'),
        ("one <!-- two <b>three</b>", "ONE <!-- two <b>three</b>"),
        ("one <![CDATA[two <b>three</b>", "ONE <![CDATA[two <b>three</b>"),
        ("one <![CDATA[two <b> ]]> three", "ONE <![CDATA[two <b> ]]> THREE"),
        ("<p>one <![ two</p>three", "<p>ONE <![ two</p>THREE"),
        ("one <![if !IE]>two<![endif]> <?three?> four", "ONE <![if !IE]>TWO<![endif]> <?three?> FOUR"),
        ("<script>one</p><!-- two", "<script>one</p><!-- two"),
        ("<SCRIPT>'<p>one'</SCRIPT ><p>two", "<SCRIPT>'<p>one'</SCRIPT ><p>TWO"),
        ("one <two three", "ONE &lt;TWO THREE"),
        ("1 < 2 > one </> </ two> three", "1 &lt; 2 &gt; ONE </> </ two> THREE"),
        ("<p title=a>b c='>'>one", "<p title=a>B C='&gt;'&gt;ONE"),
        ("<p title='a>b' class = \"x notranslate\">one</p>", "<p title='a>b' class = \"x notranslate\">one</p>"),
        ("<p TRANSLATE=NO>one</p><p data-translate=no>two", "<p TRANSLATE=NO>one</p><p data-translate=no>TWO"),
    ],
)
def test_broken_markup_is_read_as_a_browser_reads_it(text, expected):
    assert through(text)[0] == expected
