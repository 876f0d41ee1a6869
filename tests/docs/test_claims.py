"""A measured figure of the handbook stands in a section with what shows it: a command, code that runs, or a paper."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page for language in ("en", "zh") for page in sorted((DOCS / language).rglob("*.md"))]
# Scores, times, speeds and sizes: what somebody measured, not what arithmetic gives.
FIGURE = re.compile(
    r"\d(?:[\d.,]*) ?(?:BLEU|chrF|ms\b|seconds\b|minutes\b|(?:million )?(?:target )?tokens a second|sentences a second"
    r"|毫秒|秒|分钟|MB\b)|BLEU[^|\n]*\d\d\.\d"
)
SHOWN = re.compile(
    r"```(?:python|console)"
    r"|`?(?:glassformer [a-z]+|make [a-z-]+|python docs/\S+\.py|python -m (?:benchmarks|glassformer\.[a-z.]+)|ls -l)\b"
    r"|arxiv\.org|<!-- measured:"
)


def sections(page: str) -> list[str]:
    return re.split(r"^(?=## )", page, flags=re.M)


def unshown(page: str) -> list[str]:
    """The figures of sections that have nothing to show for them."""
    return [found[0] for section in sections(page) if not SHOWN.search(section) for found in FIGURE.finditer(section)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_figure_stands_with_what_shows_it(page):
    assert unshown(page.read_text(encoding="utf-8")) == []


def test_a_figure_without_a_command_is_noticed():
    assert unshown("## Why\n\nIt gets 41.8 BLEU, in 12 minutes.\n\n## How\n\n`glassformer train`") == [
        "41.8 BLEU",
        "12 minutes",
    ]
    assert unshown("## Why\n\nIt gets 41.8 BLEU (`glassformer evaluate runs/mine`).") == []
