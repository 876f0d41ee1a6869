"""Clients that no library would be: they leave, stall and wait for states."""

import socket
import time
from collections.abc import Callable
from typing import Any

import httpx

PATIENCE = 60  # seconds, for a machine that is busy with other things


def until(state: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not state():
        assert time.monotonic() < end
        time.sleep(0.005)


def post_bytes(path: str, **content: Any) -> bytes:
    """A whole request as it goes over the wire; `content` as httpx takes it: json, or data and files."""
    request = httpx.Request("POST", f"http://localhost{path}", **content)
    body = request.read()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {request.headers['content-type']}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def post(live, address: str, **body: object) -> socket.socket:
    """A request that is sent and not waited for; close it to leave."""
    found = socket.create_connection(live.socket.getsockname(), PATIENCE)
    found.sendall(post_bytes(address, json=body))
    return found


def rest(connection: socket.socket) -> bytes:
    """All that is said until the other side ends it."""
    found = b""
    try:
        while more := connection.recv(65536):
            found += more
    except ConnectionError:
        pass
    return found
