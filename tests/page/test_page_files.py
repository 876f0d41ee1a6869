"""Both pages as files: small, self-contained, complete in their languages, without a part that nothing uses."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from visitor import VIEWS

from glassformer import page
from glassformer.page import front_files, page_files

PAGE, FRONT = page_files(), front_files()
PAGES = pytest.mark.parametrize("files", [PAGE, FRONT], ids=["inside", "front"])
STRING = r'"((?:[^"\\]|\\.)*)"'


def scripts(files: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in files.items() if name.endswith(".js")}


def code(files: dict[str, str]) -> str:
    return "\n".join(text for name, text in scripts(files).items() if name != "texts.js")


def texts(files: dict[str, str]) -> dict[str, list[str]]:
    """Every text of the page, its pieces joined, in each of its languages."""
    joined = re.sub(r'" \+\s+"', "", files["texts.js"])
    rows = re.findall(rf"{STRING}: \[((?:\s*{STRING.replace('((', '(?:(')},?)+)\s*\]", joined)
    assert len(rows) == len(re.findall(rf"{STRING}: \[", joined)) == len({key for key, *_ in rows}) > 40
    return {key: re.findall(STRING, said) for key, said, *_ in rows}


def test_the_handbook_has_a_row_for_every_view():
    chapters = Path(__file__).parents[2] / "docs"
    said = texts(PAGE)
    for i, language in enumerate(("en", "zh")):
        table = re.findall(r"^\| \*\*(.+?)\*\* \|", (chapters / language / "18-the-page.md").read_text("utf-8"), re.M)
        assert table == [said[f"view.{view}"][i] for view in VIEWS]


@PAGES
def test_nothing_is_made_up_or_fetched_from_elsewhere_and_no_text_becomes_markup(files):
    for name, text in files.items():
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, (name, addresses)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write\b|\beval\(", text), name
        assert not re.search(r"Math\.random|getRandomValues", text), name
        assert not re.search(r"\bimport\s*\(", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)), name
        for target in re.findall(r"\bfrom \"([^\"]+)\"", text):
            own = target.removeprefix("./") in scripts(files)
            assert own or (files is FRONT and target.removeprefix("../") in scripts(PAGE)), (name, target)


@PAGES
def test_the_files_are_small(files):
    most = 40_000 if files is FRONT else 300_000
    assert sum(len(gzip.compress(text.encode())) for text in files.values()) <= most
    for name, text in files.items():
        lines = text.splitlines()
        assert len(lines) <= 500 or name == "texts.js", name
        assert max(map(len, lines)) <= 120, name


@PAGES
def test_every_text_is_there_in_all_languages(files):
    known = texts(files)
    for key, said in known.items():
        assert len(said) == (3 if files is FRONT else 2), key
        assert all(said), key
        assert len({frozenset(re.findall(r"\{\w+\}", one)) for one in said}) == 1, key
    assert set(re.findall(r'\bt\(\s*"([^"]+)"', code(files))) <= set(known)


# Families of texts, each named in the code by what differs within it; of some, only these are named so.
SOME = {
    "ask": "beam padding less more",
    "cache": "with without",
    "flow": "encoder cross decoder",
    "matrix": "before after",
    "trace": "json html",
    "whatif": "before after",
}


@PAGES
def test_every_text_is_used(files):
    known = texts(files)
    families = set(re.findall(r"`((?:[a-z_]+\.)+)\$\{", code(files)))
    named = set(re.findall(r'"([\w.]+)"', code(files)))
    for family in families:
        assert any(key.startswith(family) for key in known), family
        some = SOME.get(family.rstrip("."))
        named |= {f"{family}{one}" for one in some.split()} if some else {k for k in known if k.startswith(family)}
    plain = {key.partition("|")[0] for key in known}  # what another kind of model says instead goes by its name
    assert plain - named == set()
    assert plain <= set(known)


def test_every_variant_is_that_of_a_kind_of_model():
    told = re.search(r"const VARIANTS = \{(.*?)\};", PAGE["language.js"], re.DOTALL)[1]
    voices = {key.partition("|")[2] for key in texts(PAGE) if "|" in key}
    assert voices == set(re.findall(r'"(\w+)"', told))


def test_every_export_is_imported():
    types = (Path(page.__file__).parent / "types.d.ts").read_text(encoding="utf-8")
    found = set(re.findall(r'import\("\./(\w+\.js)"\)\.(\w+)', types + code(PAGE)))
    for text, place in [(code(PAGE), r"\./"), ("\n".join(FRONT.values()), r"\.\./")]:
        for names, file in re.findall(rf'import \{{([^}}]*)\}} from "{place}(\w+\.js)"', text):
            found |= {(file, name) for name in re.findall(r"\w+", names)}
    for file, text in scripts(PAGE).items():
        exported = re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", text, re.MULTILINE)
        for group in re.findall(r"^export const \{(.*?)\}", text, re.MULTILINE):
            exported += re.findall(r"\w+", group)
        assert [name for name in exported if (file, name) not in found] == [], file


def test_every_style_is_used():
    # The schematics' sheet is held to the drawings by their own test.
    both = [*PAGE.items(), *FRONT.items()]
    sheets = "\n".join(text for name, text in both if name.endswith(".css") and name != "schematic.css")
    sheets = re.sub(r"/\*.*?\*/|\{[^{}]*\}|\"[^\"]*\"", "", sheets, flags=re.DOTALL)
    named = "\n".join(text for name, text in both if name.endswith((".js", ".html")) and name != "texts.js")
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r'"[^"\n]*"|`[^`]*`', named))))
    begun = tuple(re.findall(r"class: `[^`]*?([\w-]+-)\$\{", code(PAGE)))
    for name in set(re.findall(r"[.#]([a-zA-Z][\w-]*)", sheets)):
        assert name in words or name.startswith(begun), name
