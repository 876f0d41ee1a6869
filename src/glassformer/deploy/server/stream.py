"""Answers that are sent while they are made: an event for each finished part, and the whole as the last."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from glassformer.common.errors import GlassformerError
from glassformer.deploy.server.admission import Turns, Wanted
from glassformer.deploy.server.errors import FAULT, Left, Refused, body_for

KIND = "text/event-stream"
ALIVE = 15.0  # seconds of silence after which something is said, so that no proxy hangs up


class Event(NamedTuple):
    name: str
    data: dict[str, Any]

    def sent(self) -> bytes:
        data = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))  # of one line, as an event's must be
        return f"event: {self.name}\ndata: {data}\n\n".encode("utf-8", "replace")


Tell = Callable[[Event], None]


def wants_events(request: Request) -> bool:
    return KIND in request.headers.get("accept", "").lower()


async def streamed(request: Request, turns: Turns, work: Callable[[Wanted, Tell], None]) -> Response:
    """What `work` tells, as it tells it. What it raises before its first event is an answer as any other's."""
    loop, events = asyncio.get_running_loop(), asyncio.Queue[Event | None]()

    async def run() -> None:
        try:
            await turns.take(request, lambda wanted: work(wanted, tell))
        finally:
            events.put_nowait(None)

    def tell(event: Event) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)

    running = asyncio.create_task(run())
    try:
        first = await events.get()
    except BaseException:
        running.cancel()
        raise
    if first is None:
        await running  # raises what it ended with
        return Response(status_code=204)

    async def told() -> AsyncIterator[bytes]:
        event: Event | None = first
        try:
            while event is not None:
                yield event.sent()
                while True:
                    try:
                        event = await asyncio.wait_for(events.get(), ALIVE)
                        break
                    except TimeoutError:
                        yield b": still at it\n\n"
            try:
                await running
            except (Refused, GlassformerError) as error:
                yield Event("error", said(request.url.path, error)).sent()
            except Left:
                pass  # nobody reads it
            except Exception:
                logging.getLogger("uvicorn.error").exception("a request of %s failed", request.url.path)
                yield Event("error", body_for(request.url.path, *FAULT)).sent()
        finally:
            running.cancel()

    return StreamingResponse(told(), media_type=KIND, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


def said(path: str, error: Refused | GlassformerError) -> dict[str, Any]:
    if isinstance(error, Refused):
        return body_for(path, error.code, error.message, error.hint)
    return body_for(path, "refused", str(error))
