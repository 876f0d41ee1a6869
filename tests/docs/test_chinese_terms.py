"""The Chinese texts have one word for each concept; the English ones write learnt."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import fences
import pytest

ROOT = Path(__file__).parents[2]
TERMS = tomllib.loads((ROOT / "docs" / "terms.toml").read_text(encoding="utf-8"))
PLACES = (
    "README.zh-CN.md", "CONTRIBUTING.zh-CN.md", "SECURITY.zh-CN.md", "docs/zh/**/*.md", "docs/zh.yml",
    "docs/figures/*.py", "notebooks/zh/*.ipynb", "src/glassformer/labs/*.py", "src/glassformer/page/*.js",
    "src/glassformer/page/*.html", "src/glassformer/explain/**/*.py", "src/glassformer/box/card.py",
    "src/glassformer/box/*/README.zh-CN.md",
)  # fmt: skip
UNWANTED = {word: (concept, term["word"]) for concept, term in TERMS.items() for word in term["not"]}
LEARNED = re.compile(r"""(?<!["'`])\blearned\b""")


def faults(text: str) -> list[str]:
    return [f"{word} ({concept}: write {right})" for word, (concept, right) in UNWANTED.items() if word in text]


def found(pattern: str) -> list[Path]:
    return sorted(ROOT.glob(pattern))


@pytest.mark.parametrize("pattern", PLACES)
def test_each_concept_has_one_chinese_word(pattern: str) -> None:
    files = found(pattern)
    assert files or "box" in pattern, "nothing is there: was it moved?"
    wrong = {file.name: faults(file.read_text(encoding="utf-8")) for file in files}
    assert not {name: said for name, said in wrong.items() if said}


def test_a_word_that_is_not_used_is_noticed() -> None:
    assert faults("编码器的堆栈") == ["堆栈 (stack: write 堆叠)"]
    assert not faults("编码器的堆叠")


def test_the_list_contradicts_neither_itself_nor_the_glossary() -> None:
    glossary = (ROOT / "docs" / "zh" / "glossary.md").read_text(encoding="utf-8")
    for term in TERMS.values():
        assert not faults(term["word"])
    for concept in ("stack", "mask", "token", "piece", "beam search", "checkpoint", "cross-attention"):
        assert f"| {TERMS[concept]['word']}" in glossary


@pytest.mark.parametrize("file", found("docs/en/**/*.md"), ids=lambda file: file.stem)
def test_english_prose_says_learnt(file: Path) -> None:
    prose = fences.without(file.read_text(encoding="utf-8"))
    assert not [line for line in prose.splitlines() if LEARNED.search(line)]
