"""What the documents beside the README name is there, and both languages name the same."""

import re
from pathlib import Path

import named_source
import pytest

ROOT = Path(__file__).parents[2]
PAIRS = ("CONTRIBUTING", "SECURITY")
FILES = [*(f"{name}{suffix}.md" for name in PAIRS for suffix in ("", ".zh-CN")), "CHANGELOG.md"]
PATH = re.compile(r"`((?:src|docs|tests|\.ci)/[\w./-]+|[A-Z]+(?:\.zh-CN)?\.md)`")
OTHER_LANGUAGE = {"docs/zh/": "docs/en/", ".zh-CN.md": ".md"}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_what_is_named_is_there(name):
    missing = [path for path in PATH.findall(text(name)) if "NAME" not in path and not (ROOT / path).exists()]
    assert missing == []
    targets = re.findall(r"`?\bmake ([a-z-]+)", text(name)) if "CONTRIBUTING" in name else []
    assert set(targets) <= set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))


@pytest.mark.parametrize("name", PAIRS)
def test_both_languages_name_the_same(name):
    def quoted(file: str) -> set[str]:
        page = text(file)
        for theirs, ours in OTHER_LANGUAGE.items():
            page = page.replace(theirs, ours)
        return {word for word in re.findall(r"`([^`\n]+)`", page) if not re.search("[一-鿿]", word)}

    assert quoted(f"{name}.md") - quoted(f"{name}.zh-CN.md") == set()
    assert quoted(f"{name}.zh-CN.md") - quoted(f"{name}.md") == set()


def test_the_walk_of_a_sentence_leads_past_what_is_there():
    stops = re.findall(r"^\d+\. `(glassformer\.[\w.]+)`", text("CONTRIBUTING.md"), re.M)
    assert 10 <= len(stops) <= 15
    for name in stops:
        assert named_source.find(name).text


def test_the_version_stands_in_the_changelog():
    from glassformer import __version__

    assert f"## [{__version__}]" in text("CHANGELOG.md")
    assert "## [Unreleased]" in text("CHANGELOG.md")
