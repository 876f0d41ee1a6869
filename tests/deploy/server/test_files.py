"""Documents are uploaded and their translations downloaded: formats, names, limits."""

from __future__ import annotations

import re
import socket

import httpx
import pytest
from live_page import toy_service
from sockets import PATIENCE, post_bytes, until
from visitor import Live

from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.files import DownloadStore
from glassformer.deploy.server.queue import Queue

DOCUMENTS = {
    "a.txt": ("- one two\n\n\tthree\n", "- zwei eins\n\n\tdrei\n"),
    "a.MD": ("# one two\n\n`one` [three](one.md)\n", "# zwei eins\n\n`one` [drei](one.md)\n"),
    "a.html": ('<p class="one">one two<br>six</p>', '<p class="one">zwei eins<br>sechs</p>'),
    "a.srt": (
        "1\n00:00:01,000 --> 00:00:02,000\none two\n\n",
        "1\n00:00:01,000 --> 00:00:02,000\nzwei eins\n\n",
    ),
    "a.po": ('msgid "one two"\nmsgstr ""\n', 'msgid "one two"\nmsgstr "zwei eins"\n'),
}


def send(address: str, name: str, content: bytes, **fields: str) -> httpx.Response:
    asked = {"source": "en", "target": "de"} | fields
    return httpx.post(f"{address}/translate_file", files={"file": (name, content)}, data=asked, timeout=PATIENCE)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_comes_back_as_what_it_was(live, name):
    source, expected = DOCUMENTS[name]
    answer = send(live.address, name, source.encode())
    assert answer.status_code == 200, answer.text
    place = answer.json()["translatedFileUrl"]
    assert place.startswith(f"{live.address}/download_file/")
    assert place.endswith(f".a_de.{name.partition('.')[2]}")
    found = httpx.get(place)
    assert found.text == expected
    assert f"a_de.{name.partition('.')[2]}" in found.headers["content-disposition"]
    assert "sandbox" in found.headers["content-security-policy"]
    assert found.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({"name": "a.pdf"}, "Invalid request: file format not supported"),
        ({"name": "a"}, "Invalid request: file format not supported"),
        ({"name": ".txt/"}, "Invalid request: file format not supported"),
        ({"name": "a.txt.gz", "content": b"\x1f\x8b\x08\x00"}, "Invalid request: file format not supported"),
        ({"name": "a.txt", "content": b"\x1f\x8b\x08\x00"}, "Invalid request: no text (byte 4 is 0)"),
        ({"name": "a.md", "content": b"\xff"}, "Invalid request: not UTF-8 (byte 1 is 0xff)"),
        ({"name": "a.srt", "content": b"one two"}, "Invalid request: no SubRip file"),
        ({"name": "a.txt", "source": ""}, "Invalid request: missing source parameter"),
        ({"name": "a.txt", "target": "fr"}, "fr is not supported"),
        ({"name": "a.txt", "source": "de", "target": "en"}, "English (en) is not available as a target language from"),
    ],
)
def test_what_is_wrong_with_a_document_is_said(live, sent, error):
    answer = send(live.address, **{"content": b"one two", **sent})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(error)


def test_no_file_no_form_and_too_much(live):
    post, place = httpx.post, f"{live.address}/translate_file"
    for answer in (post(place, data={"source": "en"}), post(place, data={"file": "a.txt"}), post(place)):
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid request: missing file parameter"})
    broken = post(place, content=b"--x\r\nrubbish", headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert broken.status_code == 400
    assert broken.json()["error"].startswith("Invalid ")
    none = post(place, content=b"", headers={"Content-Type": "multipart/form-data"})
    assert none.json() == {"error": "Invalid form: Missing boundary in multipart."}
    large = send(live.address, "a.txt", b"one " * 300_000)
    assert (large.status_code, list(large.json())) == (413, ["error"])


def test_text_as_a_multipart_form(live):
    parts = {name: (None, value) for name, value in {"q": "one two", "source": "en", "target": "de"}.items()}
    assert httpx.post(f"{live.address}/translate", files=parts).json() == {"translatedText": "zwei eins"}


@pytest.mark.parametrize(
    "name",
    ["../../../etc/passwd.txt", "C:\\boot.ini.txt", "/etc/a.txt", "..txt", "\0a.txt", "ein\r\nHeader: x.txt", "名.txt"],
)
def test_a_name_is_no_path_and_no_header(live, name):
    answer = send(live.address, name, b"one two")
    assert answer.status_code == 200, answer.text
    place = answer.json()["translatedFileUrl"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}\.[A-Za-z0-9_-][A-Za-z0-9_.-]*", place.rpartition("/")[2])
    found = httpx.get(place)
    assert found.text == "zwei eins"
    assert "header" not in found.headers
    assert not re.search(r"[/\\]", found.headers["content-disposition"])


def test_unknown_downloads_are_not_found(live):
    for name in ("x", "..%2f..%2fetc%2fpasswd", "%2e%2e", "a" * 5000):
        assert httpx.get(f"{live.address}/download_file/{name}").status_code == 404
    settings = httpx.get(f"{live.address}/frontend/settings").json()
    assert settings["filesTranslation"] is True
    assert settings["supportedFilesFormat"] == [".htm", ".html", ".markdown", ".md", ".po", ".srt", ".txt"]


def test_the_download_store_is_bounded_in_number_bytes_and_time():
    now = [0.0]
    shelf = DownloadStore(max_files=4, max_bytes=100, seconds=10, clock=lambda: now[0])
    mine = shelf.add("a", b"x" * 10, "ann")
    theirs = [shelf.add("a", b"x" * 40, "bob") for _ in range(3)]
    assert (len(shelf), shelf.size) == (3, 90)
    assert shelf.get(theirs[0]) is None  # whoever has most loses their oldest
    assert shelf.get(mine) is not None
    for _ in range(9):
        last = shelf.add("a", b"", "eve")
    assert len(shelf) == 4
    assert shelf.get(last) is not None
    now[0] = 10
    assert shelf.get(mine) is None
    assert (len(shelf), shelf.size) == (0, 0)


def test_html_parsed_in_the_sandbox_is_translated_alike(live):
    asked = {"source": "en", "target": "de", "format": "html"}
    long = '<p>one <b class="two">two</b></p>\n' * 700
    made = httpx.post(f"{live.address}/translate", json={"q": [long, "<i>six</i>"], **asked}, timeout=PATIENCE).json()
    short = httpx.post(f"{live.address}/translate", json={"q": long[:33], **asked}, timeout=PATIENCE).json()
    assert made["translatedText"] == [f"{short['translatedText']}\n" * 700, "<i>sechs</i>"]


def test_a_document_is_abandoned_when_its_client_disconnects(translator):
    """The model is at work for nobody else: what was asked for is not translated to its end."""
    queue = Queue(threads=1)
    words = ("one", "two", "three", "four", "five", "six")
    lines = "\n\n".join(" ".join(words[(n // 6**k) % 6] for k in range(9)) for n in range(20_000))
    with Live(create_app(None, service=toy_service(translator, queue))) as live:
        document = {"files": {"file": ("a.txt", lines.encode())}, "data": {"source": "en", "target": "de"}}
        with socket.create_connection(live.socket.getsockname(), PATIENCE) as sent:
            sent.sendall(post_bytes("/translate_file", **document))
            until(lambda: queue.sentences)
        until(lambda: not live.server.server_state.tasks)
    assert queue.sentences < 20_000
    assert queue.waiting == 0
