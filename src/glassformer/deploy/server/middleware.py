"""The door: who may come in, how much they may bring and how long it may take, and what every answer carries.

A page of another site must not reach a server on this machine. A name that an attacker points at it arrives with that
name in `Host`; a script of another site arrives with its own `Origin`.
"""

from __future__ import annotations

import ipaddress
import json
import logging
from collections.abc import Sequence
from urllib.parse import urlsplit

import anyio
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.deploy.server.errors import FAULT, body_for, is_interface

LARGEST_HEAD = 16_384  # bytes: the address, and the fields before the body
LARGEST = 65_536  # bytes of a request; the longest sentence and every change fit many times
LARGER = {"/translate": 2_000_000, "/v2/translate": 2_000_000, "/translate_file": 1_048_576}  # of a translation's
IMAGE = 1_000_000  # bytes of a request that tells one
SLOWEST = 30.0  # seconds for all of them
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
ENCODED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Door:
    """`hosts`: the names that this server answers to. `by_address`: to any number too, for those are no names.
    `origins`: other sites whose pages may ask what programs may ask (`*`: all); the page's own addresses stay its own.
    `images`: the page's requests tell such.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: frozenset[str] = LOCAL,
        by_address: bool = False,
        slowest: float = SLOWEST,
        origins: Sequence[str] = (),
        images: bool = False,
    ) -> None:
        self.app, self.hosts, self.by_address, self.slowest, self.origins = app, hosts, by_address, slowest, origins
        self.larger = LARGER | (dict.fromkeys(("/api/trace", "/api/whatif"), IMAGE) if images else {})
        self.shared = CORSMiddleware(
            self.enter, origins, allow_methods=("GET", "POST"), allow_headers=("Authorization", "Content-Type")
        )

    def largest(self, path: str) -> int:
        return self.larger.get(path, LARGEST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in ENCODED if one[0] not in known)]
            await send(message)

        head = sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope.get("query_string", b""))
        if head + len(scope["path"]) > LARGEST_HEAD:
            hint = f"send at most {LARGEST_HEAD:,} bytes of it; texts go into the body"
            await refuse(dressed, scope, 431, "head", "the request's head is too large", hint)
            return
        host = header(scope, b"host") or ""
        if name_of(host) not in self.hosts and not (self.by_address and is_address(name_of(host))):
            others = "this machine's address" if self.by_address else "http://127.0.0.1"
            hint = f"open it by http://localhost or by {others}"
            await refuse(
                dressed, scope, 403, "host", f"this server does not answer to the name {name_of(host)[:80]!r}", hint
            )
            return
        way_in = self.shared if self.origins and is_interface(scope["path"]) else self.enter
        await way_in(scope, receive, dressed)

    async def enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request that is meant for this server: who sent it, and its body."""
        origin, host = header(scope, b"origin"), header(scope, b"host") or ""
        own = origin is None or urlsplit_host(origin) == host.lower()
        if not own and scope["method"] not in ("GET", "HEAD") and not self.is_shared(scope["path"], str(origin)):
            await refuse(send, scope, 403, "origin", "a page of another site asked for this", "open the page itself")
            return
        brought = None
        largest = self.largest(scope["path"])
        with anyio.move_on_after(self.slowest) as patience:
            brought = await read(receive, largest)
        if patience.cancelled_caught:
            hint = f"send it within {self.slowest:g} seconds"
            await refuse(send, scope, 408, "slow", "the request did not arrive", hint)
            return
        if brought is None:
            return  # they left before they had asked
        if len(brought) > largest:
            hint = f"send at most {largest:,} bytes"
            await refuse(send, scope, 413, "large", "the request is too large", hint)
            return
        again: list[Message] = [{"type": "http.request", "body": brought, "more_body": False}]

        async def replay() -> Message:
            return again.pop() if again else await receive()

        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, replay, watched)
        except Exception:
            if begun:
                raise
            logging.getLogger("uvicorn.error").exception("a request of %s failed", scope["path"])
            await refuse(send, scope, 500, *FAULT)

    def is_shared(self, path: str, origin: str) -> bool:
        return is_interface(path) and ("*" in self.origins or origin in self.origins)


def header(scope: Scope, name: bytes) -> str | None:
    """The last one of that name."""
    found = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return found[-1] if found else None


async def read(receive: Receive, largest: int) -> bytes | None:
    """The body, or the beginning of one that is too large; nothing of one that was broken off."""
    found = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        found += message.get("body", b"")
        if len(found) > largest or not message.get("more_body", False):
            return bytes(found)


async def refuse(send: Send, scope: Scope, status: int, code: str, message: str, hint: str) -> None:
    content = json.dumps(body_for(scope["path"], code, message, hint)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if status in (408, 413, 431):
        headers.append((b"connection", b"close"))  # what is still on its way is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def name_of(host: str) -> str:
    """A host header without its port."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if name.count(":") == 1 else name


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def urlsplit_host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
