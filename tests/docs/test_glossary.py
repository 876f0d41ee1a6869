"""Both glossaries hold the same terms, in the same order, under the same chapters."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| (.+?) \| (.+?) \| (.+?) \| \[.+?\]\((.+?)\.md\) \|$", re.M)


def rows(language: str) -> list[tuple[str, str, str, str]]:
    return ROW.findall((DOCS / language / "glossary.md").read_text(encoding="utf-8"))


def test_both_glossaries_hold_the_same_terms() -> None:
    english = [(term, chinese, chapter) for term, chinese, _, chapter in rows("en")]
    assert english == [(term, chinese, chapter) for chinese, term, _, chapter in rows("zh")]
    assert len({term for term, _, _ in english}) == len(english) > 60
