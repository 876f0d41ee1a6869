"""The files of the page that translates: small, on their own, complete in three languages, with nothing unused."""

from __future__ import annotations

import gzip
import re

from glassformer.page import front_files, page_files

FRONT, SHARED = front_files(), page_files()
SCRIPTS = {name: text for name, text in FRONT.items() if name.endswith(".js")}
CODE = "\n".join(text for name, text in SCRIPTS.items() if name != "texts.js")
STRING = r'"((?:[^"\\]|\\.)*)"'


def texts() -> dict[str, list[str]]:
    """Every text of the page: English, German, Chinese."""
    rows = re.findall(rf"{STRING}: \[\s*{STRING},\s*{STRING},\s*{STRING},?\s*\],", FRONT["texts.js"])
    assert len(rows) == len(re.findall(rf"^  {STRING}: \[", FRONT["texts.js"], re.M)) == len({key for key, *_ in rows})
    return {key: said for key, *said in rows}


def test_every_text_is_there_in_three_languages_and_used():
    known = texts()
    assert len(known) > 40
    for key, said in known.items():
        assert all(said), key
        assert len({frozenset(re.findall(r"\{\w+\}", one)) for one in said}) == 1, key
    named = set(re.findall(r'"([\w.]+)"', CODE))
    assert set(known) == named & set(known)
    assert set(re.findall(r'\bt\(\s*"([^"]+)"', CODE)) <= set(known)


def test_nothing_is_fetched_from_elsewhere_and_no_text_becomes_markup():
    for name, text in FRONT.items():
        assert not set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}, name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write\b|\beval\(", text), name
        for target in re.findall(r"\bfrom \"([^\"]+)\"", text):
            assert target.removeprefix("./") in SCRIPTS or target.removeprefix("../") in SHARED, (name, target)


def test_the_files_are_small():
    assert sum(len(gzip.compress(text.encode())) for text in FRONT.values()) <= 40_000
    for name, text in FRONT.items():
        lines = text.splitlines()
        assert len(lines) <= 500, name
        assert max(map(len, lines)) <= 120, name


def test_every_style_is_used():
    sheet = re.sub(r"/\*.*?\*/|\{[^{}]*\}|\"[^\"]*\"", "", FRONT["front.css"], flags=re.DOTALL)
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r'"[^"\n]*"|`[^`]*`', CODE)) + FRONT["index.html"]))
    assert set(re.findall(r"[.#]([a-zA-Z][\w-]*)", sheet)) <= words
