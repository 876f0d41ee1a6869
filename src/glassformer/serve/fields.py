"""The fields of a request, however they are sent: as JSON, as a form, or in the address."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request


class Unreadable(Exception):
    """A body that is not what it says it is."""


async def fields(request: Request) -> dict[str, Any]:
    """What was sent, by name; of a name that a form has several times, all as a list. JSON keeps its types."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and (kind == "application/json" or kind.endswith("+json")):
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise Unreadable("the body is not JSON") from None
        if not isinstance(found, dict):
            raise Unreadable("the body is no JSON object")
        return found
    form = body.decode("utf-8", "replace") if kind == "application/x-www-form-urlencoded" else ""
    sent: dict[str, list[str]] = {}
    for text in (request.url.query, form):
        for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=10_000, errors="replace"):
            sent.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in sent.items()}
