"""Every link leads somewhere: to a file that is there, a heading that it has, and the chapter whose number it says."""

import json
import re
from pathlib import Path

import fences
import pytest

ROOT = Path(__file__).parents[2]
PLACES = (
    "*.md", "docs/en/**/*.md", "docs/zh/**/*.md", "notebooks/*/*.ipynb", "src/glassformer/pipelines/box/*/README*.md",
)  # fmt: skip
FILES = [file for pattern in PLACES for file in sorted(ROOT.glob(pattern))]
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.M)
SAID = re.compile(r"^(?:chapter |第 ?)?(\d+)(?: ?章)?$", re.I)
MENTION = re.compile(r"[Cc]hapters? (\d+)|第 ?(\d+) ?章")
NUMBERED = {int(page.name[:2]) for page in (ROOT / "docs" / "en").glob("[0-9][0-9]-*.md")}


def prose(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        cells = [cell["source"] for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join(cell if isinstance(cell, str) else "".join(cell) for cell in cells)
    return fences.FENCE.sub(fences.blank, text)


def anchors(text: str) -> set[str]:
    """What a code host makes of the headings: small letters, signs left out, spaces as hyphens; twins are counted."""
    found: dict[str, int] = {}
    names = set()
    for heading in HEADING.findall(text):
        words = re.sub(r"\]\([^)]*\)|[`*\[]", "", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return names


def faults(text: str, file: Path) -> list[str]:
    """What is wrong with the links of a text that stands in `file`."""
    wrong = []
    for words, target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        place = (file.parent / path).resolve() if path else file
        if not place.exists():
            wrong.append(f"{target}: there is no such file")
        elif anchor and anchor not in anchors(text if place == file else prose(place)):
            wrong.append(f"{target}: {place.name} has no such heading")
        elif (number := SAID.match(words)) and int(number[1]) != int((re.match(r"\d+", place.name) or ["-1"])[0]):
            wrong.append(f"[{words}]({target}): another chapter")
    return wrong


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_links_lead_to_what_they_say(file):
    text = prose(file)
    assert faults(text, file) == []
    if file.name != "CHANGELOG.md":  # which tells of chapters as they were
        assert {int("".join(found)) for found in MENTION.findall(text)} <= NUMBERED, "a chapter that there is not"


def test_a_wrong_link_is_noticed():
    page = ROOT / "docs" / "en" / "index.md"
    right = "# One `two`\n\n[x](04-attention.md) [4](04-attention.md#why) [chapter 4](04-attention.md) [a](#one-two)"
    assert faults(right, page) == []
    for wrong in (
        "[x](04-atention.md)",
        "[x](04-attention.md#wy)",
        "[5](04-attention.md)",
        "[第 5 章](04-attention.md)",
    ):
        assert len(faults(wrong, page)) == 1, wrong
    assert anchors("## Try it\n\n## Try it\n\n## `a.b`: [c](d.md)!\n\n## 为什么") == {
        "try-it", "try-it-1", "ab-c", "为什么",
    }  # fmt: skip
