"""Around every request: what is allowed, how large and how slow it may be, security headers, metrics and a log.

A page of another site must not reach a server on this machine. A host name that an attacker points at it arrives in
`Host`; a script of another site arrives with its own `Origin`.
"""

from __future__ import annotations

import ipaddress
import json
import re
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import anyio
from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from glassformer.deploy.server.errors import CLOSE, ClientDisconnected, RequestError, is_program_route, request_error
from glassformer.deploy.server.keys import ApiKeys
from glassformer.deploy.server.queue import Queue

MAX_HEAD = 16_384  # bytes of the path, the query and the headers
MAX_BODY = 65_536  # bytes; the longest sentence and every change fit many times
MAX_BODIES = {"/translate": 2_000_000, "/v2/translate": 2_000_000, "/translate_file": 1_048_576}
MAX_IMAGE_BODY = 1_000_000
READ_TIMEOUT = 30.0  # seconds for the body
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # seconds
MAX_LOGGED = 200  # characters of a path
HOST = re.compile(r"(?:([\w.-]+)|\[([0-9a-f:.]*:[0-9a-f:.]*)\])(?::[0-9]{0,5})?", re.ASCII)
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
ENCODED_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class GuardMiddleware:
    """Refuses foreign hosts, foreign origins and oversized requests, and adds the security headers.

    `hosts` are the host names that the server answers to; `by_address` allows any IP address, since no attacker can
    point one at this machine. Pages of `origins` (`*`: all) may call the routes for programs, but never the page's own.
    With `images`, requests of the page may be larger.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: frozenset[str] = LOCAL,
        by_address: bool = False,
        read_timeout: float = READ_TIMEOUT,
        origins: Sequence[str] = (),
        images: bool = False,
        api_keys: ApiKeys | None = None,
    ) -> None:
        self.app, self.hosts, self.by_address, self.origins = app, hosts, by_address, origins
        self.read_timeout, self.api_keys = read_timeout, api_keys
        self.max_bodies = MAX_BODIES | (dict.fromkeys(("/api/trace", "/api/whatif"), MAX_IMAGE_BODY) if images else {})
        self.cors = CORSMiddleware(
            self.forward, origins, allow_methods=("GET", "POST"), allow_headers=("Authorization", "Content-Type")
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in ENCODED_HEADERS if one[0] not in present)]
            await send(message)

        try:
            self.check_head(scope)
        except RequestError as error:
            await error.response(scope["path"])(scope, receive, send_with_headers)
            return
        handler = self.cors if self.origins and is_program_route(scope["path"]) else self.forward
        await handler(scope, receive, send_with_headers)

    def check_head(self, scope: Scope) -> None:
        size = sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope.get("query_string", b""))
        if size + len(scope["path"]) > MAX_HEAD:
            hint = f"send at most {MAX_HEAD:,} bytes of it; texts go into the body"
            raise RequestError(431, "head", "the request's head is too large", hint)
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            message = "the request has both `Content-Length` and `Transfer-Encoding`"
            error = RequestError(400, "framing", message, "send one of them")
            error.headers = CLOSE  # nobody knows where the next request begins
            raise error
        host = host_name(header(scope, b"host") or "")
        if host not in self.hosts and not (self.by_address and is_address(host)):
            other = "this machine's address" if self.by_address else "http://127.0.0.1"
            message = f"this server does not answer to the name {host[:80]!r}"
            raise RequestError(403, "host", message, f"open it by http://localhost or by {other}")

    def check_origin(self, scope: Scope) -> None:
        origin = header(scope, b"origin")
        if origin is None or scope["method"] in ("GET", "HEAD"):
            return
        own = origin_host(origin) == (header(scope, b"host") or "").lower()
        allowed = is_program_route(scope["path"]) and ("*" in self.origins or origin in self.origins)
        if not own and not allowed:
            raise RequestError(403, "origin", "a page of another site asked for this", "open the page itself")

    def check_key(self, scope: Scope) -> None:
        """Refuse a wrong key in the head, so that the body need not be read. In most requests the body has the key."""
        scheme, _, key = (header(scope, b"authorization") or "").rpartition(" ")
        if self.api_keys is not None and scope["path"] in MAX_BODIES and scheme == "DeepL-Auth-Key":
            self.api_keys.check(key, (scope.get("client") or ("",))[0], count=False)

    async def read_body(self, scope: Scope, receive: Receive) -> bytes:
        body, limit = bytearray(), self.max_bodies.get(scope["path"], MAX_BODY)
        with anyio.move_on_after(self.read_timeout):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnected
                body += message.get("body", b"")
                if len(body) > limit:
                    raise RequestError(413, "large", "the request is too large", f"send at most {limit:,} bytes")
                if not message.get("more_body", False):
                    return bytes(body)
        raise RequestError(408, "slow", "the request did not arrive", f"send it within {self.read_timeout:g} seconds")

    async def forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the origin, read the whole body, and hand the request on."""
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            self.check_origin(scope)
            self.check_key(scope)
            replay: list[Message] = [
                {"type": "http.request", "body": await self.read_body(scope, receive), "more_body": False}
            ]

            async def receive_again() -> Message:
                return replay.pop() if replay else await receive()

            await self.app(scope, receive_again, watched_send)
        except ClientDisconnected:
            return
        except Exception as error:
            if started:
                raise
            await request_error(error, scope["path"]).response(scope["path"])(scope, receive, send)


class Metrics:
    """The server's metrics for Prometheus."""

    def __init__(self, queue: Queue) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter("glassformer_requests", "Requests answered.", ["path", "status"], registry=registry)
        text = "Seconds from a request's head to its answer's end."
        self.seconds = Histogram("glassformer_request_seconds", text, ["path"], buckets=BUCKETS, registry=registry)
        text = "Requests that are being answered."
        self.running = Gauge("glassformer_requests_running", text, registry=registry)
        gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "waiting_tokens": ("Tokens of sentences that wait for the model.", lambda: queue.waiting),
            "batches_run": ("Batches translated so far.", lambda: queue.batches),
            "sentences_run": ("Sentences translated so far.", lambda: queue.sentences),
            "sentences_kept": ("Sentences answered from memory so far.", lambda: queue.cache_hits),
        }
        for name, (text, value) in gauges.items():
            Gauge(f"glassformer_{name}", text, registry=registry).set_function(value)

    def response(self) -> Response:
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)


class MetricsMiddleware:
    """Counts and logs requests, around all other middleware. `paths` are counted one by one, all others together."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics | None,
        paths: Callable[[], frozenset[str]],
        log: Callable[[str], None] | None,
    ) -> None:
        self.app, self.metrics, self.paths, self.log = app, metrics, paths, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 499  # if the client disconnects before the response

        async def watched_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        if self.metrics is not None:
            self.metrics.running.inc()
        try:
            await self.app(scope, receive, watched_send)
        except Exception:
            status = 500 if status == 499 else status
            raise
        finally:
            seconds = time.perf_counter() - begin
            if self.metrics is not None:
                path = scope["path"] if scope["path"] in self.paths() else "other"
                self.metrics.running.dec()
                self.metrics.requests.labels(path, status).inc()
                self.metrics.seconds.labels(path).observe(seconds)
            if self.log is not None:
                self.log(json.dumps(log_entry(scope, status, seconds), ensure_ascii=True))


def log_entry(scope: Scope, status: int, seconds: float) -> dict[str, Any]:
    """A request without translated text, API key, or the secret name of a download."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "client": (scope.get("client") or ("",))[0],
        "method": scope["method"],
        "path": re.sub("^(/download_file/).*", r"\1...", scope["path"], flags=re.DOTALL)[:MAX_LOGGED],
        "status": status,
        "ms": round(1000 * seconds, 1),
    }


def header(scope: Scope, name: bytes) -> str | None:
    """The last header of a name."""
    found = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return found[-1] if found else None


def host_name(host: str) -> str:
    """A host header without its port; nothing where it is no name or address."""
    found = HOST.fullmatch(host.lower())
    return (found[1] or found[2]) if found else ""


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def origin_host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
