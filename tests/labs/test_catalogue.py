"""A lab is complete: tests give its verdict and turn it, a chapter names it, the READMEs count it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from glassformer.labs import NAMES

ROOT = Path(__file__).parents[2]
TESTS = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_verdicts_*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_its_verdict_is_tested_as_it_ships_and_with_a_broken_part(name: str) -> None:
    missing = [call for call in (f"shipped({name})", f"{name}.run(") if call not in TESTS]
    assert missing == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_chapter_names_every_lab(language: str) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / language).glob("*.md"))
    named = {name.replace("-", "_") for name in re.findall(r"glassformer lab ([\w-]+)", pages)}
    assert [name for name in NAMES if name not in named] == []


@pytest.mark.parametrize(("readme", "count"), [("README.md", r"(\d+) labs"), ("README.zh-CN.md", r"(\d+) 个实验")])
def test_the_readmes_count_the_labs(readme: str, count: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    assert re.findall(count, text) == [str(len(NAMES))], "the words for the number and the verdicts' numbers too"
