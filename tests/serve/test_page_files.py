"""The page as files: small, self-contained, honest, complete in both languages, without a part that nothing uses."""

from __future__ import annotations

import gzip
import re

from glassformer.page import page_files

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
    assert max(len(text.splitlines()) for name, text in SCRIPTS.items() if name != "texts.js") <= 450
    for name, text in PAGE.items():
        assert max(map(len, text.splitlines())) <= 120, name


def test_every_text_is_there_in_both_languages():
    for key, (english, chinese) in texts().items():
        assert english, key
        assert chinese, key
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), key
    used = set(re.findall(r'\bt\(\s*"([^"]+)"', CODE))
    assert used <= set(texts())
