"""Every block of code in the handbook runs, in order, and prints what the page shows."""

import os
from pathlib import Path

import build_pages
import growing
import pytest
from runner import run_page

DOCS = Path(__file__).parents[2] / "docs"
SLOW = bool(os.environ.get("DOCS_SLOW"))
# Both languages hold the same code and print the same, each in its words (test_structure.py): one of them is run.
PAGES = sorted(page.stem for page in (DOCS / "en").glob("*.md"))
# These train, translate or load more than the others.
LONG = {
    "00-before-transformers", "14-greedy", "17-families", "18-the-page", "19-your-own-translator", "23-serve-it",
    "24-in-bulk", "25-take-it-with-you", "api", "where-tutorials-go-wrong",
}  # fmt: skip


@pytest.mark.parametrize("name", build_pages.ORDER)
def test_page_of_the_build(name, demo, tmp_path):
    """A page's code goes on from the file as the pages before it have left it."""
    page = DOCS / "en" / "build" / f"{name}.md"
    before = build_pages.steps_before(page)
    run_page(page, demo, tmp_path, SLOW, growing.names_after(before) if before else None)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n in LONG)) for n in PAGES])
def test_page(name, demo, tmp_path):
    run_page(DOCS / "en" / f"{name}.md", demo, tmp_path, SLOW)
