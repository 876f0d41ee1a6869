"""Every block of code in the handbook runs, in order, and prints what the page shows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from runner import run_page

DOCS = Path(__file__).parents[2] / "docs"
SLOW = bool(os.environ.get("DOCS_SLOW"))
# Both languages hold the same blocks, byte for byte (test_structure.py), so running those of one is enough.
PAGES = sorted(page.stem for page in (DOCS / "en").glob("*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, demo: Path, tmp_path: Path) -> None:
    run_page(DOCS / "en" / f"{name}.md", demo, tmp_path, SLOW)
