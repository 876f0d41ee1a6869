"""API keys and rate limits, metrics and the log."""

from __future__ import annotations

import json
import logging
import os
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from live_page import toy_service
from sockets import PATIENCE
from visitor import Live

from glassformer.common.errors import ConfigError
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.keys import MAX_WRONG, AccessDenied, ApiKeys, add_key, read_keys, remove_key

ASKED = {"q": "one two", "source": "en", "target": "de"}


def test_a_key_is_stored_as_its_hash(tmp_path):
    file = tmp_path / "keys.json"
    key = add_key(file, "ann", 5)
    assert key not in file.read_text()
    assert [(one.name, one.per_minute) for one in read_keys(file)] == [("ann", 5)]
    with pytest.raises(ConfigError, match="has a key `ann` already"):
        add_key(file, "ann")
    with pytest.raises(ConfigError, match="no key `bob`; it has ann"):
        remove_key(file, "bob")
    assert ApiKeys(file).check(key) == "ann"


@pytest.mark.parametrize(
    "content", ["{}", "", "{}x", "[1]", '[{"name": "a"}]', '[{"name": "a", "hash": 1}]', '[{"name": 1, "hash": "a"}]']
)
def test_a_file_that_holds_no_keys_is_refused(tmp_path, content):
    (tmp_path / "keys.json").write_text(content)
    with pytest.raises(ConfigError, match=r"keys\.json"):
        ApiKeys(tmp_path / "keys.json")
    with pytest.raises(ConfigError, match="glassformer keys add"):
        ApiKeys(tmp_path / "none.json")


def test_rate_limit_and_reloading(tmp_path):
    file, now = tmp_path / "keys.json", [100.0]
    key, free = add_key(file, "ann", 2), add_key(file, "bob")
    gate = ApiKeys(file, lambda: now[0])
    assert [gate.check(key), gate.check(key)] == ["ann", "ann"]
    with pytest.raises(AccessDenied, match="Slowdown: 2 per 1 minute"):
        gate.check(key)
    assert {gate.check(free) for _ in range(9)} == {"bob"}
    now[0] += 60
    assert gate.check(key) == "ann"
    remove_key(file, "ann")
    for wrong in (key, "x", "\ud800", None, ""):
        with pytest.raises(AccessDenied) as refused:
            gate.check(wrong)
        assert refused.value.status == 403


@pytest.mark.parametrize(
    "content",
    [None, b"", b"[1]", b"\xff", b"[" * 100_000, os.mkfifo, lambda path: path.symlink_to("/dev/zero")],
    ids=lambda one: repr(one)[:14],
)
def test_a_file_that_cannot_be_read_for_a_moment_keeps_the_last_keys(tmp_path, monkeypatch, content):
    logged = []
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "warning", lambda *words: logged.append(words))
    file = tmp_path / "keys.json"
    key, gone = add_key(file, "ann"), add_key(file, "bob")
    gate = ApiKeys(file)
    aside = file.rename(tmp_path / "aside")
    if callable(content):
        content(file)
    elif content is not None:
        file.write_bytes(content)
    for _ in range(3):
        assert gate.check(key) == "ann"
        with pytest.raises(AccessDenied, match="Invalid"):
            gate.check("wrong")
    assert len(logged) == 1
    aside.rename(file)  # as it was, to the time and the size
    assert gate.check(gone) == "bob"
    remove_key(file, "bob")
    with pytest.raises(AccessDenied, match="Invalid"):
        gate.check(gone)


def test_keys_that_are_added_and_removed_at_once_are_all_there(tmp_path):
    file, names = tmp_path / "keys.json", [f"n{i}" for i in range(20)]
    for name in names:
        add_key(file, f"old {name}")
    with ThreadPoolExecutor(8) as threads:  # a lock holds between them as between processes
        removed = [threads.submit(remove_key, file, f"old {name}") for name in names]
        keys = list(threads.map(lambda name: add_key(file, name), names))
    assert [one.result() for one in removed] == [None] * 20
    assert [ApiKeys(file).check(key) for key in keys] == names
    assert len(read_keys(file)) == 20


def test_a_network_that_sends_many_wrong_keys_waits_with_keys_that_are_new_from_there(tmp_path):
    file, now = tmp_path / "keys.json", [100.0]
    key, other = add_key(file, "ann"), add_key(file, "bob")
    gate = ApiKeys(file, lambda: now[0])

    def status(given: str, host: str, count: int = 1) -> list[object]:
        found = []
        for _ in range(count):
            try:
                found.append(gate.check(given, host))
            except AccessDenied as error:
                found.append((error.status, (error.headers or {}).get("Retry-After")))
        return found

    for host, same, elsewhere in (
        ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
        ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"),
        ("by no address", "by no address", ""),
    ):
        assert status(key, host) == ["ann"]
        assert status("wrong", host, MAX_WRONG + 2) == [(403, None)] * MAX_WRONG + [(429, "60")] * 2
        assert status(key, same) == ["ann"]  # has been good from there
        assert status(other, same) == [(429, "60")]  # else a guess that is right would be told
        assert status("wrong", elsewhere) + status(other, elsewhere) == [(403, None), "bob"]
    now[0] += 60
    assert status("wrong", "192.0.2.1") + status(other, "192.0.2.1") == [(403, None), "bob"]


def test_a_server_with_keys(tmp_path, translator):
    key, lines = add_key(tmp_path / "keys.json", "ann", 3), list[str]()
    service = toy_service(translator)
    app = create_app(None, service=service, api_keys=ApiKeys(tmp_path / "keys.json"), log=lines.append)
    with Live(app) as live:

        def post(path: str = "/translate", **options: object) -> httpx.Response:
            return httpx.post(live.address + path, timeout=60, **options)

        assert post(json=ASKED).json() == {"error": "Please contact the server operator to get an API key"}
        assert (post(json={**ASKED, "api_key": "no"}).status_code, post(json=ASKED).status_code) == (403, 403)
        assert post(json={**ASKED, "api_key": key}).json() == {"translatedText": "zwei eins"}
        deepl = {"text": ["one two"], "target_lang": "DE", "source_lang": "EN"}
        held = {"Authorization": f"DeepL-Auth-Key {key}"}
        assert post("/v2/translate", json=deepl, headers=held).json()["translations"][0]["text"] == "zwei eins"
        assert post("/v2/translate", json=deepl).json().keys() == {"message"}
        with socket.create_connection(live.socket.getsockname(), PATIENCE) as early:
            head = b"POST /v2/translate HTTP/1.1\r\nHost: localhost\r\nAuthorization: DeepL-Auth-Key no\r\n"
            early.sendall(head + b"Content-Length: 1000\r\n\r\n")  # and no body
            assert early.recv(12) == b"HTTP/1.1 403"
        assert post(json=ASKED, headers={"Authorization": f"Bearer {key}"}).status_code == 200
        slow = post(json={**ASKED, "api_key": key})
        assert (slow.status_code, slow.json()["error"]) == (429, "Slowdown: 3 per 1 minute")
        for free in ("/languages", "/health", "/frontend/settings"):
            assert httpx.get(live.address + free).status_code == 200
        told = httpx.get(f"{live.address}/metrics").text
    assert 'glassformer_requests_total{path="/translate",status="200"} 2.0' in told
    assert 'glassformer_requests_total{path="/translate",status="403"} 3.0' in told
    assert "glassformer_sentences_run 1.0" in told
    assert "glassformer_sentences_kept 2.0" in told
    assert "glassformer_waiting_tokens 0.0" in told
    logged = [json.loads(line) for line in lines]
    assert [(one["path"], one["status"]) for one in logged][:2] == [("/translate", 403), ("/translate", 403)]
    assert key not in "".join(lines)
