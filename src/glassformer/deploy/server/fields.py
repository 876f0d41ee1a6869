"""The fields of a request, however they are sent: as JSON, as a form, or in the address."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

MOST_FIELDS, MOST_FILES = 10_000, 8  # of a form
LARGEST_FIELD = 2_000_000  # bytes


class Unreadable(Exception):
    """A body that is not what it says it is."""


class Upload(NamedTuple):
    """A file as it was sent."""

    name: str
    content: bytes


async def fields(request: Request) -> dict[str, Any]:
    """What was sent, by name; of a name that a form has several times, all as a list. JSON keeps its types."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and (kind == "application/json" or kind.endswith("+json")):
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise Unreadable("Invalid JSON format") from None
        if not isinstance(found, dict):
            raise Unreadable("Invalid JSON format")
        return found
    form = body.decode("utf-8", "replace") if kind == "application/x-www-form-urlencoded" else ""
    sent: dict[str, list[Any]] = {}
    for text in (request.url.query, form):
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="replace")
        except ValueError:
            raise Unreadable(f"Invalid form: more than {MOST_FIELDS:,} fields") from None
        for name, value in pairs:
            sent.setdefault(name, []).append(value)
    if kind == "multipart/form-data":
        for name, part in await parts(request):
            sent.setdefault(name, []).append(part)
    return {name: values[0] if len(values) == 1 else values for name, values in sent.items()}


async def parts(request: Request) -> list[tuple[str, str | Upload]]:
    """What a form of several parts holds, in order."""
    if find_spec("python_multipart") is None:
        raise Unreadable("this server reads no such forms; its operator should run: pip install python-multipart")
    found: list[tuple[str, str | Upload]] = []
    try:
        async with request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS, max_part_size=LARGEST_FIELD) as form:
            for name, part in form.multi_items():
                read = Upload(part.filename or "", await part.read()) if isinstance(part, UploadFile) else part
                found.append((name, read))
    except HTTPException as error:
        raise Unreadable(f"Invalid form: {error.detail}") from None
    return found
