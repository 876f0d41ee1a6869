"""Pages of other origins may call the routes for programs only; and the timeout of requests."""

from __future__ import annotations

import threading

import httpx
import pytest
from live_page import toy_service
from sockets import PATIENCE, until
from visitor import Live

from glassformer.common.errors import ConfigError
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.directions import translator_directions
from glassformer.deploy.server.listen import check_origin
from glassformer.deploy.server.queue import BatchAbandoned, Queue

ASKED = {"q": "one two", "source": "en", "target": "de"}
HERE, OTHER = "https://example.org", "https://evil.example"


def served(translator, **options):
    return create_app(translator_directions(translator, "model"), service=toy_service(translator), **options)


def ask(live, origin, path="/translate", method="POST", **more):
    body = {"text": "one"} if path.startswith("/api") else ASKED
    return httpx.request(method, live.address + path, headers={"Origin": origin, **more}, json=body, timeout=PATIENCE)


@pytest.fixture(scope="module")
def shared(translator):
    with Live(served(translator, origins=(HERE,))) as live:
        yield live


@pytest.fixture(scope="module")
def open_to_pages(translator):
    with Live(served(translator, origins=("*",))) as live:
        yield live


def preflight(live, origin, path="/translate"):
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    return ask(live, origin, path, "OPTIONS", **asked)


def test_an_allowed_origin_reads_the_answers(shared):
    before = preflight(shared, HERE)
    assert (before.status_code, before.headers["access-control-allow-origin"]) == (200, HERE)
    answer = ask(shared, HERE)
    assert answer.json() == {"translatedText": "zwei eins"}
    assert answer.headers["access-control-allow-origin"] == HERE
    assert "credentials" not in str(answer.headers)
    wrong = httpx.post(f"{shared.address}/translate", headers={"Origin": HERE}, json={})
    assert (wrong.status_code, wrong.headers["access-control-allow-origin"]) == (400, HERE)
    large = httpx.post(f"{shared.address}/translate", headers={"Origin": HERE}, content=b" " * 2_100_000)
    assert (large.status_code, large.headers["access-control-allow-origin"]) == (413, HERE)


def test_other_origins_are_refused(shared, live):
    assert ask(shared, OTHER).status_code == 403
    assert preflight(shared, OTHER).status_code == 400
    assert "access-control-allow-origin" not in ask(shared, OTHER).headers
    for origin in (HERE, OTHER, "null"):  # nobody is, where none is named
        answer = ask(live, origin)
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert preflight(live, origin).status_code in (403, 405)


def test_all_origins_never_include_the_routes_of_the_page(open_to_pages):
    assert ask(open_to_pages, OTHER).headers["access-control-allow-origin"] == "*"
    assert ask(open_to_pages, OTHER, "/v2/translate").headers["access-control-allow-origin"] == "*"
    for path in ("/api/translate", "/api/trace", "/api/labs/scaling"):
        answer = ask(open_to_pages, OTHER, path)
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]
    for path in ("/", "/api/weights", "/api/model", "/metrics"):
        answer = httpx.get(open_to_pages.address + path, headers={"Origin": OTHER})
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert ask(open_to_pages, OTHER, Host="evil.example").status_code == 403  # a name that was pointed here


@pytest.mark.parametrize(
    "given",
    ["example.org", "https://example.org/", "ftp://x", "null", "", "https://a b", "http://x:y", "https://[", "**"],
)
def test_malformed_origins_are_refused(given):
    with pytest.raises(ConfigError, match=r"names no site; say one such as https://example\.org"):
        check_origin(given)
    assert [check_origin(one) for one in ("*", "http://localhost:3000")] == ["*", "http://localhost:3000"]


class Held(Queue):
    """A queue whose batches run until they are let go, or nobody wants them."""

    def __init__(self) -> None:
        self.go = threading.Event()
        super().__init__(threads=1)

    def _run(self, kind, batch):
        while not self.go.wait(0.01):
            if not any(job.state.active for job in batch):
                raise BatchAbandoned
        return super()._run(kind, batch)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_request_beyond_the_timeout_leaves_the_queue(translator, accept):
    queue = Held()
    with Live(create_app(None, service=toy_service(translator, queue), timeout=0.3)) as live:
        head = {"Accept": accept}
        several = ASKED | {"q": ["one two", "six"]}
        late = httpx.post(f"{live.address}/translate", json=several, headers=head, timeout=PATIENCE)
        assert late.status_code == 504
        assert late.json()["error"].startswith("it has taken more than 0.3 seconds")
        deepl = {"text": ["one"], "source_lang": "EN", "target_lang": "DE"}
        assert httpx.post(f"{live.address}/v2/translate", json=deepl, timeout=PATIENCE).status_code == 504
        file = {"file": ("a.txt", b"one two")}
        asked = {"source": "en", "target": "de"}
        sent = httpx.post(f"{live.address}/translate_file", files=file, data=asked, timeout=PATIENCE)
        assert sent.status_code == 504
        until(lambda: queue.waiting == 0)
        queue.go.set()
        answer = {"translatedText": "zwei eins"}  # within that time, unless the machine is busy
        until(lambda: httpx.post(f"{live.address}/translate", json=ASKED, timeout=PATIENCE).json() == answer)
