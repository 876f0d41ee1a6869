"""The handbook's schematics are drawn from the model of today, shown where they belong, and lead to real chapters."""

import re
from pathlib import Path

import make_schematics
import pytest

from glassformer.explain.schematic.canvas import PLACES
from glassformer.page import page_files

DOCS = Path(__file__).parents[2] / "docs"
DRAWN = dict(make_schematics.drawn())


@pytest.mark.parametrize("file", DRAWN, ids=lambda file: file.name)
def test_a_schematic_is_fresh(file):
    assert file.read_text(encoding="utf-8") == DRAWN[file], "not fresh; run: python docs/make_schematics.py"


def test_every_schematic_is_shown_in_its_language():
    for file in DRAWN:
        language = file.name.split(".")[1]
        pages = [page for page in (DOCS / language).glob("*.md") if f"figures/{file.name})" in page.read_text("utf-8")]
        assert len(pages) == 1, file.name
    assert {file.name for file in (DOCS / "figures").glob("schematic-*")} == {file.name for file in DRAWN}


def test_every_part_has_its_chapter_and_its_view():
    views = re.findall(r'"(\w+)"', re.search(r"const VIEWS = \[(.*?)\]", page_files()["state.js"], re.S)[1])
    for role, place in PLACES.items():
        assert (DOCS / "en" / f"{place.chapter}.md").exists(), role
        assert place.view in ("", *views), role
