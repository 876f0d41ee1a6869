"""A translator whose texts wait in a queue with those of others, in a thread or without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from glassformer.decode.search import search_of
from glassformer.deploy.server.queue import Queue, Ranked, result
from glassformer.deploy.server.request_state import Ticket
from glassformer.pipelines.text.request import Ask, Asking
from glassformer.pipelines.translator import Translator

T = TypeVar("T")


class Bell:
    """Wakes those who wait in one loop; many whose answers come at once by a single call, for each call is a switch
    from the worker's thread to the loop's and back."""

    def __init__(self) -> None:
        self._rung: list[asyncio.Future[None]] = []
        self._lock = threading.Lock()

    async def wait(self, answer: Future[Ranked]) -> None:
        """Until the answer is there."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda _: self._ring(waiting))
        await waiting

    def _ring(self, waiting: asyncio.Future[None]) -> None:
        with self._lock:
            self._rung.append(waiting)
            first = len(self._rung) == 1
        if first:
            try:
                waiting.get_loop().call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop has ended, and nobody waits
                self._rung.clear()

    def _wake(self) -> None:
        with self._lock:
            rung, self._rung = self._rung, []
        for waiting in rung:
            if not waiting.done():  # else they have left
                waiting.set_result(None)


class Queued(Translator):
    """A translator whose texts go through a queue, for one request."""

    plain: Translator
    queue: Queue
    ticket: Ticket

    @classmethod
    def of(cls, translator: Translator, queue: Queue, ticket: Ticket) -> Queued:
        made = object.__new__(cls)
        vars(made).update(vars(translator), plain=translator, queue=queue, ticket=ticket)
        return made

    def translate(self, texts: Iterable[str], **options: Any) -> list[Ranked]:
        """As `Translator.translate`, of which a queue knows what it needs: `search` and `placeholders`."""
        search, placeholders = options.pop("search", None), options.pop("placeholders", False)
        progress = options.pop("progress", None)
        texts = list(texts)
        made = self.queue.translate(self.plain, texts, search_of(search, **options), placeholders, self.ticket)
        if progress is not None:
            progress(len(texts))
        return made

    async def awaited(self, one: Ask, bell: Bell) -> list[Ranked]:
        """What `translate` gives, without a thread that waits for it."""
        answers = self.queue.ask(self.plain, one.texts, one.search, one.placeholders, self.ticket)
        try:
            for answer in answers:
                if not answer.done():
                    await bell.wait(answer)
            return [result(answer, self.ticket) for answer in answers]
        except BaseException:
            self.ticket.given_up = True
            raise


async def awaited(asking: Asking[T], bell: Bell) -> T:
    """What is made of it by translators that are queued, while the loop that waits goes on."""
    try:
        one = next(asking)
        while True:
            assert isinstance(one.translator, Queued)
            one = asking.send(await one.translator.awaited(one, bell))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
