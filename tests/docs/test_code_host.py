"""A page reads as it lies in the repository: what it includes stands in it, answers fold, equations are drawn."""

import re
from pathlib import Path

import fences
import pytest
import refresh
import worked_pages
from markdown_it import MarkdownIt

PAGES = refresh.pages()
SHOWN = MarkdownIt("commonmark").enable("table")
DISPLAY = re.compile(r"^\$\$\n(.+?)\n\$\$$", re.M | re.S)
INLINE = re.compile(r"(?<![\\$])\$([^$\n]+)\$")
SPAN = re.compile(r"(`+)[^`\n].*?\1")
# Of the site's own Markdown: admonitions, attributes, icons, tabs, snippets.
ONLY_ON_THE_SITE = re.compile(r"^ *(?:\?\?\?|!!!|===) |\{ *[.:#]\w|^ *--8<--|:(?:material|octicons)-", re.M)


def name(page: Path) -> str:
    return page.relative_to(refresh.DOCS).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_a_page_includes_is_fresh(page):
    assert refresh.fresh(page) == page.read_text(encoding="utf-8"), "not fresh; run: python docs/refresh.py"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_nothing_is_left_to_the_site(page):
    text = page.read_text(encoding="utf-8")
    prose = SPAN.sub("", fences.without(text))
    assert not ONLY_ON_THE_SITE.search(prose), "an answer folds by <details>, and nothing needs the site's Markdown"
    blocks = {block.kind for block in fences.read(text)}
    assert not blocks & {"source", "choices", "api"}, "these stand between marks: <!-- source: NAME -->"
    assert "<!--" not in prose, "a mark without its other"
    answers = len(fences.FOLDED.findall(text))
    assert [prose.count(tag) for tag in ("<details>", "</details>")] == [answers] * 2, "an answer is not closed"
    assert "```" not in re.sub("<[^>]*>", "", SHOWN.render(prose)), "a fence is not closed"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_equations_are_such_as_a_code_host_draws(page):
    """It unescapes signs before it draws, and knows an equation by the space before and the sign after it."""
    prose = SPAN.sub("", fences.without(page.read_text(encoding="utf-8")))
    displays, inline = DISPLAY.findall(prose), DISPLAY.sub("", prose)
    assert "$$" not in inline, "an equation on lines of its own stands between two lines of $$"
    for equation in [*displays, *INLINE.findall(inline)]:
        assert not re.search(r"\\[^A-Za-z\s]", equation), f"{equation}: \\thinspace for \\, and \\cr for \\\\"
    for found in INLINE.finditer(inline):
        before, after = inline[found.start() - 1 : found.start()], inline[found.end() : found.end() + 1]
        assert before in ("", "\n", " ", "("), f"{found[0]}: a space before it, or it stays raw"
        assert not re.match(r"[A-Za-z0-9]", after), f"{found[0]}: no letter behind it, or it stays raw"
        assert found[1] == found[1].strip(), f"{found[0]}: no space within, or it stays raw"


def test_the_worked_example_is_told_whole():
    for language in ("en", "zh"):
        page = (refresh.DOCS / language / "22-by-hand.md").read_text(encoding="utf-8")
        chapters = [what.name for what in fences.included(page) if what.kind == "worked"]
        assert chapters == list(worked_pages.chapters())
        assert "pattern[h0, one, <end>] = e^3.139 / (e^0.000 + e^0.456 + e^3.139) = 0.900" in page
    with pytest.raises(LookupError, match="no chapter `nowhere`, only batch, "):
        worked_pages.markdown("nowhere", "en")


def test_a_changed_source_is_noticed(tmp_path, monkeypatch):
    page = tmp_path / "docs" / "en" / "one.md"
    page.parent.mkdir(parents=True)
    monkeypatch.setattr(refresh, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(refresh, "ROOT", tmp_path)
    page.write_text("<!-- source: glassformer.model.attention.softmax -->\n<!-- /source -->\n", encoding="utf-8")
    page.write_text(refresh.fresh(page), encoding="utf-8")
    assert "](../../src/glassformer/model/attention.py)" in page.read_text(encoding="utf-8")
    assert "```python\ndef softmax(scores: Tensor)" in page.read_text(encoding="utf-8")
    assert refresh.fresh(page) == page.read_text(encoding="utf-8")
    page.write_text(page.read_text(encoding="utf-8").replace("exp", "pow"), encoding="utf-8")
    assert refresh.fresh(page) != page.read_text(encoding="utf-8")
    page.write_text("\n<!-- source: glassformer.model.attention.softmix -->\n<!-- /source -->\n", encoding="utf-8")
    with pytest.raises(LookupError, match=r"docs/en/one.md, line 2: .* defines no `softmix`"):
        refresh.fresh(page)
