"""Work for disconnected clients stops, over real sockets and through the middleware."""

from __future__ import annotations

import threading

import httpx
import pytest
from fastapi import FastAPI, Request
from sockets import PATIENCE, post, until
from visitor import SENTENCE, Live

import glassformer as gf
from glassformer.decode.kernels import available_kernels
from glassformer.decode.program import TOGETHER
from glassformer.deploy.server.admission import AdmissionControl
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.directions import translator_directions
from glassformer.deploy.server.errors import ClientDisconnected, add_error_handlers
from glassformer.deploy.server.middleware import GuardMiddleware


class Work:
    """Work that goes on until it is let go, or nobody wants it any more."""

    def __init__(self):
        self.begun, self.ended, self.open = [], [], threading.Event()
        self.admission = AdmissionControl(max_waiting=256, concurrency=1)

    def app(self):
        app = FastAPI()
        app.add_middleware(GuardMiddleware)
        add_error_handlers(app)

        @app.post("/turn/{name}")
        async def work(request: Request, name: str, asked: dict[str, str]) -> str:
            return await self.admission.run(request, lambda state: self.do(name, state))

        return app

    def do(self, name, state):
        self.begun.append(name)
        try:
            while not self.open.wait(0.005):
                state.check()
            return "done"
        finally:
            self.ended.append(name)


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def server(work):
    with Live(work.app()) as live:
        yield live
        work.open.set()


def test_running_work_stops_when_its_client_disconnects(work, server):
    with post(server, "/turn/first"):
        until(lambda: work.begun == ["first"])
    until(lambda: work.ended == ["first"])
    work.open.set()
    assert httpx.post(f"{server.address}/turn/second", json={}, timeout=PATIENCE).json() == "done"
    assert work.admission.waiting == 0


def test_a_waiting_request_of_a_disconnected_client_never_starts(work, server):
    first = post(server, "/turn/first")
    until(lambda: work.begun == ["first"])
    abandoned = [post(server, f"/turn/{n}") for n in range(60)]
    until(lambda: work.admission.waiting == 61)
    for one in abandoned:
        one.close()
    until(lambda: work.admission.waiting == 1)
    last = post(server, "/turn/last")
    until(lambda: work.admission.waiting == 2)
    work.open.set()
    for one in (first, last):
        assert one.recv(4096).startswith(b"HTTP/1.1 200")
        one.close()
    assert work.begun == ["first", "last"]


def test_abandoned_traces_do_not_delay_others(translator):
    """The real thing: of what was given up, little is computed before the one that is wanted."""
    words = ("one", "two", "three", "four", "five", "six")
    texts = [" ".join(words[(n // 6**k) % 6] for k in range(12)) for n in range(61)]
    with Live(app := create_app(translator_directions(translator, "model"))) as live:
        for one in [post(live, "/api/trace", text=text, beam=8) for text in texts[:60]]:
            one.close()
        answer = httpx.post(f"{live.address}/api/trace", json={"text": texts[60], "beam": 8}, timeout=PATIENCE)
        computed = len(app.state.trace_api.runs) - 1
    assert answer.status_code == 200
    assert computed < 30, computed


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("way", ["trace", "what_if", "translate"])
def test_an_error_between_steps_ends_the_search_at_once(translator, way, beam):
    def run(**more):
        if way == "trace":
            return gf.trace(translator, SENTENCE, beam=beam, **more).manifest()
        if way == "what_if":
            return gf.what_if(translator, SENTENCE, [{"kind": "remove_scale"}], beam=beam, **more).as_dict()
        return translator.translate([SENTENCE], beam=beam, **more)

    calls = []
    assert run(between_steps=lambda: calls.append(1)) == run()
    whole, written = len(calls), len(translator.translate([SENTENCE], beam=beam)[0][0].tokens)
    together = TOGETHER if way == "translate" and beam > 1 and available_kernels() else 1
    assert together * whole >= written

    def leave():
        calls.append(1)
        if len(calls) == whole // 2:
            raise ClientDisconnected

    calls.clear()
    with pytest.raises(ClientDisconnected):
        run(between_steps=leave)
    assert len(calls) == whole // 2
