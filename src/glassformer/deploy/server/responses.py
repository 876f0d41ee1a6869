"""Responses: compressed, the page's files, ranges of bytes, and streams of events."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from glassformer.deploy.server.admission import AdmissionControl, RequestState
from glassformer.deploy.server.errors import ClientDisconnected, RequestError, request_error
from glassformer.page import front_files, page_files

MIN_GZIP = 1024  # bytes
CHUNK = 262_144  # bytes sent at a time
CACHED = {"Cache-Control": "max-age=31536000, immutable"}
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
EVENT_STREAM = "text/event-stream"
KEEPALIVE = 15.0  # seconds between events after which a comment is sent, so that no proxy closes the connection
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


def compressed(request: Request, content: bytes, media: str, headers: dict[str, str] | None = None) -> Response:
    """`content`, with gzip if the client accepts it."""
    headers = {"Vary": "Accept-Encoding", "Cache-Control": "no-cache"} | (headers or {})
    if len(content) >= MIN_GZIP and "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = gzip.compress(content, 5, mtime=0), "gzip"
    return Response(content, media_type=media, headers=headers)


def encode_json(value: Any) -> bytes:
    return ENCODER.encode(value).encode("utf-8", "replace")  # replaces lone surrogates


def json_response(request: Request, value: Any) -> Response:
    content = value if isinstance(value, bytes) else encode_json(value)
    return compressed(request, content, "application/json", {"Cache-Control": "no-store"})


@cache
def static_files() -> dict[str, str]:
    """The files of the page that looks inside a model, and under `front/` those of the page that translates."""
    return page_files() | {f"front/{name}": text for name, text in front_files().items()}


@cache
def page_version() -> str:
    """A hash of all files. A browser may cache a file under this name for ever."""
    return hashlib.sha256(json.dumps(static_files()).encode()).hexdigest()[:16]


def page_file(request: Request, name: str, version: str = "") -> Response:
    """A file of the pages. With the current `version`, a browser caches it."""
    if name not in static_files():
        raise RequestError(404, "unknown", "the page has no such file", "GET / is the page")
    text = static_files()[name]
    if name.endswith(".html"):
        text = text.replace('"static/', f'"static/v-{page_version()}/')
    media = f"{MEDIA_TYPES[name.rpartition('.')[2]]}; charset=utf-8"
    return compressed(request, text.encode(), media, CACHED if version == page_version() else None)


def range_response(request: Request, content: bytes | memoryview) -> Response:
    """All of `content`, or the one range of the request. As HTTP allows, several ranges are answered with all."""
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "no-store"}
    media, size = "application/octet-stream", len(content)
    found = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if found is None or found.groups() == ("", ""):
        return chunked_response(content, 200, media, headers)
    if found[1] == "":
        first, last = max(0, size - int(found[2])), size - 1
    else:
        first, last = int(found[1]), min(size - 1, int(found[2] or size - 1))
    if first > last:
        raise RequestError(416, "range", f"the range {found[0]} lies outside the {size} bytes there are")
    headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    return chunked_response(memoryview(content)[first : last + 1], 206, media, headers)


def chunked_response(content: bytes | memoryview, status: int, media: str, headers: dict[str, str]) -> Response:
    """Sent in chunks, so that a slow reader of a large response keeps little of it in the server's buffers."""

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(content), CHUNK):
            yield bytes(content[at : at + CHUNK])

    return StreamingResponse(chunks(), status, headers | {"Content-Length": str(len(content))}, media)


SendEvent = Callable[[str, dict[str, Any]], None]


def encode_event(name: str, data: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), encode_json(data))


async def event_stream(
    request: Request, admission: AdmissionControl, work: Callable[[RequestState, SendEvent], None], client: str
) -> Response:
    """The events of `work`, as it sends them. An error before the first event becomes a plain error response."""
    loop, events = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

    def send(name: str, data: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(events.put_nowait, encode_event(name, data))

    async def run() -> None:
        try:
            await admission.run(request, lambda state: work(state, send), client)
        finally:
            events.put_nowait(None)

    running = asyncio.create_task(run())
    try:
        first = await events.get()
    except BaseException:
        running.cancel()
        raise
    if first is None:
        await running  # raises the error
        return Response(status_code=204)

    async def encoded() -> AsyncIterator[bytes]:
        event: bytes | None = first
        try:
            while event is not None:
                yield event
                try:
                    event = await asyncio.wait_for(events.get(), KEEPALIVE)
                except TimeoutError:
                    event = b": still at it\n\n"
            try:
                await running
            except ClientDisconnected:
                pass
            except Exception as error:
                path = request.url.path
                yield encode_event("error", request_error(error, path).body(path))
        finally:
            running.cancel()

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(encoded(), media_type=EVENT_STREAM, headers=headers)
