"""Training throughput on a GPU, beside compiled peers.

Compiling takes most of the time, so each contestant compiles in a process of its own, all at once; then they are
timed one after the other, alone on the device. Ours is the real training path: `Stepper`, padding masks included. The
batches of a real corpus are an epoch's, every one of them run, those of each shape in a process of their own.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers import contestants
from benchmarks.train import SMALL, stepper
from glassformer.data import (
    Batch,
    Batches,
    BatchOptions,
    Corpus,
    Shape,
    Store,
    Tokenizer,
    TokenizerOptions,
    prepare,
    read_pairs,
)
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.train.feed import local_rows
from glassformer.train.options import Train
from glassformer.train.parallel import World
from glassformer.train.step import Inputs, Stepper

BASE = replace(SMALL, vocab_size=10_000, d_model=512, heads=8, d_ff=2048, layers=6)
SHAPES = ((512, 32), (2048, 32))
MATRIX_RATE = 790e12  # bf16 operations a second in a large matrix product on an H200, measured
STEPS = 20
REAL = BatchOptions(tokens=SHAPES[0][0] * SHAPES[0][1])  # real batches: the first shape's budget, a recipe's shapes

Measure = Callable[[], float]
Job = tuple[str, ...]  # contestant, number of the shape and, for real batches, the folder of the store


@dataclass(frozen=True)
class RealShape:
    """The batches of one shape in an epoch of a real corpus."""

    shape: Shape
    batches: int
    tokens: int  # target tokens, padding not counted
    seconds: float


@dataclass(frozen=True)
class Throughput:
    speeds: dict[str, dict[str, float]]  # target tokens per second, by contestant and shape
    real: list[RealShape]  # of the corpus, where one was given; a worker that failed leaves NaN seconds
    padding: float = 0.0  # of all positions of the real batches

    @property
    def real_speed(self) -> float:
        return sum(shape.tokens for shape in self.real) / sum(shape.seconds for shape in self.real)


def operations(config: ModelConfig, length: int) -> float:
    """Floating-point operations of a training step per target token, the source being as long."""
    width, layers = config.d_model, config.layers
    feed_forward = 2 * width * config.d_ff
    weights = (
        layers * (4 * width**2 + feed_forward) + layers * (8 * width**2 + feed_forward) + width * config.vocab_size
    )
    attention = 3 * layers * 2 * length * width
    return 6.0 * (weights + attention)


def timed(steps: Iterable[Callable[[], None]]) -> float:
    """Seconds that the steps take on the device."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for step in steps:
        step()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def compiled(step: Callable[[], None]) -> None:
    """Take a step for the first time, and leave the device's memory to the others until it is measured."""
    timed([step])
    torch.cuda.empty_cache()


def static_speed(step: Callable[[], None], tokens: int) -> Measure:
    """What measures a step's tokens per second."""
    compiled(step)

    def measure() -> float:
        timed([step] * 4)
        return STEPS * tokens / timed([step] * STEPS)

    return measure


def random_rows(rows: int, length: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(3, BASE.vocab_size, (rows, length), generator=generator) for _ in range(3)]


def peer(name: str, rows: int, length: int) -> Measure:
    """A compiled peer's target tokens per second."""
    fast: Any = torch.compile(contestants(BASE)[name].cuda(), dynamic=False)
    src, tgt, labels = (tensor.cuda() for tensor in random_rows(rows, length))
    return static_speed(stepper(fast, src, tgt, labels, bf16=True), rows * length)


def our_stepper() -> Stepper:
    world = World(0, 1, torch.device("cuda"))
    return Stepper(EncoderDecoder(BASE).cuda(), Train(compile=True, precision="bf16"), world)


def ours(rows: int, length: int) -> Measure:
    trainer = our_stepper()
    src, tgt, labels = random_rows(rows, length)
    given = {"labels": labels, "src": src, "tgt": tgt, "src_mask": torch.ones_like(src, dtype=torch.bool)}
    inputs = Inputs(given, torch.tensor(1 / src.numel()))
    return static_speed(partial(trainer, inputs.to(trainer.world.device), 1e-4, 0), rows * length)


def real_shape(store: Path, number: int) -> Measure:
    """The seconds of an epoch's batches of one shape, handed over from the CPU's memory as in training."""
    trainer = our_stepper()
    part = list(by_shape(Batches(Store(store), REAL)).values())[number]
    steps = [partial(trainer, local_rows(batch, trainer.world), 1e-4, 0) for batch in part]
    compiled(steps[0])

    def measure() -> float:
        timed([steps[0]] * 4)
        rounds = -(-STEPS // len(steps))
        return timed(steps * rounds) / rounds

    return measure


def by_shape(batches: Batches) -> dict[Shape, list[Batch]]:
    """An epoch's batches, those of each shape together."""
    plan = batches.epoch(0)
    parts: dict[Shape, list[Batch]] = {}
    for i in range(len(plan)):
        parts.setdefault(plan.shape(i), []).append(plan[i])
    return dict(sorted(parts.items(), key=lambda part: part[0].width))


def work(name: str, number: str, store: str = "") -> Measure:
    """Compile one shape for a contestant."""
    if store:
        return real_shape(Path(store), int(number))
    shape = SHAPES[int(number)]
    return ours(*shape) if name == "glassformer" else peer(name, *shape)


def when_called(work: Callable[..., Measure]) -> None:
    """A worker: compile, say so, wait to be called, measure."""
    measure = work(*sys.argv[1:])
    print("ready", flush=True)
    sys.stdin.readline()
    print(measure(), flush=True)


def prepared(folder: Path, out: Path) -> Batches:
    """The corpus in `folder` as batches."""
    corpus = Corpus(src=folder / "train.en.gz", tgt=folder / "train.de.gz")
    tokenizer = Tokenizer.train(read_pairs(corpus), TokenizerOptions(kind="words", vocab_size=BASE.vocab_size))
    return Batches(prepare([corpus], tokenizer, out), REAL)


def throughput(data: Path | None, say: Callable[[str], None]) -> Throughput:
    """Measure everyone; `data` is a folder with a corpus for real batches."""
    names = ("glassformer", "hugging face marian", "torch.nn.Transformer")
    jobs: list[Job] = [(name, str(n)) for n in reversed(range(len(SHAPES))) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        parts: dict[Shape, list[Batch]] = {}
        padding = 0.0
        if data is not None:
            batches = prepared(data, Path(folder))
            parts, padding = by_shape(batches), batches.epoch(0).padding_share
            jobs += [("real", str(n), folder) for n in range(len(parts))]
        found = measured(jobs, say)
    speeds = {
        name: {"{}x{}".format(*shape): found[name, str(n)] for n, shape in enumerate(SHAPES) if (name, str(n)) in found}
        for name in names
    }
    real = [
        RealShape(shape, len(part), sum(b.tokens for b in part), found.get(("real", str(n), folder), math.nan))
        for n, (shape, part) in enumerate(parts.items())
    ]
    return Throughput(speeds, real, padding)


def measured(jobs: list[Job], say: Callable[[str], None], module: str = "benchmarks.throughput") -> dict[Job, float]:
    """What the worker of each job, a process that runs `module`, reports; one that fails is left out."""
    threads = max(1, (os.cpu_count() or 1) // len(jobs))
    environment = {"TORCHINDUCTOR_COMPILE_THREADS": str(threads), "OMP_NUM_THREADS": "1", **os.environ}
    workers = {}
    for job in jobs:
        command = [sys.executable, "-W", "ignore", "-m", module, *job]
        workers[job] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
    begin = time.perf_counter()
    for worker in workers.values():
        assert worker.stdout
        while (line := worker.stdout.readline()) and line != "ready\n":
            continue
    say(f"{len(jobs)} shapes compiled in {time.perf_counter() - begin:.0f} s")
    found = {}
    for job, worker in workers.items():
        try:
            output, _ = worker.communicate("go\n")
        except BrokenPipeError:
            output = ""
        if worker.wait() == 0:
            found[job] = float(output.split()[-1])
        say(f"{job[0]} {job[1]}: {'measured' if job in found else 'failed'}")
    return found


if __name__ == "__main__":
    when_called(work)
