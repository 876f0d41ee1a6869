"""The API reference lists every public name, says what it is, and shows it at work."""

import ast
import re
from pathlib import Path

import fences
import pytest
import reference

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "en" / "api.md").read_text(encoding="utf-8")
NAMES = reference.public()


def used() -> set[str]:
    """The attributes that the page's examples, which test_pages.py runs, take from the package."""
    code = "\n".join(block.body for block in fences.read(PAGE) if block.kind == "python")
    return {
        ast.unparse(node).removeprefix("gf.")
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("gf", "errors")
    }


def test_every_public_name_is_listed_once():
    listed = [name for what in fences.included(PAGE) if what.kind == "api" for name in what.name.split()]
    assert sorted(listed) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_described_with_its_members_and_shown(name):
    found = reference.entry(name)
    assert found.text, "it has no docstring"
    mentioned = {"forward", "__call__", *re.findall(r"`(?:\w+\.)?(\w+)", found.text)}  # a class says how it is called
    missing = [one.name for one in found.members if not one.text and one.name.rpartition(".")[2] not in mentioned]
    assert missing == [], "these have no docstring, and their class says nothing of them"
    assert name in used(), "docs/en/api.md has no example of it"


def test_what_is_shown_is_what_stands_in_the_source():
    written = reference.markdown(reference.entry("generate"))
    assert "    src_mask: Tensor | None = None,\n" in written
    assert "(): " not in written
    methods = {one.name: one for one in reference.entry("Translator").members}
    assert methods["Translator.load"].signature.startswith("@classmethod\ndef load(\n    cls,\n    folder: str | Path")
    assert methods["Translator.__call__"].signature == "def __call__(self, text: str) -> str"


def test_a_wrong_name_is_noticed():
    with pytest.raises(LookupError, match="`Translater` is no public name"):
        reference.entry("Translater")
