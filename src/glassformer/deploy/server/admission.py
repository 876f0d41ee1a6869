"""Turns at the model: a few at a time, and none for those who have left."""

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

from glassformer.deploy.server.errors import Left, Refused

T = TypeVar("T")
Wanted = Callable[[], None]  # raises what it ends with, when nobody waits for the answer any more


class Turns:
    """Whoever comes waits for a turn, in order; who leaves loses it, or ends the work that was begun for them."""

    def __init__(self, most_waiting: int, at_once: int | None = None, seconds: float | None = None) -> None:
        self.most_waiting, self.at_once = most_waiting, at_once or min(4, os.cpu_count() or 1)
        self.seconds = seconds or math.inf  # for each, from its coming to its end
        self.waiting = 0

    @cached_property
    def limiter(self) -> anyio.CapacityLimiter:
        """Made when first asked for, by a running server."""
        return anyio.CapacityLimiter(self.at_once)

    async def take(self, request: Request, work: Callable[[Wanted], T]) -> T:
        """Do `work` in a thread. It should call what it is handed now and then."""
        with self._turn(request) as wanted:
            return await anyio.to_thread.run_sync(work, wanted, limiter=self.limiter)

    async def take_here(self, request: Request, work: Callable[[Wanted], Awaitable[T]]) -> T:
        """Do `work` in the loop: it should be little, and wait for the rest."""
        with self._turn(request) as wanted:
            return await work(wanted)

    @contextmanager
    def _turn(self, request: Request) -> Iterator[Wanted]:
        if self.waiting >= self.most_waiting:
            raise Refused(429, "busy", f"{self.waiting} requests are waiting already", "try again in a moment")
        self.waiting += 1
        try:
            with while_wanted(request, self.seconds) as wanted:
                yield wanted
        finally:
            self.waiting -= 1


@contextmanager
def while_wanted(request: Request, seconds: float = math.inf) -> Iterator[Wanted]:
    """When the client leaves, end what is waited for here with `Left`, or when it takes too long; a thread ends when
    it asks."""
    end = time.monotonic() + seconds
    left, scope = False, anyio.CancelScope(deadline=anyio.current_time() + seconds)

    def wanted() -> None:
        if left:
            raise Left
        if time.monotonic() > end:
            raise late(seconds)

    async def see_off() -> None:
        nonlocal left
        while (await request.receive())["type"] != "http.disconnect":
            pass
        left = True
        scope.cancel()

    seeing = asyncio.create_task(see_off())
    try:
        with scope:
            yield wanted
    finally:
        left = True
        seeing.cancel()
    if scope.cancelled_caught:
        raise late(seconds) if time.monotonic() > end else Left


def late(seconds: float) -> Refused:
    return Refused(504, "late", f"it has taken more than {seconds:g} seconds", "ask for less at once, or again later")
