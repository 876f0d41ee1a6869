"""Bytes on their way out: whole, in part, or packed."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from glassformer.deploy.server.errors import Refused
from glassformer.page import front_files, page_files

PACK_FROM = 1024  # bytes; less is not worth packing
SLICE = 262_144  # bytes sent at a time
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")
KEPT = {"Cache-Control": "max-age=31536000, immutable"}
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def packed(request: Request, content: bytes, media: str, headers: dict[str, str] | None = None) -> Response:
    """`content`, compressed for a client that can read it so."""
    sent = {"Vary": "Accept-Encoding", "Cache-Control": "no-cache"} | (headers or {})
    if len(content) >= PACK_FROM and "gzip" in request.headers.get("accept-encoding", ""):
        content, sent["Content-Encoding"] = gzip.compress(content, 5, mtime=0), "gzip"
    return Response(content, media_type=media, headers=sent)


@cache
def edition() -> str:
    """A name for all that the pages' files hold: what is asked for by it never changes, and a browser may keep it."""
    told = hashlib.sha256()
    for files in (page_files(), front_files()):
        told.update(json.dumps(files).encode())
    return told.hexdigest()[:16]


def page_file(request: Request, name: str, front: bool = False, asked: str = "") -> Response:
    """A file of the page, or of that in `front` of it; `asked` for by the name of its edition, it may be kept."""
    files = front_files() if front else page_files()
    if name not in files:
        raise Refused(404, "unknown", "the page has no such file", "GET / is the page")
    text = files[name]
    if name.endswith(".html"):
        text = text.replace('"static/', f'"static/v-{edition()}/')
    kept = KEPT if asked == edition() else None
    return packed(request, text.encode(), f"{KINDS[name.rpartition('.')[2]]}; charset=utf-8", kept)


def as_json(request: Request, value: Any) -> Response:
    text = ENCODER.encode(value)
    # Half of a surrogate pair is no text, and no encoding takes it.
    return packed(request, text.encode("utf-8", "replace"), "application/json", {"Cache-Control": "no-store"})


def ranged(request: Request, content: bytes) -> Response:
    """All of `content`, or the one range asked for; several ranges at once are answered with all, as is allowed."""
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "no-store"}
    media = "application/octet-stream"
    wanted = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if wanted is None or wanted.groups() == ("", ""):
        return sliced(content, 200, media, headers)
    size = len(content)
    if wanted[1] == "":
        first, last = max(0, size - int(wanted[2])), size - 1
    else:
        first, last = int(wanted[1]), min(size - 1, int(wanted[2] or size - 1))
    if first > last:
        raise Refused(416, "range", f"the range {wanted[0]} lies outside the {size} bytes there are")
    headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    return sliced(memoryview(content)[first : last + 1], 206, media, headers)


def sliced(content: bytes | memoryview, status: int, media: str, headers: dict[str, str]) -> Response:
    """Sent as it is taken, so that a slow reader of many bytes keeps few of them waiting here."""

    async def slices() -> AsyncIterator[bytes]:
        for at in range(0, len(content), SLICE):
            yield bytes(content[at : at + SLICE])

    return StreamingResponse(slices(), status, headers | {"Content-Length": str(len(content))}, media)
