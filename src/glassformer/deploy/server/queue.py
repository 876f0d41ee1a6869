"""A queue that translates the sentences of many requests together.

A free worker takes the sentence with the smallest turn, and fills its batch with waiting sentences that match: the same
model, the same search, about the same length, then shorter ones. Other free workers get their share. So no sentence
waits for others to arrive, and while batches run the next ones gather. The translation of a sentence does not depend on
its batch, so it can be cached.

Batches run in parallel, each on a share of the cores; a batch that runs alone gets all of them. Only the first worker
runs alone: OpenMP keeps the threads of every worker, and puts them to sleep and wakes them between any two matrix
products if there are more threads than cores, hundreds of times a sentence.

Each client has turns of its own. A sentence's turn is the moment, counted in tokens, at which it would start if all
clients were served in parallel, so that a book of one client does not delay a word of another.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from typing import NamedTuple

import torch

from glassformer.common.errors import GlassformerError
from glassformer.decode.engine import Engine, can_mix, may_join, padded_length
from glassformer.decode.search import Search
from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.errors import RequestError
from glassformer.pipelines.text.sentence_translator import Answer, TranslateRequest
from glassformer.pipelines.translator import Translation, Translator

MAX_WAITING = 400_000  # tokens
CACHE_SIZE = 20_000  # sentences
CHECK_SECONDS = 1.0  # between two checks whether a client still waits
MAX_CLIENTS = 4096  # whose next turn is remembered
MAX_WORKERS = 8  # by default; they share one interpreter
MIN_SHARE = 8  # sentences that are not split among workers

NBest = list[Translation]


class QueueFull(RequestError):
    def __init__(self, tokens: int) -> None:
        message = f"Slowdown: {tokens:,} tokens are waiting already; ask again in a moment"
        super().__init__(429, "busy", message)


class QueueClosed(RequestError):
    def __init__(self) -> None:
        super().__init__(503, "stopping", "the server is stopping; ask again in a moment")


class BatchAbandoned(GlassformerError):
    """All clients of a batch have left."""


class BatchKey(NamedTuple):
    """What the sentences of one batch have in common."""

    engine: Engine  # compared by identity
    to: str | None
    search: Search
    placeholders: bool
    width: int  # tokens, rounded as the engine does it

    @property
    def max_sentences(self) -> int:
        return max(1, self.engine.batch_tokens // self.search.beam // self.width)

    def accepts(self, other: BatchKey) -> bool:
        """Whether the shorter sentences of another key may fill a batch of this one."""
        if self.placeholders or not can_mix(self.search) or self._replace(width=other.width) != other:
            return False
        return other.width < self.width and may_join(other.width, self.width)


class Job(NamedTuple):
    turn: float
    number: int  # of arrival
    text: str
    translator: Translator
    state: RequestState
    answer: Future[NBest]
    key: BatchKey


@contextmanager
def end_of_request(state: RequestState) -> Iterator[None]:
    """After any error nothing waits for the request's sentences; the error is the reason if these were dropped."""
    try:
        yield
    except BaseException as error:
        state.abandoned = True
        if isinstance(error, CancelledError | BatchAbandoned):
            state.check()  # raises the cause
        raise


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


def default_workers(device: torch.device) -> int:
    """One for each core, or one for a GPU."""
    return 1 if device.type == "cuda" else min(MAX_WORKERS, torch.get_num_threads())


class Queue:
    """`workers` run batches, each on `threads` cores, by default on those that are free. `close` stops them."""

    def __init__(self, workers: int = 1, threads: int | None = None, max_waiting: int = MAX_WAITING) -> None:
        self.max_waiting = max_waiting
        self.waiting = 0  # tokens
        self.batches = self.sentences = self.cache_hits = 0  # since the start
        self._jobs: dict[BatchKey, list[Job]] = {}  # heaps
        self._clock = 0.0  # the largest turn that has been taken
        self._turns: dict[str, deque[tuple[float, RequestState]]] = {}  # of a client: where each request ends
        self._cache: OrderedDict[tuple[BatchKey, str], NBest] = OrderedDict()
        self._numbers, self._waker = itertools.count(), LoopWaker()
        self._lock = threading.Lock()
        self._conditions = [threading.Condition(self._lock) for _ in range(workers)]
        self._idle = set[int]()  # workers that wait
        self._closed = False
        self._running = 0  # batches
        cores = torch.get_num_threads()
        self._threads = threads or cores, threads or max(1, cores // workers)  # alone, and in parallel
        self._workers = [threading.Thread(target=self._work, args=(i,), daemon=True) for i in range(workers)]
        for worker in self._workers:
            worker.start()

    def translate(self, request: TranslateRequest, state: RequestState) -> Answer:
        """What `translate_now(request)` returns; waits for it."""
        answers = self.submit(request, state)
        with end_of_request(state):
            for answer in answers:
                while not wait([answer], CHECK_SECONDS).done:
                    state.check()
            found = [answer.result() for answer in answers]
        if request.progress is not None:
            request.progress(len(request.texts))
        return found

    async def translate_async(self, request: TranslateRequest, state: RequestState) -> Answer:
        """The same, without a thread that waits."""
        answers = self.submit(request, state)
        with end_of_request(state):
            for answer in answers:
                if not answer.done():
                    await self._waker.wait(answer)
            return [answer.result() for answer in answers]

    def submit(self, request: TranslateRequest, state: RequestState) -> list[Future[NBest]]:
        """The futures that `translate` waits for."""
        translator, texts = request.translator, request.texts
        ids = translator.tokenizer.encode_source(texts)
        kind = translator.engine, translator.to, request.search, request.placeholders
        keys = [BatchKey(*kind, padded_length(max(1, len(one)))) for one in ids]
        answers: list[Future[NBest]] = [Future() for _ in texts]
        with self._lock:
            missing = []
            for i, (key, text) in enumerate(zip(keys, texts, strict=True)):
                if (cached := self._cache.get((key, text))) is not None:
                    self._cache.move_to_end((key, text))
                    self.cache_hits += 1
                    answers[i].set_result(cached)
                else:
                    missing.append(i)
            cost = sum(keys[i].width for i in missing)
            if self._closed:
                raise QueueClosed
            if self.waiting and self.waiting + cost > self.max_waiting:
                raise QueueFull(self.waiting)
            turn = self._next_turn(state.client)
            for i in missing:
                job = Job(turn, next(self._numbers), texts[i], translator, state, answers[i], keys[i])
                heapq.heappush(self._jobs.setdefault(keys[i], []), job)
                turn += keys[i].width
            self._turns.setdefault(state.client, deque()).append((turn, state))
            if len(self._turns) > MAX_CLIENTS:
                self._turns = {client: turns for client, turns in self._turns.items() if turns[-1][0] > self._clock}
            self.waiting += cost
            if missing:
                self._notify()
        return answers

    def _next_turn(self, client: str) -> float:
        """After all requests of the client, except abandoned ones at the end."""
        turns = self._turns.get(client, deque())
        while turns and turns[0][0] <= self._clock:
            turns.popleft()
        while turns and not turns[-1][1].active:
            turns.pop()
        return max(self._clock, turns[-1][0]) if turns else self._clock

    def _notify(self) -> None:
        """Wake the first idle worker. It wakes the next one if it leaves sentences."""
        if self._idle:
            first = min(self._idle)
            self._idle.remove(first)
            self._conditions[first].notify()

    def _take(self, worker: int) -> tuple[BatchKey, list[Job], int] | None:
        """The next batch and its number of threads; None when the queue is closed."""
        with self._lock:
            while True:
                while not self._jobs and not self._closed:
                    self._turns.clear()  # nothing waits, so no client owes anything
                    self._idle.add(worker)
                    self._conditions[worker].wait()
                if self._closed:
                    return None
                key = min(self._jobs, key=lambda key: self._jobs[key][0])
                self._clock = max(self._clock, self._jobs[key][0].turn)
                shorter = sorted(filter(key.accepts, self._jobs), key=lambda one: -one.width)
                free = len(self._workers) - self._running
                count = sum(len(self._jobs[one]) for one in (key, *shorter))
                limit, batch = min(key.max_sentences, max(MIN_SHARE, -(-count // free))), list[Job]()
                for one in (key, *shorter):
                    self._fill(batch, one, limit)
                if batch:
                    alone = worker == 0 and not self._jobs and not self._running
                    self._running += 1
                    if self._jobs:
                        self._notify()
                    return key, batch, self._threads[0 if alone else 1]

    def _fill(self, batch: list[Job], key: BatchKey, limit: int) -> None:
        """Move waiting jobs of a key into the batch, and drop abandoned ones."""
        heap = self._jobs[key]
        while heap and len(batch) < limit:
            job = heapq.heappop(heap)
            self.waiting -= key.width
            if job.state.active:
                batch.append(job)
            else:
                job.answer.cancel()
        if not heap:
            del self._jobs[key]

    def _work(self, worker: int) -> None:
        while (taken := self._take(worker)) is not None:
            key, batch, threads = taken
            torch.set_num_threads(threads)  # of this thread only
            try:
                made = self._run(key, batch)
            except BaseException as error:  # raised in the requests; the worker goes on
                for job in batch:
                    if not job.answer.done():
                        job.answer.set_exception(error)
                continue
            finally:
                with self._lock:
                    self._running -= 1
            with self._lock:
                self.batches += 1
                self.sentences += len(batch)
                if key.search.sampling is None:
                    for job, ranked in zip(batch, made, strict=True):
                        self._cache[job.key, job.text] = ranked
                    while len(self._cache) > CACHE_SIZE:
                        self._cache.popitem(last=False)
            for job, ranked in zip(batch, made, strict=True):
                job.answer.set_result(ranked)

    def _run(self, key: BatchKey, batch: list[Job]) -> list[NBest]:
        def between_steps() -> None:
            if self._closed:
                raise QueueClosed
            if not any(job.state.active for job in batch):
                raise BatchAbandoned

        translate, texts = batch[0].translator.translate, [job.text for job in batch]
        with torch.inference_mode():
            return translate(texts, search=key.search, placeholders=key.placeholders, between_steps=between_steps)

    def close(self) -> None:
        """Stop the workers and fail all waiting jobs, without finishing what runs."""
        with self._lock:
            self._closed = True
            waiting = [job for heap in self._jobs.values() for job in heap]
            self._jobs.clear()
            for condition in self._conditions:
                condition.notify()
        for job in waiting:
            job.answer.set_exception(QueueClosed())
        for worker in self._workers:
            worker.join()
