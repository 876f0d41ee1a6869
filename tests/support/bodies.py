"""Requests to every route that takes a body, each of its own and each answered by 200, for the tests to change."""

from __future__ import annotations

from typing import Any

import httpx
from documents import DOCUMENTS

ASKED = {"q": "one two", "source": "en", "target": "de"}
WAY, WORDS = {"source": "en", "target": "de"}, {"text": "one two"}
DEEPL = {"text": ["one two"], "source_lang": "EN", "target_lang": "DE"}
SWAP = {"changes": [{"kind": "swap_token", "position": 0, "id": 5}, {"kind": "temperature", "value": 0.5}]}
FORM = {"headers": {"Content-Type": "multipart/form-data; boundary=limit"}}  # the same each time
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "translate": ("/translate", {"json": ASKED | {"alternatives": 1}}),
    "translate, html": ("/translate", {"json": ASKED | {"q": ["<p>one <b>two</b></p>"], "format": "html"}}),
    "translate, form": ("/translate", {"data": ASKED | {"source": "auto"}}),
    "translate, events": ("/translate", {"json": ASKED, "headers": {"Accept": "text/event-stream"}}),
    **{
        f"translate_file, {kind}": ("/translate_file", {"files": {"file": (f"a{kind}", text)}, "data": WAY, **FORM})
        for kind, text in DOCUMENTS.items()
    },
    "detect": ("/detect", {"json": {"q": "one two"}}),
    "DeepL": ("/v2/translate", {"json": DEEPL | {"tag_handling": "html"}}),
    "DeepL, form": ("/v2/translate", {"data": DEEPL}),
    "api/translate": ("/api/translate", {"json": WORDS}),
    "api/trace": ("/api/trace", {"json": WORDS | SWAP | {"beam": 2, "padding": 1, "prefix": [4]}}),
    "api/whatif": ("/api/whatif", {"json": WORDS | SWAP}),
    "api/words": ("/api/words", {"json": {"q": "one two", **WAY}}),
    "api/alternatives": ("/api/alternatives", {"json": WORDS | {"direction": "en-de", "prefix": "zwei"}}),
    "api/labs": ("/api/labs/sinusoids", {"json": {"seed": 1, "lang": "zh"}}),
}


def kept_headers(request: httpx.Request) -> dict[str, str]:
    """What a request says of its body and of the answer that it wants."""
    return {name: request.headers[name] for name in ("content-type", "accept") if name in request.headers}
