"""Translations as server-sent events, over real sockets."""

from __future__ import annotations

import json

import httpx
import pytest
from live_page import toy_service
from sockets import PATIENCE, until
from visitor import Live

from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.libre import Paragraph, growing_groups, paragraphs
from glassformer.deploy.server.queue import Queue
from glassformer.pipelines.language.invariants import Invariants

ACCEPT = {"Accept": "text/event-stream"}
TEXT = "one two\n\n  three. four\n```\nfive\n\nsix\n```\nsix\n"


def asked(q, **more):
    return {"q": q, "source": "en", "target": "de"} | more


def events(address, body):
    with httpx.stream("POST", f"{address}/translate", json=body, headers=ACCEPT, timeout=PATIENCE) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        content = answer.read().decode()
    assert content.endswith("\n\n")
    found = []
    for block in content[:-2].split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.parametrize(
    "body",
    [
        asked(TEXT),
        asked([TEXT, "", "two one", "42", "six\r\nfive"], source="auto"),
        asked("one\ntwo", alternatives=2),
        asked(["<p>one</p>\n<p>two</p>"], format="html"),
        asked("ein\u2028zwei\n" * 40),
    ],
    ids=["a text", "several", "alternatives", "html", "many"],
)
def test_the_last_event_is_the_plain_answer_and_the_parts_are_its_text(live, body):
    plain = httpx.post(f"{live.address}/translate", json=body, timeout=PATIENCE).json()
    *parts, (last, whole) = events(live.address, body)
    assert (last, whole) == ("done", plain)
    assert {name for name, _ in parts} == {"part"}
    assert [one["index"] for _, one in parts] == sorted(one["index"] for _, one in parts)
    texts = plain["translatedText"] if isinstance(body["q"], list) else [plain["translatedText"]]
    for index, text in enumerate(texts):
        assert "".join(one["translatedText"] for _, one in parts if one["index"] == index) == text


def test_there_is_an_event_for_each_paragraph(live):
    parts = [
        one["translatedText"] for name, one in events(live.address, asked("one two\n\nsix\nfive")) if name == "part"
    ]
    assert parts == ["zwei eins\n\n", "sechs\n", "fünf"]
    assert paragraphs(TEXT, "en") == [
        "one two\n\n  ",
        "three. four\n",
        "```\n",
        "five\n\n",
        "six\n",
        "```\n",
        "six\n",
    ]


def test_errors_before_the_first_event_are_plain_responses(live):
    for body, status in ((asked("one", target="fr"), 400), ({}, 400)):
        answer = httpx.post(f"{live.address}/translate", json=body, headers=ACCEPT)
        assert answer.status_code == status
        assert answer.json() == httpx.post(f"{live.address}/translate", json=body).json()
    described = httpx.get(f"{live.address}/openapi.json").json()["paths"]["/translate"]["post"]["responses"]["200"]
    assert set(described["content"]) == {"application/json", "text/event-stream"}


def test_translation_stops_when_the_client_disconnects(translator):
    queue = Queue(threads=1)
    words = ("one", "two", "three", "four", "five", "six")
    text = "\n".join(" ".join(words[(n // 6**k) % 6] for k in range(7)) for n in range(5000))
    with Live(create_app(None, service=toy_service(translator, queue))) as live:
        with httpx.stream(
            "POST", f"{live.address}/translate", json=asked(text), headers=ACCEPT, timeout=PATIENCE
        ) as answer:
            assert next(answer.iter_lines()) == "event: part"
        until(lambda: not live.server.server_state.tasks)
        assert queue.sentences < 5000
        until(lambda: queue.waiting == 0)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/translate", asked("one boom"), "error"),
        ("/translate", asked(["one", "boom"]), "error"),
        ("/v2/translate", {"text": ["one boom"], "source_lang": "EN", "target_lang": "DE"}, "message"),
    ],
    ids=["a text", "several", "as DeepL"],
)
def test_an_unforeseen_error_is_a_fault_in_response_metrics_and_log(translator, monkeypatch, path, body, said):
    monkeypatch.setattr("glassformer.pipelines.text.sentence_translator.Invariants", failing)
    lines = []
    with Live(create_app(None, service=toy_service(translator), log=lines.append)) as live:
        answer = httpx.post(f"{live.address}{path}", json=body, timeout=PATIENCE)
        assert answer.status_code == 500
        assert answer.json() == {said: "something went wrong in the server; its log says what"}
        assert answer.headers["x-content-type-options"] == "nosniff"
        counted = httpx.get(f"{live.address}/metrics", timeout=PATIENCE).text
    assert f'glassformer_requests_total{{path="{path}",status="500"}} 1.0' in counted
    assert '"499"' not in counted
    assert [json.loads(line)["status"] for line in lines] == [500, 200]


def test_an_unforeseen_error_in_a_stream_is_an_event(translator, monkeypatch):
    monkeypatch.setattr("glassformer.pipelines.text.sentence_translator.Invariants", failing)
    with Live(create_app(None, service=toy_service(translator))) as live:
        first, *_, last = events(live.address, asked("one\ntwo\nboom"))
    assert first[0] == "part"
    assert last == ("error", {"error": "something went wrong in the server; its log says what"})


def failing(sentence, *given):
    if "boom" in sentence:
        raise ZeroDivisionError
    return Invariants(sentence, *given)


def test_closing_the_queue_ends_a_stream_with_an_event(translator):
    queue = Queue(threads=1)
    text = "\n".join(f"one two {i}" for i in range(2000))
    with (
        Live(create_app(None, service=toy_service(translator, queue))) as live,
        httpx.stream("POST", f"{live.address}/translate", json=asked(text), headers=ACCEPT, timeout=PATIENCE) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines) == "event: part"
        queue.close()
        *_, name, data, _ = lines
    assert name == "event: error"
    assert "stopping" in json.loads(data.removeprefix("data: "))["error"]


def test_later_paragraphs_are_translated_together():
    paragraph = Paragraph(0, "en", "x" * 100)
    assert [len(group) for group in growing_groups([paragraph] * 200)] == [1, 2, 4, 8, 16, 32, 40, 40, 40, 17]
    assert [len(group) for group in growing_groups([Paragraph(0, "en", "x" * 9000)] * 3)] == [1, 1, 1]
