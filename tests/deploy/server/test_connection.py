"""Slow, idle and aborted connections, over real sockets."""

from __future__ import annotations

import socket
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


def served():
    app = FastAPI()
    app.add_middleware(GuardMiddleware, read_timeout=0.2)
    app.state.counted = 0

    @app.post("/count")
    async def count() -> int:
        app.state.counted += 1
        return app.state.counted

    @app.get("/much")
    async def much() -> Response:
        return chunked_response(bytes(50_000_000), 200, "application/octet-stream", {})

    return app


@pytest.fixture(scope="module")
def server():
    with Live(served(), http=Hasty, timeout_keep_alive=1) as live:
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


def test_idle_connections_make_room_for_new_ones():
    class Narrow(Connection):
        max_connections = 8

    with Live(served(), http=Narrow) as live, ExitStack() as crowd:
        for _ in range(3 * Narrow.max_connections):
            crowd.enter_context(socket.create_connection(live.socket.getsockname(), PATIENCE))
        until(lambda: len(live.server.server_state.connections) == Narrow.max_connections)
        assert httpx.post(f"{live.address}/count", timeout=PATIENCE).status_code == 200


def test_a_connection_accepted_during_shutdown_is_closed():
    with Live(served()) as live:
        vars(live.server.server_state)["ending"] = True  # as `listen.Server` says it
        with socket.create_connection(live.socket.getsockname(), PATIENCE) as late:
            late.sendall(HEAD + b"Content-Length: 9\r\n\r\n{}")
            assert rest(late) == b""
