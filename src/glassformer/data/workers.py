"""Work on chunks of text in processes of their own, in order; where there are few cores, in this one.

The processes are started as plain commands, not by `multiprocessing`: that would run the user's script again, or copy
a process whose threads and GPU cannot be copied. One that dies is not missed: its chunk is done here.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from typing import Any, TypeVar

from glassformer.common.version import IMPORT_ROOT

Job = TypeVar("Job")
Result = TypeVar("Result")

FEW_CORES = 4  # below, the threads of the tokenizers' library use them as well
FEW_JOBS = 4  # done here before a process would have started
MOST = 12  # processes; the one that reads cannot feed many more
SERVE = "from glassformer.data.workers import serve; serve()"


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterator[Result]:
    """The results of `work`, which can be pickled, in the order of `jobs`, a few of which are read ahead."""
    jobs = iter(jobs)
    few = list(islice(jobs, FEW_JOBS))
    count = min(MOST, cores() - 1)
    if cores() < FEW_CORES or len(few) < FEW_JOBS:
        yield from map(work, chain(few, jobs))
        return
    idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
    ended = threading.Event()
    started = [start(work) for _ in range(count)]
    for worker in started:
        idle.put(worker)

    def ask(job: Job) -> Result:
        worker = idle.get()
        try:
            send(worker.stdin, job)
            assert worker.stdout is not None
            result: Result = pickle.load(worker.stdout)
            return result
        except (OSError, EOFError, pickle.UnpicklingError):
            if ended.is_set():
                raise
            return work(job)  # an error of the work itself is then raised here, where it is understood
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(count)
    waiting: deque[Future[Result]] = deque()
    try:
        for job in chain(few, jobs):
            waiting.append(pool.submit(ask, job))
            if len(waiting) > 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        ended.set()
        for worker in started:
            worker.kill()
        pool.shutdown(cancel_futures=True)
        for worker in started:
            worker.communicate()


def start(work: Callable[[Any], Any]) -> subprocess.Popen[bytes]:
    here = str(IMPORT_ROOT)
    paths = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    worker = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        env=os.environ | {"PYTHONPATH": paths, "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with suppress(OSError):  # it has died; whoever asks it finds out
        send(worker.stdin, work)
    return worker


def send(stream: Any, thing: Any) -> None:
    pickle.dump(thing, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def serve() -> None:
    """The other end: the work first, then its jobs, until there are none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it hears of it, and ends this
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    try:
        work = pickle.load(given)
        while True:
            send(answers, work(pickle.load(given)))
    except (EOFError, BrokenPipeError):
        return
