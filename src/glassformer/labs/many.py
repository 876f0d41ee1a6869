"""Several labs, their seeds dealt out to a few processes of one thread each."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor

from glassformer.labs.catalogue import find
from glassformer.labs.lab import Lab
from glassformer.labs.running import Ran, Tried, ran_all, run_seed

PROCESSES = 2

Told = Callable[[Lab], None]


def run_labs(labs: Sequence[Lab], seeds: Sequence[int], told: Told) -> Iterator[Ran]:
    """Each lab as soon as it and those before it are done; `told` is called after each seed of a lab.

    Labs that take times come last, when nothing runs beside them. A single lab is run here: starting a process takes
    longer than most labs.
    """
    beside = [lab for lab in labs if not lab.alone]
    if len(beside) > 1:
        yield from dealt_out(beside, seeds, told)
    else:
        yield from (here(lab, seeds, told) for lab in beside)
    for lab in labs:
        if lab.alone:
            yield here(lab, seeds, told)


def here(lab: Lab, seeds: Sequence[int], told: Told) -> Ran:
    tried = []
    for seed in seeds:
        tried.append(run_seed(lab, seed))
        told(lab)
    return ran_all(lab, seeds, tried)


def dealt_out(labs: Sequence[Lab], seeds: Sequence[int], told: Told) -> Iterator[Ran]:
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads half alive
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(min(PROCESSES, len(labs) * len(seeds)), context, prepare)
    try:
        asked: dict[str, list[Future[Tried]]] = {
            lab.name: [pool.submit(run_named, lab.name, seed) for seed in seeds] for lab in labs
        }
        for lab in labs:
            tried = []
            for future in asked[lab.name]:
                tried.append(future.result())
                told(lab)
            yield ran_all(lab, seeds, tried)
    except BaseException:  # Ctrl-C, or nobody wants the rest: what has begun may take minutes
        for process in multiprocessing.active_children():
            if process not in others:
                process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def prepare() -> None:
    """In each process: one thread, and a Ctrl-C at the terminal is its parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)


def run_named(name: str, seed: int) -> Tried:
    return run_seed(find(name), seed)
