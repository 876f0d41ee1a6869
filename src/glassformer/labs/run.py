"""A lab run with several seeds, here, in a few processes, or in one for a server, and what it found as JSON."""

from __future__ import annotations

import math
import multiprocessing
import os
import platform
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from glassformer.common.errors import ConfigError, RunError
from glassformer.labs.experiment import VERDICTS, CheckOutcome, Finding, Lab
from glassformer.labs.seeds import SEEDS, MergedFinding, merge
from glassformer.labs.spread import Spread

LARGEST_SEED = 2**31 - 1  # of the first; the others follow it
MOST_SEEDS = 100
PROCESSES = 2  # of one thread each, for several labs

SeedResult = tuple[Finding, float]  # what one seed gave, and the seconds it took
OnSeed = Callable[[Lab], None]  # called after each seed of a lab
Reports = dict[str, dict[str, Any]]  # by language


@dataclass(frozen=True)
class LabRun:
    lab: Lab
    finding: MergedFinding
    seeds: Sequence[int]
    seconds: float  # of all seeds together

    def as_dict(self, language: str = "en") -> dict[str, Any]:
        """The run's report, ready for JSON."""
        numbers = self.finding.named_numbers(language)
        return {
            **self.lab.as_dict(language),
            "seed": self.seeds[0],
            "seeds": list(self.seeds),
            "seconds": round(self.seconds, 2),
            "verdict": self.finding.verdict.value,
            "verdict_text": VERDICTS[self.finding.verdict].say(language),
            "summary": self.finding.summary.say(language),
            "numbers": {name: finite(spread.mean) for name, spread in numbers.items()},
            "spreads": {name: spread_as_dict(spread) for name, spread in numbers.items()},
            "checks": [
                {
                    "text": merged.check.text.say(language),
                    "value": finite(merged.spread.mean),
                    **spread_as_dict(merged.spread),
                    "low": finite(merged.check.low),
                    "high": finite(merged.check.high),
                    "extent": merged.check.extent,
                    "passed": merged.outcome is CheckOutcome.PASSED,
                    "outcome": merged.outcome.value,
                }
                for merged in self.finding.checks
            ],
            "figure": self.finding.figure.as_dict(language),
        }


def finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)  # JSON has no infinity


def spread_as_dict(spread: Spread) -> dict[str, Any]:
    return {"interval": [finite(spread.low), finite(spread.high)], "values": list(map(finite, spread.values))}


def run(lab: Lab, seed: int = 0, seeds: int = SEEDS) -> LabRun:
    """The experiment from `seed` and those that follow it, one after the other."""
    return run_here(lab, seed_range(seed, seeds))


def run_here(lab: Lab, seeds: Sequence[int], on_seed: OnSeed = lambda lab: None) -> LabRun:
    results = []
    for seed in seeds:
        results.append(run_seed(lab, seed))
        on_seed(lab)
    return merge_results(lab, seeds, results)


def merge_results(lab: Lab, seeds: Sequence[int], results: Sequence[SeedResult]) -> LabRun:
    return LabRun(lab, merge([finding for finding, _ in results]), seeds, sum(seconds for _, seconds in results))


def run_seed(lab: Lab, seed: int) -> SeedResult:
    """The experiment from one seed, on one core; torch's random state and threads are as before afterwards."""
    with on_one_core():
        begin = time.perf_counter()
        finding = lab.run(seed)
        return finding, time.perf_counter() - begin


def seed_range(seed: int, seeds: int) -> range:
    if not 1 <= seeds <= MOST_SEEDS:
        raise ConfigError(f"--seeds {seeds} is not between 1 and {MOST_SEEDS}; {SEEDS} is the usual number")
    if not 0 <= seed <= LARGEST_SEED:
        raise ConfigError(f"seed {seed} is not between 0 and {LARGEST_SEED}; 0 is the usual one")
    return range(seed, seed + seeds)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Tensors this small gain nothing from more cores, and lose much where other programs are at work.

    torch's random state and number of threads are restored at the end whatever happens. A thread that is born meanwhile
    keeps the one core, so a server runs its labs in a process of their own.
    """
    import torch

    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        try:
            torch.set_num_threads(1)
            yield
        finally:
            torch.set_num_threads(threads)


def run_labs(labs: Sequence[Lab], seeds: Sequence[int], on_seed: OnSeed) -> Iterator[LabRun]:
    """Each lab as soon as it and those before it are done.

    Labs that measure times come last, when nothing runs beside them. A single lab is run here: starting a process takes
    longer than most labs.
    """
    together = [lab for lab in labs if not lab.alone]
    if len(together) > 1:
        yield from run_in_pool(together, seeds, on_seed)
        together = []
    for lab in [*together, *(lab for lab in labs if lab.alone)]:
        yield run_here(lab, seeds, on_seed)


def run_in_pool(labs: Sequence[Lab], seeds: Sequence[int], on_seed: OnSeed) -> Iterator[LabRun]:
    context = multiprocessing.get_context("spawn")  # a fork would inherit torch's threads half alive
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(min(PROCESSES, len(labs) * len(seeds)), context, init_process)
    try:
        futures: list[list[Future[SeedResult]]] = [[pool.submit(run_seed, lab, seed) for seed in seeds] for lab in labs]
        for lab, own in zip(labs, futures, strict=True):
            results = []
            for future in own:
                results.append(future.result())
                on_seed(lab)
            yield merge_results(lab, seeds, results)
    except BaseException:  # Ctrl-C, or the caller wants no more: what has begun may take minutes
        for process in multiprocessing.active_children():
            if process not in others:
                process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def init_process() -> None:
    """In each process: one thread, and a Ctrl-C at the terminal is its parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)


class LabWorker:
    """Runs labs for a server in a process, where the one core and the seed that a lab sets stay.

    The process starts with the first lab and is kept for the next, since the imports take seconds.
    """

    def __init__(self) -> None:
        self.process: SpawnProcess | None = None

    def run(self, name: str, seed: int, seeds: int = SEEDS) -> Reports:
        """The lab's reports, however long they take; the caller runs one lab at a time."""
        if self.process is None or not self.process.is_alive():
            self.close()
            context = multiprocessing.get_context("spawn")
            self.pipe, other = context.Pipe()
            process = context.Process(target=answer_requests, args=(other,), daemon=True)
            process.start()
            other.close()  # so that the end of the process is seen
            self.process = process
        reports: Reports = {}
        try:
            self.pipe.send((name, seed, seeds))
            reports = self.pipe.recv()
        except (OSError, EOFError):  # it has ended, perhaps before that can be seen; the next lab must not meet it
            self.close()
        if not reports:
            raise RunError(f"the lab {name} (seed {seed}) broke off; the terminal that serves it may say why")
        return reports

    def close(self) -> None:
        """End it, whatever it is doing."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.join()


def answer_requests(pipe: Connection) -> None:
    """Answer each request until there can be no more."""
    from glassformer.labs import find
    from glassformer.labs.figures import matplotlib_installed, svg

    init_process()
    while True:
        try:
            name, seed, seeds = pipe.recv()
        except EOFError:
            return
        try:
            lab_run = run(find(name), seed, seeds)
            figure = lab_run.finding.figure
            reports = {
                language: lab_run.as_dict(language) | {"svg": svg(figure, language) if matplotlib_installed() else None}
                for language in ("en", "zh")
            }
        except Exception:  # whatever breaks in a lab, the next request is still answered
            traceback.print_exc()
            reports = {}
        pipe.send(reports)


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    import torch

    from glassformer.common.version import __version__

    return {
        "glassformer": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, one core",
    }
