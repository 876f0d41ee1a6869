"""Slow, idle and aborted connections, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import ExitStack

import httpx
import pytest
from fastapi import FastAPI, Response
from sockets import PATIENCE, rest, until
from visitor import Live

from glassformer.deploy.server.listen import Connection
from glassformer.deploy.server.middleware import GuardMiddleware
from glassformer.deploy.server.responses import chunked_response

HEAD = b"POST /count HTTP/1.1\r\nHost: localhost\r\n"


class Hasty(Connection):
    head_timeout, write_timeout = 0.2, 0.2


def served(read_timeout=PATIENCE):
    app = FastAPI()
    app.add_middleware(GuardMiddleware, read_timeout=read_timeout)
    app.state.counted = 0

    @app.post("/count")
    async def count() -> int:
        app.state.counted += 1
        return app.state.counted

    @app.get("/much")
    async def much() -> Response:
        return chunked_response(bytes(50_000_000), 200, "application/octet-stream", {})

    @app.get("/health")
    @app.post("/late")
    async def late() -> None:
        for _ in range(9):  # turns of the loop, in which the connection's end is read
            await asyncio.sleep(0)

    return app


@pytest.fixture(scope="module")
def server():
    with Live(served(0.2), http=Hasty, timeout_keep_alive=1) as live:
        yield live


@pytest.fixture
def connect(server):
    made = []

    def connect(said: bytes = b"") -> socket.socket:
        made.append(socket.create_connection(server.socket.getsockname(), PATIENCE))
        made[-1].sendall(said)
        return made[-1]

    yield connect
    for one in made:
        one.close()
    until(lambda: not server.server.server_state.connections)


@pytest.mark.parametrize("said", [b"", b"P", HEAD, HEAD + b"X-Slow: "], ids=["nothing", "a letter", "half", "a field"])
def test_an_incomplete_head_times_out(connect, said):
    assert rest(connect(said)) == b""


def test_an_incomplete_second_head_times_out(connect):
    found = rest(connect(HEAD + b"Content-Length: 0\r\n\r\n" + HEAD))
    assert found.count(b"HTTP/1.1 200") == 1


def test_an_incomplete_body_times_out_with_an_error(connect, server):
    before = server.app.state.counted
    found = rest(connect(HEAD + b"Content-Length: 9\r\n\r\n{}"))
    assert found.startswith(b"HTTP/1.1 408")
    assert b'"code":"slow"' in found
    assert server.app.state.counted == before


def test_an_aborted_body_is_not_processed(connect, server):
    before = server.app.state.counted
    connect(HEAD + b"Content-Length: 9\r\n\r\n{}").close()
    until(lambda: not server.server.server_state.tasks)
    assert server.app.state.counted == before


def test_a_client_that_reads_nothing_is_disconnected(connect, server):
    stuck = connect(b"GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(lambda: server.server.server_state.connections)
    stuck.sendall(b"GET /much")  # wins no time
    until(lambda: not server.server.server_state.connections)


def test_a_large_response_arrives_whole():
    with Live(served()) as live:
        assert httpx.get(f"{live.address}/much", timeout=PATIENCE).content == bytes(50_000_000)


class Narrow(Connection):
    max_connections = 8


BODY = HEAD + b"Content-Length: 9\r\n\r\n{}"
STOPS = [
    b"",
    HEAD,
    BODY,
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


@pytest.mark.parametrize("said", STOPS, ids=["idle", "head", "body", "answered", "unread"])
def test_clients_that_stop_anywhere_make_room_for_new_ones(said):
    with Live(served(), http=Narrow) as live, ExitStack() as crowd:
        place = live.socket.getsockname()
        kept = crowd.enter_context(socket.create_connection(place, PATIENCE, ("127.0.0.2", 0)))
        kept.sendall(BODY)
        until(lambda: live.server.server_state.connections)
        for _ in range(3 * Narrow.max_connections):
            crowd.enter_context(socket.create_connection(place, PATIENCE)).sendall(said)
            with socket.create_connection(place, PATIENCE) as other:
                other.sendall(HEAD + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
                assert rest(other).startswith(b"HTTP/1.1 200")
            until(lambda: len(live.server.server_state.connections) <= Narrow.max_connections)
        kept.sendall(b"1234567")  # slow as well, but its network has no more than this one
        assert kept.recv(12) == b"HTTP/1.1 200"


def test_one_more_connection_takes_as_many_calls_beside_hundreds():
    def calls(limit: int) -> float:
        counted = list[str]()
        threading.setprofile(lambda frame, event, arg: counted.append(event))
        with (
            Live(served(), http=type("Limited", (Connection,), {"max_connections": limit})) as live,
            ExitStack() as crowd,
        ):
            threading.setprofile(None)
            for _ in range(2 * limit):
                crowd.enter_context(socket.create_connection(live.socket.getsockname(), PATIENCE))
            with socket.create_connection(live.socket.getsockname(), PATIENCE) as last:
                last.sendall(HEAD + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
                assert rest(last).startswith(b"HTTP/1.1 200")
            return len(counted) / limit

    assert calls(400) < 1.25 * calls(100)


@pytest.mark.parametrize("requests", [1, 3])
def test_a_client_that_closes_its_half_gets_the_answers_to_its_whole_requests(requests):
    whole = (HEAD.replace(b"count", b"late") + b"Content-Length: 2\r\n\r\n{}") * requests
    live, halves = Live(served()), {}
    for end in range(len(whole), 0, -requests):
        half = halves[end] = socket.create_connection(live.socket.getsockname(), PATIENCE)
        half.sendall(whole[:end])
        half.shutdown(socket.SHUT_WR)
    with live:  # all of it is there before the server reads any
        for end, half in halves.items():
            with half:
                assert rest(half).count(b"HTTP/1.1 200") == end * requests // len(whole), whole[:end]


def test_a_connection_accepted_during_shutdown_is_closed():
    with Live(served()) as live:
        vars(live.server.server_state)["ending"] = True  # as `listen.Server` says it
        with socket.create_connection(live.socket.getsockname(), PATIENCE) as late:
            late.sendall(HEAD + b"Content-Length: 9\r\n\r\n{}")
            assert rest(late) == b""
