"""Placeholders of every kind come through every way of a text whole, or it is reported that the text stays as it is."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from pathlib import Path

import polib
import pytest
from placeholder_strings import assert_valid, make_samples, po_file

from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.directions import box_directions
from glassformer.deploy.server.libre import LibreApi
from glassformer.deploy.server.queue import Queue
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.pipelines.documents import translate_bytes
from glassformer.pipelines.polyglot import Polyglot

SAMPLES = make_samples(int(os.environ.get("GLASSFORMER_STRINGS", "24")))  # 2000 take half an hour
AT_ONCE = 200  # of a request
LANGUAGES = pytest.mark.parametrize("to", ["de", "zh"])


@pytest.fixture(scope="module")
def polyglot() -> Polyglot:
    return Polyglot()


@pytest.fixture(scope="module")
def api() -> Iterator[LibreApi]:
    queue = Queue(threads=1)
    yield LibreApi(TranslationService(box_directions("cpu", "en-de"), queue))
    queue.close()


@LANGUAGES
def test_in_texts(polyglot: Polyglot, to: str) -> None:
    made = polyglot.translator("en", to).details([one.text for one in SAMPLES])
    pairs = list(zip(SAMPLES, made, strict=True))
    assert [(one.text, found.text) for one, found in pairs if not one.is_whole(found.text)] == []
    assert [one.text for one, found in pairs if one.is_left(found.text) and not found.notes] == []


@LANGUAGES
def test_in_messages(polyglot: Polyglot, to: str) -> None:
    made, _ = translate_bytes(Path("x.po"), po_file(SAMPLES), polyglot.translator("en", to))
    found = polib.pofile(made.decode())
    assert [one.msgid for one in found] == [one.text for one in SAMPLES]
    pairs = [(one, entry.msgstr) for one, entry in zip(SAMPLES, found, strict=True) if entry.msgstr]
    assert [(one.text, text) for one, text in pairs if not one.is_whole(text)] == []
    assert_valid(made)


@LANGUAGES
@pytest.mark.parametrize("form", ["text", "html"])
def test_in_answers(api: LibreApi, to: str, form: str) -> None:
    for at in range(0, len(SAMPLES), AT_ONCE):
        some = SAMPLES[at : at + AT_ONCE]
        fields = {"q": [one.text for one in some], "source": "en", "target": to, "format": form}
        made = api.translate(fields, RequestState())["translatedText"]
        read = html.unescape if form == "html" else str
        assert [(one.text, text) for one, text in zip(some, made, strict=True) if not one.is_whole(text, read)] == []
