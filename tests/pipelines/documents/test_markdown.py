"""Markdown: what is translated, what stays, and what a translation that breaks markup costs."""

from functools import partial
from pathlib import Path

import pytest
import standins
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed import markdown_structure

from glassformer.pipelines.documents import translate_bytes

through = partial(standins.through, "x.md")


CASES = {
    "a heading": ("# One `two` three #\n", "# ONE `two` THREE #\n"),
    "an underlined one": ("One\n===\n", "ONE\n===\n"),
    "a heading with a name": ("## One {#one .x}\n", "## ONE {#one .x}\n"),
    "a list": ("* one\n  - two\n\n1) three\n", "* ONE\n  - TWO\n\n1) THREE\n"),
    "tasks": ("- [ ] one\n- [x] two\n", "- [ ] ONE\n- [x] TWO\n"),
    "a quote": ("> one\n> two\n", "> ONE TWO\n"),
    "a note": ("> [!NOTE]\n> one\n> two\n", "> [!NOTE]\n> ONE TWO\n"),
    "an admonition": ('??? tip "Answer"\n    one\n    two\n', '??? tip "Answer"\n    ONE TWO\n'),
    "lines of one paragraph": ("one\ntwo\n", "ONE TWO\n"),
    "hard breaks": ("one  \ntwo\\\nthree\n", "ONE  \nTWO\\\nTHREE\n"),
    "a break within": ("**one  \ntwo**\n", "**ONE  \nTWO**\n"),
    "code": ("one\n\n    two\n\n```py\nthree\n```\n", "ONE\n\n    two\n\n```py\nthree\n```\n"),
    "a table": ("| one | `x|` |\n|--:|---|\n| two \\| | ![three](u) |\n", None),
    "front matter": ("---\ntitle: one\n---\n\none\n", "---\ntitle: one\n---\n\nONE\n"),
    "definitions": ("[one]\n\n[one]: http://x.y 'T'\n", "[ONE][one]\n\n[one]: http://x.y 'T'\n"),
    "a footnote": ("one[^a]\n\n[^a]: two\n", "ONE[^a]\n\n[^a]: TWO\n"),
    "maths": ("one $x_a$ two\n\n$$\nx\n$$\n", "ONE $x_a$ TWO\n\n$$\nx\n$$\n"),
    "a comment": ("<!-- one -->\n\none <!-- two --> three\n", "<!-- one -->\n\nONE <!-- two --> THREE\n"),
    "HTML": ("<p align='x'>one <code>two</code></p>\n", "<p align='x'>ONE <code>two</code></p>\n"),
    "HTML within": ("one <kbd>two</kbd> <b>three</b>\n", "ONE <kbd>two</kbd> <b>THREE</b>\n"),
    "an image": ("![one](two.png 'three')\n", "![ONE](two.png 'three')\n"),
    "a badge": ("[![one](a.svg)](\nhttp://b)\n", "[![ONE](a.svg)](\nhttp://b)\n"),
    "an address": ("one <http://x.y/z>\n", "ONE <http://x.y/z>\n"),
    "line ends": ("# one\r\n\r\ntwo\r\nthree\r\n", "# ONE\r\n\r\nTWO THREE\r\n"),
    "white space": ("\ufeff# one  \n\n\ttwo\n\nthree \n", "\ufeff# ONE  \n\n\ttwo\n\nTHREE \n"),
    "no line end": ("one", "ONE"),
    "nothing": ("", ""),
    "nothing to read": ("123\n\n---\n\n`a`\n", "123\n\n---\n\n`a`\n"),
    "terms": ("one\n: two\n", "ONE\n: TWO\n"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_is_translated_and_the_rest_stays(name):
    text, wanted = CASES[name]
    made, _, _ = through(text)
    if wanted is not None:
        assert made == wanted
    assert markdown_structure(made.removeprefix("\ufeff")) == markdown_structure(text.removeprefix("\ufeff"))


def test_cells_of_a_table_each():
    made, _, asked = through("> | one | two |\n> |--|:-:|\n> | `three` four | five \\| six |\n", standins.upper)
    assert made == "> | ONE | TWO |\n> |--|:-:|\n> | `three` FOUR | FIVE \\| SIX |\n"
    assert asked == ["one", "two", "`three` four", "five \\| six", "four"]
    made, _, _ = through("| one |\n|--|\n| two |\n", lambda text: f"{text} | more")
    assert made == "| one \\| more |\n|--|\n| two \\| more |\n"


def test_a_paragraph_goes_to_the_translator_as_one_text_with_its_markup():
    text = 'Run `pip` in a\n**terminal**, see\n[the *guide*](guide.md "Guide") or [faq].\n\n[faq]: http://x.y\n'
    made, stats, asked = through(text, standins.vowels)
    assert asked == ['Run `pip` in a **terminal**, see [the *guide*](guide.md "Guide") or [faq](http://x.y).']
    assert made.startswith('Rün `pip` ïn ä **tërmïnäl**, sëë [thë *güïdë*](guide.md "Guide") ör [fäq][faq].\n')
    assert (stats.segments, stats.in_pieces, stats.untranslated) == (1, 0, 0)


def test_words_that_do_not_belong_together_are_asked_for_one_by_one():
    _, stats, asked = through("[![one](a)](b) [![two](c)](d) | [three](e)\n\n**four**\n\n`five` six\n")
    assert asked == ["one", "two", "three", "four", "`five` six", "six"]
    assert stats.in_pieces == 1  # FIVE is not five


def test_words_may_change_their_order_and_take_their_markup_along():
    made, stats, _ = through("one **two** [three](a) `b` [four](c)", lambda text: " ".join(reversed(text.split(" "))))
    assert made == "[four](c) `b` [three](a) **two** one"
    assert stats.in_pieces == 0


@pytest.mark.parametrize(
    "lose",
    [
        lambda text: text.replace("**", ""),
        lambda text: text.replace("`b`", "b"),
        lambda text: text.replace("(c)", "(d)"),
        lambda text: text.replace("[three]", "[]"),
        lambda text: f"{text} `more`",
        lambda text: text.replace("**two**", "**two** **two**"),
    ],
)
def test_a_translation_with_other_markup_is_made_again_in_pieces(lose):
    made, stats, asked = through(
        "one **two** `b` [three](c).", lambda text: lose(text).swapcase() if "*" in text else text.upper()
    )
    assert made == "ONE **TWO** `b` [THREE](c)."
    assert (stats.in_pieces, stats.untranslated) == (1, 0)
    assert asked[1:] == ["one", "two", "three"]


def test_only_the_sentence_that_lost_its_markup_is_made_in_pieces():
    def forgetful(text):
        return text.replace("*", "") if "four" in text else standins.vowels(text)

    made, stats, asked = through("One *two* three. See *four* five.", forgetful)
    assert made == "Önë *twö* thrëë. Sëë *four* fïvë."
    assert stats.in_pieces == 1
    assert asked[1:3] == ["One *two* three.", "See *four* five."]


@pytest.mark.parametrize(
    "begins", ["1. ", "1) ", "- ", "+ ", "* ", "# ", "> ", "```", "| ", "~~~", "<p>", "[a]: b", "---"]
)
def test_a_translation_that_begins_as_a_block_does_stays_a_paragraph(begins):
    made, _, _ = through("one\n\n- two\n\n> three\n", lambda text: f"{begins}{text}")
    assert (
        markdown_structure(made)["commonmark"]["blocks"]
        == markdown_structure("one\n\n- two\n\n> three\n")["commonmark"]["blocks"]
    )


def test_what_cannot_be_translated_is_left_and_counted():
    made, stats, _ = through("# one\n\ntwo *three* four\n", standins.empty)
    assert made == "# one\n\ntwo *three* four\n"
    assert (stats.segments, stats.untranslated) == (2, 2)


def test_chinese_lines_are_joined_without_a_space():
    _, _, asked = through("今天天气\n很好。\n\nEnglish 词\nand 词\n")
    assert asked == ["今天天气很好。", "English 词 and 词"]


def test_the_translator_of_texts_keeps_a_document_as_well():
    """The real one, with a model that knows numbers only and makes noise of all else."""
    from glassformer.pipelines.text import TextTranslator
    from glassformer.pipelines.translator import Translator

    text = "# twenty-one\n\nSee `a b` and **twenty** of [three](x), {name} %s.\n\n- five\n\n"
    text += "| six | `7` |\n|---|---|\n| 8 | nine |\n"
    told = []
    translator = TextTranslator(Translator.load(Path(__file__).parents[2] / "bundle-1"), source="en", target="de")
    made, _ = translate_bytes(Path("x.md"), text.encode(), translator, lambda *count: told.append(count))
    assert markdown_structure(made.decode()) == markdown_structure(text)
    assert told[-1][0] == told[-1][1]


WORD = st.sampled_from(["one", "two", "three", "第一", "1", "a_b", "C#", "x*y", "2.", "-", "#", "&amp;", "\\*"])
SPAN = st.one_of(
    WORD,
    st.builds("`{}`".format, WORD.filter(lambda word: "\\" not in word)),
    st.builds("**{}**".format, WORD),
    st.builds("*{} {}*".format, WORD, WORD),
    st.builds("[{}](u{})".format, WORD, st.integers(0, 9)),
    st.builds("![{}](u{})".format, WORD, st.integers(0, 9)),
    st.sampled_from(
        ["{name}", "%s", "{{x}}", "<xref:a.b>", "$VAR", "<br>", "<b>x</b>", "[ref]", "[^n]", "~~no~~", "$x^2$"]
    ),
)
LINE = st.lists(SPAN, min_size=1, max_size=7).map(" ".join)
BLOCK = st.one_of(
    LINE,
    st.builds("{}\n{}".format, LINE, LINE),
    st.builds("{}  \n{}".format, LINE, LINE),
    st.builds("## {}".format, LINE),
    st.builds("- {}\n- {}".format, LINE, LINE),
    st.builds("1. {}\n\n   {}".format, LINE, LINE),
    st.builds("> {}\n> {}".format, LINE, LINE),
    st.builds("| {} | {} |\n|---|---|\n| {} | {} |".format, WORD, WORD, SPAN, SPAN),
    st.builds("```\n{}\n```".format, LINE),
    st.builds("    {}".format, LINE),
    st.builds("<div>\n{}\n</div>".format, LINE),
)
DOCUMENT = st.lists(BLOCK, max_size=6).map(lambda blocks: "\n\n".join([*blocks, "[ref]: http://x.y\n\n[^n]: note\n"]))


@settings(max_examples=60, deadline=None)
@given(DOCUMENT, st.sampled_from([*standins.HARD.values()]))
def test_any_document_keeps_its_structure_with_any_translator(text, change):
    made, _, _ = through(text, change)
    assert markdown_structure(made) == markdown_structure(text)


@settings(max_examples=50, deadline=None)
@given(DOCUMENT)
def test_a_translator_that_changes_nothing_changes_nothing_but_line_breaks(text):
    made, stats, _ = through(text, str)
    assert made.split() == text.split() or "[ref]" in text or ">" in text
    assert stats.untranslated == 0


PLACEHOLDER = st.sampled_from(
    ["{name}", "%s", "%(n)d", "{{x}}", "<xref:a.b>", "$VAR", "https://x.y/z?a=1", "`a b`", "12,345.6"]
)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.one_of(WORD, PLACEHOLDER), min_size=1, max_size=12).map(" ".join),
    st.sampled_from([".md", ".txt", ".html", ".po"]),
)
def test_what_a_translator_keeps_a_document_keeps(words, kind):
    """Placeholders, numbers and code reach the translator whole and come back from it whole, in every format."""
    import html

    text = {
        ".md": f"{words}\n",
        ".txt": f"{words}\n",
        ".html": f"<p>{html.escape(words)}</p>",
        ".po": 'msgid "' + words.replace("\\", "\\\\") + '"\nmsgstr ""\n',
    }[kind]
    made, _, _ = standins.through(f"x{kind}", text, standins.shuffle if kind != ".md" else str)
    shown = html.unescape(made) if kind == ".html" else made
    for placeholder in ("{name}", "%s", "%(n)d", "{{x}}", "<xref:a.b>", "$VAR", "https://x.y/z?a=1", "12,345.6"):
        assert shown.count(placeholder) >= words.count(placeholder)
