"""Translation between the languages of all served models, directly or through a third language, by one queue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from glassformer.common.errors import DataError
from glassformer.decode.search import search_of
from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.directions import Directions
from glassformer.deploy.server.errors import RequestError
from glassformer.deploy.server.queue import NBest, Queue, result
from glassformer.pipelines.documents.html import translate_fragments
from glassformer.pipelines.documents.sandbox import translate_in_sandbox
from glassformer.pipelines.language.language import clearly, name_of
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.text.request import Ask, Asking
from glassformer.pipelines.text.translator import translating
from glassformer.pipelines.translator import Translator

MAX_HTML = 20_000  # characters parsed in this process
PREFERRED_PIVOTS = ("en",)

T = TypeVar("T")


class UnsupportedPair(Exception):
    """No models lead from one language to the other."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__(f"nothing here translates from {name_of(source)} into {name_of(target)}")


class LoopWaker:
    """Wakes coroutines of an event loop when their answers arrive. Answers that arrive together share one call into the
    loop, because each call switches between the worker's thread and the loop's."""

    def __init__(self) -> None:
        self._ready: list[asyncio.Future[None]] = []
        self._lock = threading.Lock()

    async def wait(self, answer: Future[NBest]) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda _: self._notify(waiting))
        await waiting

    def _notify(self, waiting: asyncio.Future[None]) -> None:
        with self._lock:
            self._ready.append(waiting)
            first = len(self._ready) == 1
        if first:
            try:
                waiting.get_loop().call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop is closed
                self._ready.clear()

    def _wake(self) -> None:
        with self._lock:
            ready, self._ready = self._ready, []
        for waiting in ready:
            if not waiting.done():  # it may be cancelled
                waiting.set_result(None)


class QueuedTranslator(Translator):
    """A translator whose texts go through the queue, for one request. It shares the engine of the plain translator."""

    def __init__(self, plain: Translator, queue: Queue, state: RequestState) -> None:
        self.device, self.about, self.engine, self.tokenizer = plain.device, plain.about, plain.engine, plain.tokenizer
        self.plain, self.queue, self.state = plain, queue, state

    def translate(self, texts: Iterable[str], **options: Any) -> list[NBest]:
        """As `Translator.translate`, with the options that the queue supports."""
        search, placeholders = options.pop("search", None), options.pop("placeholders", False)
        progress = options.pop("progress", None)
        texts = list(texts)
        made = self.queue.translate(self.plain, texts, search_of(search, **options), placeholders, self.state)
        if progress is not None:
            progress(len(texts))
        return made

    async def translate_async(self, one: Ask, waker: LoopWaker) -> list[NBest]:
        """What `translate` returns, without a thread that waits."""
        answers = self.queue.submit(self.plain, one.texts, one.search, one.placeholders, self.state)
        try:
            for answer in answers:
                if not answer.done():
                    await waker.wait(answer)
            return [result(answer, self.state) for answer in answers]
        except BaseException:
            self.state.abandoned = True
            raise


async def run_async(asking: Asking[T], waker: LoopWaker) -> T:
    """The result of a translation by queued translators, without a thread that waits."""
    try:
        one = next(asking)
        while True:
            assert isinstance(one.translator, QueuedTranslator)
            one = asking.send(await one.translator.translate_async(one, waker))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


class TranslationService:
    """Each model is loaded when it is first needed, or by `load`."""

    def __init__(self, directions: Directions, queue: Queue) -> None:
        self.directions, self.queue, self.waker = directions, queue, LoopWaker()
        self.loaded = False  # all models
        self._direct = {(one.source, one.target): one.name for one in reversed(directions.by_name.values())}
        self.languages = tuple(dict.fromkeys(code for pair in sorted(self._direct) for code in pair if code))

    def load(self) -> None:
        for name in self.directions.by_name:
            _ = self.directions.get(name).translator.engine.ready
        self.loaded = True

    def targets(self, source: str) -> list[str]:
        """The languages that this one can be translated into."""
        return [one for one in self.languages if one != source and self.route(source, one)]

    def route(self, source: str, target: str) -> list[str]:
        """The names of the directions from one language to another: one, two, or none."""
        if (source, target) in self._direct:
            return [self._direct[source, target]]
        pivots = [one for one in self.languages if (source, one) in self._direct and (one, target) in self._direct]
        for pivot in sorted(pivots, key=lambda one: one not in PREFERRED_PIVOTS):
            return [self._direct[source, pivot], self._direct[pivot, target]]
        return []

    def translator(self, source: str, target: str, state: RequestState) -> TextTranslator:
        """A translator of texts for one request."""
        route = self.route(source, target)
        if not route:
            raise UnsupportedPair(source, target)
        queued = [QueuedTranslator(self.directions.get(name).translator, self.queue, state) for name in route]
        return TextTranslator(*queued, source=source, target=target, detect=clearly)

    def translate(
        self,
        texts: Sequence[str],
        codes: Sequence[str | None],
        target: str,
        state: RequestState,
        *,
        html: bool = False,
        alternatives: int = 0,
    ) -> tuple[list[str], list[list[str]]]:
        """The translations of texts, each in the language of its code, and `alternatives` other translations of each. A
        text in no language, or in the target's, stays as it is."""
        made, others = list(texts), [list[str]() for _ in texts]
        for code in dict.fromkeys(code for code in codes if code is not None and code != target):
            rows = [i for i, one in enumerate(codes) if one == code]
            by, some = self.translator(code, target, state), [texts[i] for i in rows]
            translations = translate_html(some, by, state) if html else by.translate(some)
            more = by.alternatives(some, alternatives) if alternatives and not html else [[] for _ in rows]
            for i, text, ranked in zip(rows, translations, more, strict=True):
                made[i], others[i] = text, ranked
        return made, others

    def translating(self, text: str, code: str, target: str, state: RequestState) -> Asking[str]:
        """One text, as the requests that `run_async` answers."""
        if code == target:
            return text
        (made,) = yield from translating(self.translator(code, target, state), [text])
        return made


def translate_html(texts: list[str], by: TextTranslator, state: RequestState) -> list[str]:
    """Pieces of HTML; long ones are parsed in a process of their own, which can be stopped."""
    if sum(map(len, texts)) <= MAX_HTML:
        return translate_fragments(texts, by)
    try:
        return list(map(str, translate_in_sandbox(texts, ".html", by, state.check)))
    except DataError as error:
        raise RequestError(400, "html", f"the HTML cannot be read: {error}") from None
