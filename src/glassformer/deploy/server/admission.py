"""Admission of requests: a few at a time run, others wait in order, and a disconnected client's work ends."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar

import anyio
from fastapi import Request

from glassformer.deploy.server.errors import ClientDisconnected, RequestError

T = TypeVar("T")


class RequestState:
    """A request in progress: its client, and whether that client still waits for the response. `check` raises what ends
    the request, if the client has left or the time is up."""

    def __init__(self, client: str = "", check: Callable[[], None] = lambda: None) -> None:
        self.client, self.check = client, check
        self.abandoned = False

    @property
    def active(self) -> bool:
        if not self.abandoned:
            try:
                self.check()
            except Exception:  # raised again where the request waits
                self.abandoned = True
        return not self.abandoned


class AdmissionControl:
    """Runs `concurrency` requests at once, lets `max_waiting` wait, and ends each after `timeout` seconds."""

    def __init__(self, max_waiting: int, concurrency: int | None = None, timeout: float | None = None) -> None:
        self.max_waiting, self.concurrency = max_waiting, concurrency or min(4, os.cpu_count() or 1)
        self.timeout = timeout or math.inf
        self.waiting = 0

    @cached_property
    def limiter(self) -> anyio.CapacityLimiter:
        """Created on first use, because it needs a running event loop."""
        return anyio.CapacityLimiter(self.concurrency)

    async def run(self, request: Request, work: Callable[[RequestState], T], client: str = "") -> T:
        """Run `work` in a thread. It should call `check` of its state now and then."""
        with self._admit(request, client) as state:
            return await anyio.to_thread.run_sync(work, state, limiter=self.limiter)

    async def run_async(self, request: Request, work: Callable[[RequestState], Awaitable[T]], client: str = "") -> T:
        """Run `work` in the event loop. It should compute little and await the rest."""
        with self._admit(request, client) as state:
            return await work(state)

    @contextmanager
    def _admit(self, request: Request, client: str) -> Iterator[RequestState]:
        if self.waiting >= self.max_waiting:
            raise RequestError(429, "busy", f"{self.waiting} requests are waiting already", "try again in a moment")
        self.waiting += 1
        try:
            with cancel_on_disconnect(request, self.timeout, client) as state:
                yield state
        finally:
            self.waiting -= 1


@contextmanager
def cancel_on_disconnect(request: Request, timeout: float = math.inf, client: str = "") -> Iterator[RequestState]:
    """Cancel what is awaited here when the client disconnects or the time is up. A thread ends at its next `check`."""
    end = time.monotonic() + timeout
    disconnected, scope = False, anyio.CancelScope(deadline=anyio.current_time() + timeout)

    def check() -> None:
        if disconnected:
            raise ClientDisconnected
        if time.monotonic() > end:
            raise timed_out(timeout)

    async def watch_connection() -> None:
        nonlocal disconnected
        while (await request.receive())["type"] != "http.disconnect":
            pass
        disconnected = True
        scope.cancel()

    watching = asyncio.create_task(watch_connection())
    try:
        with scope:
            yield RequestState(client, check)
    finally:
        disconnected = True
        watching.cancel()
    if scope.cancelled_caught:
        raise timed_out(timeout) if time.monotonic() > end else ClientDisconnected


def timed_out(timeout: float) -> RequestError:
    message = f"it has taken more than {timeout:g} seconds"
    return RequestError(504, "late", message, "ask for less at once, or again later")
