"""Sentences of many requests through one model together.

A free worker takes the sentence whose turn it is, and with it those that wait and are like it: the same model, the same
search, about the same length, then shorter ones; other free workers get their share of them. So nobody waits for others
to come, and while batches run the next ones gather. What is made of a sentence does not depend on what else is in its
batch, so it may be kept for whoever asks again.

Batches run beside each other, on a share of the cores each; one beside which nothing runs or waits gets all of them. It
is always the first worker's: OpenMP keeps the threads of every worker that has used some, and where these are more than
the cores, puts them to sleep and wakes them again between any two products, hundreds of times a sentence.

Turns go by client. A sentence's turn is the moment, counted in tokens, at which its client would have it begun if all
clients were served side by side: someone with a book to translate does not hold up someone with a word.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, wait
from typing import NamedTuple

import torch

from glassformer.common.errors import GlassformerError
from glassformer.decode.engine import Engine, counted, may_join, mixes
from glassformer.decode.search import Search
from glassformer.deploy.server.request_state import Ticket
from glassformer.pipelines.translation import Translation
from glassformer.pipelines.translator import Translator

MOST_WAITING = 400_000  # tokens
MOST_KEPT = 20_000  # sentences
LOOK = 1.0  # seconds after which someone who waits looks whether they still want it
MOST_CLIENTS = 4096  # whose next turn is remembered
MOST_WORKERS = 8  # unless told; they share one interpreter
FEW = 8  # sentences that are not shared out

Ranked = list[Translation]


class Busy(GlassformerError):
    """More waits already than may wait."""


class Closed(GlassformerError):
    """Nothing is taken or finished any more."""

    def __init__(self) -> None:
        super().__init__("the server is stopping; ask again in a moment")


class Unwanted(GlassformerError):
    """All who had asked for a batch have left."""


class Kind(NamedTuple):
    """What sentences of one batch have in common."""

    engine: Engine  # compared by identity
    to: str | None
    search: Search
    placeholders: bool
    width: int  # tokens, as the engine counts them

    @property
    def most(self) -> int:
        """Sentences in a batch."""
        return max(1, self.engine.batch_tokens // self.search.beam // self.width)

    def takes(self, other: Kind) -> bool:
        """Whether sentences of another kind, none longer, may fill a batch of this one."""
        if self.placeholders or not mixes(self.search) or self._replace(width=other.width) != other:
            return False
        return other.width < self.width and may_join(other.width, self.width)


class Job(NamedTuple):
    turn: float
    number: int  # the order of coming, among those of one turn
    text: str
    translator: Translator
    ticket: Ticket
    answer: Future[Ranked]
    kind: Kind


def result(answer: Future[Ranked], ticket: Ticket) -> Ranked:
    """An answer that is there, or what it ended with."""
    try:
        return answer.result()
    except (CancelledError, Unwanted):
        ticket.check()  # it ended because they have left
        raise


def usual_workers(device: torch.device) -> int:
    """One for each core, or one for a GPU."""
    return 1 if device.type == "cuda" else min(MOST_WORKERS, torch.get_num_threads())


class Queue:
    """Where sentences wait, and the `workers` that translate them, each on so many `threads`, or on those that are
    free; `close` ends it."""

    def __init__(
        self,
        workers: int = 1,
        threads: int | None = None,
        most_waiting: int = MOST_WAITING,
        most_kept: int = MOST_KEPT,
    ) -> None:
        self.most_waiting, self.most_kept = most_waiting, most_kept
        self.waiting = 0  # tokens
        self.batches = self.sentences = self.found = 0  # so far: run, run in them, and kept from before
        self._jobs: dict[Kind, list[Job]] = {}  # heaps
        self._now = 0.0  # the turn of whoever was taken last
        self._next: dict[str, deque[tuple[float, Ticket]]] = {}  # a client's turns, each after a request
        self._kept: OrderedDict[tuple[Kind, str], Ranked] = OrderedDict()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._called = [threading.Condition(self._lock) for _ in range(workers)]  # where each worker waits
        self._idle = set[int]()  # workers that do
        self._closed = False
        self._running = 0  # batches
        cores = torch.get_num_threads()
        self._threads = threads or cores, threads or max(1, cores // workers)  # alone, and beside others
        self._workers = [threading.Thread(target=self._work, args=(i,), daemon=True) for i in range(workers)]
        for worker in self._workers:
            worker.start()

    def translate(
        self, translator: Translator, texts: Sequence[str], search: Search, placeholders: bool, ticket: Ticket
    ) -> list[Ranked]:
        """What `translator.translate` makes of `texts`; waits for it."""
        answers = self.ask(translator, texts, search, placeholders, ticket)
        try:
            for answer in answers:
                while not wait([answer], LOOK).done:
                    ticket.check()
            return [result(answer, ticket) for answer in answers]
        except BaseException:
            ticket.given_up = True
            raise

    def ask(
        self, translator: Translator, texts: Sequence[str], search: Search, placeholders: bool, ticket: Ticket
    ) -> list[Future[Ranked]]:
        """What `translate` waits for."""
        ids = translator.tokenizer.encode_source(texts)
        kinds = [Kind(translator.engine, translator.to, search, placeholders, counted(max(1, len(one)))) for one in ids]
        answers: list[Future[Ranked]] = [Future() for _ in texts]
        with self._lock:
            missing = []
            for i, (kind, text) in enumerate(zip(kinds, texts, strict=True)):
                if (kept := self._kept.get((kind, text))) is not None:
                    self._kept.move_to_end((kind, text))
                    self.found += 1
                    answers[i].set_result(kept)
                else:
                    missing.append(i)
            cost = sum(kinds[i].width for i in missing)
            if self._closed:
                raise Closed
            if self.waiting and self.waiting + cost > self.most_waiting:
                raise Busy(f"{self.waiting:,} tokens are waiting already; ask again in a moment")
            turn = self._turn(ticket.client)
            for i in missing:
                job = Job(turn, next(self._numbers), texts[i], translator, ticket, answers[i], kinds[i])
                heapq.heappush(self._jobs.setdefault(kinds[i], []), job)
                turn += kinds[i].width
            self._next.setdefault(ticket.client, deque()).append((turn, ticket))
            if len(self._next) > MOST_CLIENTS:
                self._next = {client: asked for client, asked in self._next.items() if asked[-1][0] > self._now}
            self.waiting += cost
            if missing:
                self._wake()
        return answers

    def _turn(self, client: str) -> float:
        """The next turn of a client: after all that it has asked for, but for what it has left at the end."""
        asked = self._next.get(client, deque())
        while asked and asked[0][0] <= self._now:
            asked.popleft()
        while asked and not asked[-1][1].wanted:
            asked.pop()
        return max(self._now, asked[-1][0]) if asked else self._now

    def _wake(self) -> None:
        """Call the first worker that waits; it calls the next, if it leaves something."""
        if self._idle:
            first = min(self._idle)
            self._idle.remove(first)
            self._called[first].notify()

    def _take(self, worker: int) -> tuple[Kind, list[Job], int] | None:
        """The next batch, and on how many threads it is to run; none when there will be no more."""
        with self._lock:
            while True:
                while not self._jobs and not self._closed:
                    self._next.clear()  # with nothing waiting, everyone begins anew
                    self._idle.add(worker)
                    self._called[worker].wait()
                if self._closed:
                    return None
                kind = min(self._jobs, key=lambda kind: self._jobs[kind][0])
                self._now = max(self._now, self._jobs[kind][0].turn)
                shorter = sorted(filter(kind.takes, self._jobs), key=lambda one: -one.width)
                free = len(self._workers) - self._running
                count = sum(len(self._jobs[one]) for one in (kind, *shorter))
                most, batch = min(kind.most, max(FEW, -(-count // free))), list[Job]()
                for one in (kind, *shorter):
                    self._fill(batch, one, most)
                if batch:
                    alone = worker == 0 and not self._jobs and not self._running
                    self._running += 1
                    if self._jobs:
                        self._wake()
                    return kind, batch, self._threads[0 if alone else 1]

    def _fill(self, batch: list[Job], kind: Kind, most: int) -> None:
        """Move those who wait for a batch of a kind into this one, and none who have left."""
        heap = self._jobs[kind]
        while heap and len(batch) < most:
            job = heapq.heappop(heap)
            self.waiting -= kind.width
            if job.ticket.wanted:
                batch.append(job)
            else:
                job.answer.cancel()
        if not heap:
            del self._jobs[kind]

    def _work(self, worker: int) -> None:
        while (taken := self._take(worker)) is not None:
            kind, batch, threads = taken
            torch.set_num_threads(threads)  # of this thread alone
            try:
                made = self._run(kind, batch)
            except BaseException as error:  # told to those who wait; the worker goes on
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
                if kind.search.sampling is None:
                    for job, ranked in zip(batch, made, strict=True):
                        self._kept[job.kind, job.text] = ranked
                    while len(self._kept) > self.most_kept:
                        self._kept.popitem(last=False)
            for job, ranked in zip(batch, made, strict=True):
                job.answer.set_result(ranked)

    def _run(self, kind: Kind, batch: list[Job]) -> list[Ranked]:
        def between_steps() -> None:
            if self._closed:
                raise Closed
            if not any(job.ticket.wanted for job in batch):
                raise Unwanted

        translate, texts = batch[0].translator.translate, [job.text for job in batch]
        with torch.inference_mode():
            return translate(texts, search=kind.search, placeholders=kind.placeholders, between_steps=between_steps)

    def close(self) -> None:
        """End everything: whoever still waits is told so, and no batch is finished that nobody will get."""
        with self._lock:
            self._closed = True
            left = [job for heap in self._jobs.values() for job in heap]
            self._jobs.clear()
            for called in self._called:
                called.notify()
        for job in left:
            job.answer.set_exception(Closed())
        for worker in self._workers:
            worker.join()
