"""Training throughput on a GPU, beside compiled peers.

Compiling takes most of the time, so each contestant compiles in a process of its own, all at once; then they are
timed one after the other, alone on the device. Ours is the real training path: `Stepper`, padding masks included.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from glassformer.bench.peers import contestants
from glassformer.bench.train import stepper
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.text import Batches, BatchOptions, Corpus, Tokenizer, TokenizerOptions, prepare, read_pairs
from glassformer.train.feed import share
from glassformer.train.parallel import World
from glassformer.train.recipe import Train
from glassformer.train.step import Inputs, Stepper

BASE = ModelConfig(
    vocab_size=10_000,
    d_model=512,
    heads=8,
    d_ff=2048,
    layers=6,
    dropout=0.1,
    attention_dropout=0.0,
    activation_dropout=0.0,
)
SHAPES = ((512, 32), (2048, 32))
MATRIX_RATE = 790e12  # bf16 operations a second in a large matrix product on an H200, measured
STEPS = 20
REAL_SHAPES = 4  # of real batches; each takes as long to compile as any other


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


def warmed(step: Callable[[], None], tokens: int) -> Callable[[], float]:
    """Run a step until it is compiled and recorded; return what measures its tokens per second."""
    timed([step] * 4)
    return lambda: STEPS * tokens / timed([step] * STEPS)


def random_rows(rows: int, length: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(3, BASE.vocab_size, (rows, length), generator=generator) for _ in range(3)]


def peer(name: str) -> list[tuple[str, Callable[[], float]]]:
    """A compiled peer, warmed up: for each shape a function that gives its target tokens per second."""
    torch._dynamo.config.recompile_limit = 64
    model = contestants(BASE)[name].cuda()
    compiled: Any = torch.compile(model, dynamic=False)
    ready = []
    for rows, length in SHAPES:
        src, tgt, labels = (tensor.cuda() for tensor in random_rows(rows, length))
        step = stepper(compiled, src, tgt, labels, bf16=True)
        ready.append((f"{rows}x{length}", warmed(step, rows * length)))
    return ready


def ours() -> list[tuple[str, Callable[[], float]]]:
    world = World(0, 1, torch.device("cuda"))
    trainer = Stepper(EncoderDecoder(BASE).cuda(), Train(compile=True, precision="bf16"), world, 0)
    ready = []
    for rows, length in SHAPES:
        src, tgt, labels = random_rows(rows, length)
        inputs = Inputs(src, torch.ones_like(src, dtype=torch.bool), tgt, labels, torch.tensor(1 / src.numel()))
        step = partial(trainer, inputs.to(world.device), 1e-4, 0)
        ready.append((f"{rows}x{length}", warmed(step, rows * length)))
    return ready


def bucketed(folder: Path) -> list[tuple[str, Callable[[], float]]]:
    """Real batches of a corpus in a few shapes: the speed in real target tokens, padding not counted."""
    corpus = Corpus(src=folder / "train.en.gz", tgt=folder / "train.de.gz")
    tokenizer = Tokenizer.train(read_pairs(corpus), TokenizerOptions(kind="words", vocab_size=BASE.vocab_size))
    store = prepare([corpus], tokenizer, Path(tempfile.mkdtemp()) / "store")
    batches = Batches(store, BatchOptions(tokens=SHAPES[0][0] * SHAPES[0][1], shapes=REAL_SHAPES))
    world = World(0, 1, torch.device("cuda"))
    trainer = Stepper(EncoderDecoder(BASE).cuda(), Train(compile=True, precision="bf16"), world, 0)
    plan = batches.epoch(0)
    made = [(batch, share(batch, world)) for batch in plan]
    for shape in range(len(batches.shapes)):
        index = next((i for i in range(len(plan)) if plan.shape(i) == batches.shapes[shape]), None)
        if index is not None:
            timed([partial(trainer, made[index][1], 1e-4, 0)] * 3)
    print(f"padding {plan.padding_share:.3f}", flush=True)

    def speed() -> float:
        steps = [partial(trainer, inputs, 1e-4, 0) for _, inputs in made]
        return sum(batch.tokens for batch, _ in made) / timed(steps)

    return [("real batches", speed)]


def work(name: str, data: str) -> None:
    """A worker: compile, say so, wait to be called, measure."""
    ready = ours() if name == "glassformer" else bucketed(Path(data)) if name == "real" else peer(name)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps({shape: speed() for shape, speed in ready}), flush=True)


def throughput(data: Path | None, say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Target tokens per second of everyone, by shape."""
    names = ["glassformer", "hugging face marian", "torch.nn.Transformer", *(["real"] if data else [])]
    workers = {}
    for name in names:
        command = [sys.executable, "-W", "ignore", "-m", "glassformer.bench.throughput", name, str(data or "")]
        workers[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    found: dict[str, dict[str, float]] = {}
    padding = None
    for name, worker in workers.items():
        assert worker.stdout
        for line in worker.stdout:
            if line.startswith("padding"):
                padding = float(line.split()[1])
            if line.strip() == "ready":
                say(f"{name}: compiled")
                break
    for name, worker in workers.items():
        output, _ = worker.communicate("go\n")
        if worker.returncode == 0:
            found[name] = json.loads(output.strip().splitlines()[-1])
        else:
            say(f"{name}: failed")
    if padding is not None and "real" in found:
        found["real"]["padding share"] = padding
    return found


if __name__ == "__main__":
    work(*sys.argv[1:3])
