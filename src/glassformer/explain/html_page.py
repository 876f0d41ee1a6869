"""A trace as one HTML file that opens from disk, with the page's own files and all the numbers inside.

A page opened from disk may load no module from another file. So every module of the page becomes an entry of an import
map, as a data URL of its text, and the modules import each other by the names in that map.
"""

from __future__ import annotations

import base64
import html
import json
import re
from typing import Any

from glassformer.explain.schematic import schematics
from glassformer.explain.weights import Weights
from glassformer.model import Model
from glassformer.page import page_files

MOST_WEIGHTS = 48_000_000  # bytes; larger weights are left out, and the page says so
PREFIX = "glassformer/"
ENTRY = '<script type="module" src="static/main.js"></script>'
_STYLE = re.compile(r"""<link rel="stylesheet" href="static/([^"]+)">""")


def standalone(manifest: dict[str, Any], values: bytes | memoryview, weights: Weights, model: Model) -> str:
    """The page with everything inside: its files and the run, without weights that are too large."""
    small = sum(row["bytes"] for row in manifest["weights"]) <= MOST_WEIGHTS
    run = {
        "manifest": manifest,
        "blob": base64.b64encode(values).decode(),
        "weights": base64.b64encode(weights.blob()).decode() if small else None,
        "schematics": {language: schematics(model, language) for language in ("en", "zh")},
    }
    # Within a script, only the less-than sign could end it early.
    embedded = json.dumps(run, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    texts = page_files()
    page = _STYLE.sub(lambda link: f"<style>\n{texts[link[1]]}</style>", texts["index.html"])
    modules = {PREFIX + name: data_url(text) for name, text in texts.items() if name.endswith(".js")}
    scripts = (
        f"<script>window.GLASSFORMER_EMBEDDED = {embedded};</script>\n"
        f'<script type="importmap">{json.dumps({"imports": modules})}</script>\n'
        f'<script type="module">import "{PREFIX}main.js";</script>'
    )
    title = html.escape(f"{manifest['text']} · glassformer")
    page = re.sub(r"<title>.*?</title>", lambda _: f"<title>{title}</title>", page, count=1)
    assert ENTRY in page
    return page.replace(ENTRY, scripts)


def data_url(text: str) -> str:
    """A module as a data URL, its imports renamed."""
    source = text.replace('"./', f'"{PREFIX}')
    return "data:text/javascript;charset=utf-8;base64," + base64.b64encode(source.encode()).decode()
