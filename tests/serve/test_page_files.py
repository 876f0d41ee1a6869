"""The page as files: small, self-contained, honest, and complete in both languages."""

from __future__ import annotations

import gzip
import re

from glassformer.page import page_files

PAGE = page_files()
SCRIPTS = {name: text for name, text in PAGE.items() if name.endswith(".js")}


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
    assert max(len(text.splitlines()) for name, text in SCRIPTS.items() if name != "texts.js") <= 320


def test_every_text_is_there_in_both_languages():
    rows = re.findall(r"^ .*$", PAGE["texts.js"].split("export const TEXTS = {")[1].split("\n};")[0], re.MULTILINE)
    entries = re.findall(r'"([^"]+)": \["((?:[^"\\]|\\.)*)", "((?:[^"\\]|\\.)*)"\]', "\n".join(rows))
    texts = {name: (english, chinese) for name, english, chinese in entries}
    assert len(texts) == len(entries) > 200
    for name, (english, chinese) in texts.items():
        assert english, name
        assert chinese, name
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), name
    used = {key for text in SCRIPTS.values() for key in re.findall(r'\bt\("([^"]+)"', text)}
    assert used <= set(texts)
    families = {key for text in SCRIPTS.values() for key in re.findall(r"\bt\(`([a-z]+\.)\$", text)}
    assert all(any(name.startswith(family) for name in texts) for family in families)
