"""The page as files: small, self-contained, honest, complete in both languages, without a part that nothing uses."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from visitor import VIEWS

from glassformer import page
from glassformer.page import front_files, page_files

PAGE = page_files()
SCRIPTS = {name: text for name, text in PAGE.items() if name.endswith(".js")}
CODE = "\n".join(text for name, text in SCRIPTS.items() if name != "texts.js")
STRING = r'"((?:[^"\\]|\\.)*)"'


def texts() -> dict[str, list[str]]:
    """Every text of the page, its pieces joined: English, Chinese."""
    joined = re.sub(r'" \+\s+"', "", PAGE["texts.js"])
    pairs = re.findall(rf"{STRING}: \[\s*{STRING},\s*{STRING},?\s*\],", joined)
    assert len(pairs) == len(re.findall(rf"{STRING}: \[", joined)) == len({key for key, *_ in pairs}) > 200
    return {key: [english, chinese] for key, english, chinese in pairs}


def test_the_handbook_has_a_row_for_every_view():
    chapters = Path(__file__).parents[2] / "docs"
    said = texts()
    for i, language in enumerate(("en", "zh")):
        table = re.findall(r"^\| \*\*(.+?)\*\* \|", (chapters / language / "18-the-page.md").read_text("utf-8"), re.M)
        assert table == [said[f"view.{view}"][i] for view in VIEWS]


def test_no_number_is_made_up():
    for name, text in SCRIPTS.items():
        assert "Math.random" not in text, name
        assert "getRandomValues" not in text, name


def test_nothing_is_fetched_from_elsewhere():
    for name, text in PAGE.items():
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, (name, addresses)
        said = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        assert not re.search(r"\bimport\s*\(", said), f"{name}: imports are static"
    for name, text in SCRIPTS.items():
        for target in re.findall(r"\bfrom \"([^\"]+)\"", text):
            assert target.removeprefix("./") in SCRIPTS, (name, target)


def test_the_files_are_small():
    assert sum(len(gzip.compress(text.encode())) for text in PAGE.values()) <= 300_000
    for name, text in PAGE.items():
        lines = text.splitlines()
        assert len(lines) <= 500 or name == "texts.js", name
        assert max(map(len, lines)) <= 120, name


def test_every_text_is_there_in_both_languages():
    for key, (english, chinese) in texts().items():
        assert english, key
        assert chinese, key
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), key
    assert set(re.findall(r'\bt\(\s*"([^"]+)"', CODE)) <= set(texts())


# Families of texts, each named in the code by what differs within it; of some, only these are named so.
SOME = {
    "ask": "beam padding less more",
    "cache": "with without",
    "flow": "encoder cross decoder",
    "matrix": "before after",
    "trace": "json html",
    "whatif": "before after",
}


def test_every_text_is_used():
    families = set(re.findall(r"`((?:[a-z_]+\.)+)\$\{", CODE))
    named = set(re.findall(r'"([\w.]+)"', CODE))
    for family in families:
        assert any(key.startswith(family) for key in texts()), family
        some = SOME.get(family.rstrip("."))
        named |= {f"{family}{one}" for one in some.split()} if some else {k for k in texts() if k.startswith(family)}
    plain = {key.partition("|")[0] for key in texts()}  # what another kind of model says instead goes by its name
    assert plain - named == set()
    assert plain <= set(texts())


def test_every_variant_is_that_of_a_kind_of_model():
    told = re.search(r"const VARIANTS = \{(.*?)\};", PAGE["language.js"], re.DOTALL)[1]
    voices = {key.partition("|")[2] for key in texts() if "|" in key}
    assert voices == set(re.findall(r'"(\w+)"', told))


def test_every_export_is_imported():
    types = (Path(page.__file__).parent / "types.d.ts").read_text(encoding="utf-8")
    found = set(re.findall(r'import\("\./(\w+\.js)"\)\.(\w+)', types + CODE))
    for text, place in [(CODE, r"\./"), ("\n".join(front_files().values()), r"\.\./")]:
        for names, file in re.findall(rf'import \{{([^}}]*)\}} from "{place}(\w+\.js)"', text):
            found |= {(file, name) for name in re.findall(r"\w+", names)}
    for file, text in SCRIPTS.items():
        exported = re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", text, re.MULTILINE)
        for group in re.findall(r"^export const \{(.*?)\}", text, re.MULTILINE):
            exported += re.findall(r"\w+", group)
        assert [name for name in exported if (file, name) not in found] == [], file


def test_every_style_is_used():
    # The schematics' sheet is held to the drawings by their own test.
    both = [*PAGE.items(), *front_files().items()]
    sheets = "\n".join(text for name, text in both if name.endswith(".css") and name != "schematic.css")
    sheets = re.sub(r"/\*.*?\*/|\{[^{}]*\}|\"[^\"]*\"", "", sheets, flags=re.DOTALL)
    code = "\n".join(text for name, text in both if name.endswith((".js", ".html")) and name != "texts.js")
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r'"[^"\n]*"|`[^`]*`', code))))
    begun = tuple(re.findall(r"class: `[^`]*?([\w-]+-)\$\{", CODE))
    for name in set(re.findall(r"[.#]([a-zA-Z][\w-]*)", sheets)):
        assert name in words or name.startswith(begun), name
