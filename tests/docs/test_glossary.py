"""Both glossaries hold the same terms, in the same order, under the same chapters; and each chapter has its term."""

import re
from pathlib import Path

import fences
import pytest

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| (.+?) \| (.+?) \| (.+?) \| \[(.+?)\]\((.+?)\.md\) \|$", re.M)
IN_BRACKETS = re.compile(r"[（(]([^)）]*)[)）]")
LANGUAGES = ("en", "zh")


def rows(language: str) -> list[tuple[str, str, str, str, str]]:
    return ROW.findall((DOCS / language / "glossary.md").read_text(encoding="utf-8"))


def names(term: str) -> list[str]:
    """`layer normalisation (LayerNorm)` is known by two names, `hypothesis, n-best` by two as well."""
    parts = [IN_BRACKETS.sub("", term), *IN_BRACKETS.findall(term)]
    return [name.strip().lower() for part in parts for name in re.split(r"[,，、]|与| and ", part) if name.strip()]


def unexplained(table: list[tuple[str, str, str, str, str]], language: str) -> list[str]:
    """The terms that their chapter does not so much as name."""
    pages = {chapter: fences.without((DOCS / language / f"{chapter}.md").read_text("utf-8")).lower()
             for _, _, _, _, chapter in table}  # fmt: skip
    return [term for term, _, _, _, chapter in table if not any(name in pages[chapter] for name in names(term))]


def test_both_glossaries_hold_the_same_terms():
    english = [(term, chinese, chapter) for term, chinese, _, _, chapter in rows("en")]
    assert english == [(term, chinese, chapter) for chinese, term, _, _, chapter in rows("zh")]
    assert len({term for term, _, _ in english}) == len(english) > 60


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_term_stands_in_the_chapter_that_explains_it(language):
    assert unexplained(rows(language), language) == []
    assert all(re.match(r"\d\d-", chapter) for _, _, _, _, chapter in rows(language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_chapter_has_one_name(language):
    called: dict[str, set[str]] = {}
    for _, _, _, name, chapter in rows(language):
        called.setdefault(chapter, set()).add(name)
    assert not {chapter: names for chapter, names in called.items() if len(names) > 1}


def test_a_wrong_chapter_is_noticed():
    assert unexplained([("beam search", "束搜索", "", "", "02-embedding")], "en") == ["beam search"]
    assert unexplained([("束搜索", "beam search", "", "", "15-beam")], "zh") == []
