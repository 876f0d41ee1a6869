"""Clients that no library would be: they leave, stall and wait for states."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable

PATIENCE = 60  # seconds, for a machine that is busy with other things


def until(state: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not state():
        assert time.monotonic() < end
        time.sleep(0.005)


def post(live, address: str, **body: object) -> socket.socket:
    """A request that is sent and not waited for; close it to leave."""
    content = json.dumps(body).encode()
    found = socket.create_connection(live.socket.getsockname(), PATIENCE)
    head = f"POST {address} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    found.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return found
