"""What a translation must not change, and pairs in which placeholders stand for it."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.common.errors import ConfigError
from glassformer.data import Corpus, Tokenizer, TokenizerOptions, icu, prepare, protect, read_pairs
from glassformer.data.protect import PLACEHOLDERS, hide_in_pairs, hide_spans, insert_placeholders, spans

KEPT = [
    ("Run `pip install x` now.", ["`pip install x`"]),
    ('See [the page](../a/b_(c).md#top) and ![](a.png "A picture").', ["../a/b_(c).md#top", 'a.png "A picture"']),
    (
        "Go to https://example.org/a?b=c#d, then <https://example.org>.",
        ["https://example.org/a?b=c#d", "<https://example.org>"],
    ),
    ("A <xref:System.Object> in <b>bold</b>, a < b and c > d.", ["<xref:System.Object>", "<b>", "</b>"]),
    ("Dear {name}, {{ value }} of ${TOTAL} and $HOME", ["{name}", "{{ value }}", "${TOTAL}", "$HOME"]),
    ("%s of %d files, %(name)s, %1$s, 100% sure, 5 % less", ["%s", "%d", "%(name)s", "%1$s"]),
    ("The disk is %d%% full, 100%% sure, 50% off, 50%discount", ["%d", "%%", "%%"]),
    ("%dMB, %5.2f, %*d, %zu, %<x>s, %1 of %n%", ["%dMB", "%5.2f", "%*d", "%zu", "%<x>s", "%1", "%n%"]),
    (
        "{n, number, percent} {{{raw}}} {% if x %} '{' '{x}'",
        ["{n, number, percent}", "{{{raw}}}", "{% if x %}", "'{'", "'{x}'"],
    ),
    ("${A:-b c} $(date +%F) $@, $5, R&D &amp; &#38;", ["${A:-b c}", "$(date +%F)", "$@", "&amp;", "&#38;"]),
    ("a {n, plural, one {# b} other {{x} '}'}} b", ["{n, plural, one {# b} other {{x} '}'}}"]),
    ("Hi <%= a.b %>, <?php echo $x; ?> of <% if y %>", ["<%= a.b %>", "<?php echo $x; ?>", "<% if y %>"]),
    ("%0:s is %1:d, 50%:", ["%0:s", "%1:d"]),
    ("`{n, select, other {a}}`", ["`{n, select, other {a}}`"]),
    ("Write to somebody@example.org or use --dry-run, well-known, a -- b", ["somebody@example.org", "--dry-run"]),
    ("> [!NOTE] It costs $100.", ["[!NOTE]"]),
    ("打开“https://example.org/a”，然后运行 `ls`。", ["https://example.org/a", "`ls`"]),
    ("请设置$PATH变量，用--all选项访问https://a.example/b？c或", ["$PATH", "--all", "https://a.example/b"]),
    ("https://a.example/x的页面，联系me@a.example邮箱。", ["https://a.example/x", "me@a.example"]),
    ("Grüße an info@müller.example, https://de.example/Ärzte.", ["info@müller.example", "https://de.example/Ärzte"]),
    ("Visit example.com or www.a-b.org/x/y.", ["example.com", "www.a-b.org/x/y"]),
    ("Edit setup.py and README.md in node_modules.", ["setup.py", "README.md", "node_modules"]),
    ("Use camelCase, getUserName() or std::vector.", ["camelCase", "getUserName()", "std::vector"]),
    ("See C:\\Users\\me\\x.txt, /etc/hosts and ~/a/b.", ["C:\\Users\\me\\x.txt", "/etc/hosts", "~/a/b"]),
    ("The commit d557134 made #ff00aa.", ["d557134", "#ff00aa"]),
    ("打开setup.py文件和config.json。", ["setup.py", "config.json"]),
    ("_emphasis_, and/or, 3/4, 2026-01-02, 1234567, e.g. this, Buy milk.Buy bread, MitarbeiterInnen", []),
]


@pytest.mark.parametrize(("text", "kept"), KEPT)
def test_what_is_kept(text: str, kept: list[str]) -> None:
    assert [text[start:end] for start, end in spans(text)] == kept


@given(st.text(alphabet="ab `<>{}()[]$%!.:/@-\ue000\n1", max_size=60))
def test_stretches_come_in_order_and_none_is_empty(text: str) -> None:
    reach = 0
    for start, end in spans(text):
        assert reach <= start < end <= len(text)
        reach = end


PARTS = ["a", " ", "`a`", "[a](b)", "[!A]", "<!--a-->", "<a>", "a://b", "a@b.c"]
PARTS += ["{a}", "%s", "$A", "%AB%", "--a", "\ue001"]


@given(st.lists(st.sampled_from(PARTS), max_size=3).map("".join))
def test_a_text_without_a_sign_of_any_has_none(text: str) -> None:
    mark = "\ue000\n"  # with which every text is looked through
    assert [(start + 2, end + 2) for start, end in spans(text)] == spans(mark + text)[1:]


def filled(text: str, stretches: list[str]) -> str:
    return "".join(stretches[PLACEHOLDERS.index(c)] if c in PLACEHOLDERS else c for c in text)


@given(st.integers(0, 1000), st.integers(1, 10))
def test_a_hidden_pair_has_the_same_placeholders_on_both_sides(seed: int, count: int) -> None:
    source = "Open Visual Studio 2022 and run `dotnet new` with {name}, see [this](a.md)."
    target = "Führen Sie `dotnet new` mit {name} in Visual Studio 2022 aus; siehe [dies](a.md)."
    one, other = hide_spans(source, target, count, random.Random(seed))
    marks = [c for c in one if c in PLACEHOLDERS]
    assert marks == list(PLACEHOLDERS[: len(marks)])
    assert len(marks) <= count
    assert sorted(c for c in other if c in PLACEHOLDERS) == marks
    places = [(source.find(piece), piece) for piece in ("Visual Studio", "2022", "`dotnet new`", "{name}", "a.md")]
    known = [piece for _, piece in sorted(places) if piece not in one]  # what the placeholders stand for
    assert filled(one, known) == source
    assert filled(other, known) == target


def test_a_word_inside_another_is_not_hidden() -> None:
    for seed in range(50):
        assert hide_spans("Client applications", "Clientanwendungen", 5, random.Random(seed))[1] == "Clientanwendungen"
    assert insert_placeholders("a b c", [(4, 5), (0, 1)]) == f"{PLACEHOLDERS[1]} b {PLACEHOLDERS[0]}"


def test_the_share_of_pairs_is_kept_and_the_choice_does_not_change() -> None:
    pairs = [(f"Take `a{i}` here", f"Nimm hier `a{i}`") for i in range(2000)]
    once, again = list(hide_in_pairs(pairs, 0.5, 4)), list(hide_in_pairs(pairs, 0.5, 4))
    assert once == again
    changed = sum(one != two for one, two in zip(once, pairs, strict=True))
    assert 0.5 * 0.6 * 0.85 < changed / len(pairs) < 0.5 * 0.6 * 1.15
    assert list(hide_in_pairs(pairs, 0.0, 4)) == pairs


def test_placeholders_and_tags_are_pieces_that_text_alone_cannot_spell(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("Take `this` <2de>\n" * 60 + "and that\n" * 40, encoding="utf-8")
    (tmp_path / "b").write_text("Nimm `this` <2de>\n" * 60 + "und das\n" * 40, encoding="utf-8")
    there = Corpus(src=tmp_path / "a", tgt=tmp_path / "b", from_="en", to="de", protect=1.0)
    back = Corpus(src=tmp_path / "b", tgt=tmp_path / "a", from_="de", to="en")
    for kind in ("bpe", "unigram"):
        options = TokenizerOptions(kind=kind, vocab_size=283, placeholders=3)  # type: ignore[arg-type]
        made = Tokenizer.train(read_pairs(there), options, languages=["de", "en"])
        made.save(tmp_path)
        tokenizer = Tokenizer.load(tmp_path)
        assert tokenizer.tags == ("de", "en")
        assert tokenizer.placeholders == PLACEHOLDERS[:3]
        text = f"Take {PLACEHOLDERS[1]}, <2de> {PLACEHOLDERS[7]}"
        (plain,), (tagged,) = tokenizer.encode_source([text]), tokenizer.toward("en").encode_source([text])
        assert tagged[1:] == plain
        assert tokenizer.source_pieces(tagged)[0] == "<2en>"
        assert not {"<2de>", "<2en>"} & set(tokenizer.source_pieces(plain))
        assert tokenizer.source_pieces(plain).count(PLACEHOLDERS[1]) == 1
        assert tokenizer.decode_source([plain]) == tokenizer.decode_source([tagged]) == [text]
        assert tokenizer.toward("de").encode_source(["", "a"])[0] == []
        store = prepare([there, back], tokenizer, tmp_path / kind)
        firsts = [tokenizer.source_pieces(store.pair(i)[0][:1])[0] for i in (0, len(store) - 1)]
        assert firsts == ["<2de>", "<2en>"]
        assert PLACEHOLDERS[0] in tokenizer.decode_source([store.pair(0)[0]])[0]
        with pytest.raises(Exception, match="no tag for `fr`: its tags are `de`, `en`"):
            tokenizer.toward("fr")
    with pytest.raises(ConfigError, match="placeholders"):
        TokenizerOptions(placeholders=99)
    with pytest.raises(ConfigError, match="placeholders are for"):
        TokenizerOptions(kind="words", placeholders=1)


LEAVES = [
    ("{n, plural, offset:1 =0 {no b } one{# b}}", "{n, plural, offset:1 =0 {«no b» } one{«# b»}}"),
    ("a {g, select, x {b {n, plural, other {# c}}} y {#}}", "a {g, select, x {«b {n, plural, other {# c}}»} y {«#»}}"),
    ("{n, plural, other {#}}", "{n, plural, other {«#»}}"),
    *[(one, one) for one in ("`{g, select, x {b}}` <a {g, select, x {b}}>", "{n, plural, one {a} other {b}")],
]


@pytest.mark.parametrize(("text", "changed"), LEAVES)
def test_leaves_of_messages_change_and_nothing_else(text: str, changed: str) -> None:
    assert icu.change_leaves(text, "«{}»".format) == changed


@pytest.mark.parametrize(
    "text",
    [
        "{a,select,b{",
        "{a,select,b{'{''",
        "{a,select,b{x}",
        "{a,",
        "$(",
        "%(",
        "{{",
        "'{",
        "0",
        "a.",
        "a_",
        "a/",
        "/a",
        "aB",
        "a::",
        "a-",
        "0a",
        "~/",
        "a.com/",
        "C:\\a",
    ],
)
def test_time_to_find_names_grows_with_the_length(text):
    begin = time.process_time()
    spans("%" + text * 50_000)
    assert time.process_time() - begin < 5


def test_nothing_is_remembered_of_long_texts() -> None:
    """Whoever sends many of them would have a server hold them, and each of their stretches."""
    protect._cached_spans.cache_clear()
    for text in ("\ue000" * 1000, "\ue000" * 1001):
        found = spans(text)
        found.append((0, 0))  # what is remembered is nobody's to change
        assert spans(text) == [(i, i + 1) for i in range(len(text))]
    assert protect._cached_spans.cache_info().currsize == 1
