"""A connection's patience: whoever opens one and asks nothing, or does not take the answer, is not waited for."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD = 10.0  # seconds to send a request's head
STALL = 30.0  # seconds in which nothing of an answer is taken
END = 0.5  # seconds of the grace in which the server itself ends
MOST = 500  # at once; a process can hold some 1,000 files open


class Joined:
    """A transport that sends an answer's head together with what comes next, or alone if nothing does at once."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._head = transport, loop, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        held, self._head = self._head, b""
        if data.startswith(b"HTTP/") and not held:
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(held + data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self.write(b"")


class Connection(H11Protocol):
    """uvicorn's, with an end to every waiting. On Ctrl-C it breaks off, what has come whole as the `grace` ends."""

    head, stall, most, grace = HEAD, STALL, MOST, 0.0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._deadline: asyncio.TimerHandle | None = None

    # uvicorn narrows asyncio's type, as we do.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, Joined(transport, self.loop)))
        self.since = self.loop.time()
        held = [one for one in self.connections if isinstance(one, Connection) and not one.transport.is_closing()]
        if len(held) > self.most:  # whoever has been idle longest makes room
            min((one for one in held if one.idle), key=lambda one: one.since).transport.abort()
        self._wait(self.head)
        if getattr(self.server_state, "ending", False):  # accepted while all the others were told to end
            self.shutdown()

    @property
    def idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.flow.write_paused:
            return  # who does not take an answer wins no time by asking on
        if not self.idle:
            self._wait(None)  # a request is being answered, and the door waits for its body
        elif self._deadline is None:
            self._wait(self.head)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait(self.stall)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._wait(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self.grace and not self.idle and not self.cycle.more_body:
            super().shutdown()
            self.loop.call_later(max(0.0, self.grace - END), self.transport.abort)
        else:
            self.transport.abort()

    def _wait(self, seconds: float | None) -> None:
        """Break off after so long, unless told otherwise before."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
