"""Decoding beside Hugging Face `generate` and, on a CPU, CTranslate2.

All have one size and write the same number of tokens. CTranslate2 runs our very weights; Hugging Face's Marian, which
is Post-LN, has random ones of its own. Each contestant lives in a process of its own and sleeps while others run:
the threads of one would disturb another.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from benchmarks.peers import marian
from glassformer.common.errors import GlassformerError
from glassformer.decode import generate
from glassformer.decode.precision import Precision, prepare
from glassformer.deploy.export.ctranslate2 import spec_of
from glassformer.model import EncoderDecoder, ModelConfig

BASE = ModelConfig(vocab_size=10_000, d_model=512, heads=8, d_ff=2048, layers=6, end_id=None)  # never ends early
SOURCE = 20
OUTPUT = {"cpu": 24, "cuda": 30}
SHAPES = {"cpu": ((32, 1), (32, 4), (1, 1)), "cuda": ((1, 1), (1, 4), (64, 1), (64, 4), (1024, 1), (1024, 4))}
AGAIN = 5
CONTESTANTS = {
    "cpu": (
        "glassformer fp32", "glassformer bf16", "glassformer int8", "hugging face fp32", "ctranslate2 float32",
        "ctranslate2 int8",
    ),
    "cuda": ("glassformer bf16", "hugging face bf16"),
}  # fmt: skip

Run = Callable[[int, int], Any]  # for so many sources, with so many beams


@dataclass(frozen=True)
class Row:
    name: str
    beam: int
    rows: int
    tokens: float  # per second


def ctranslate2_folder(model: EncoderDecoder, folder: Path) -> None:
    """The model's weights as a CTranslate2 model; one that never ends has a piece for the end all the same."""
    words = ["<pad>", "<s>", "</s>", "<unk>", *(f"t{i}" for i in range(4, model.config.vocab_size))]
    spec = spec_of(model, words, words)
    spec.optimize()
    spec.save(str(folder))


def ctranslate2_engine(model: EncoderDecoder, kind: str) -> Any:
    """CTranslate2 with the model's weights, in numbers of this kind."""
    import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        ctranslate2_folder(model, Path(folder))
        return ctranslate2.Translator(
            folder, device="cpu", compute_type=kind, intra_threads=torch.get_num_threads(), inter_threads=1
        )


def contestant(name: str, device: str) -> Run:
    """What is timed: a function that writes OUTPUT tokens for each source."""
    model = EncoderDecoder(BASE).eval().to(device)
    length = OUTPUT[device]
    who, kind = name.rsplit(" ", 1)
    if who == "glassformer":
        fast = prepare(model, cast(Precision, kind))
        return lambda rows, beam: generate(fast, sources(rows, device), beam=beam, max_new_tokens=length)
    if who == "hugging face":
        peer = marian(BASE).eval().to(device, torch.bfloat16 if kind == "bf16" else torch.float32)

        @torch.inference_mode()
        def generated(rows: int, beam: int) -> None:
            limits = {"max_new_tokens": length, "min_new_tokens": length, "early_stopping": "never"}
            peer.generate(sources(rows, device), num_beams=beam, do_sample=False, **limits)

        return generated
    engine = ctranslate2_engine(model, kind)

    def translated(rows: int, beam: int) -> None:
        words = [[f"t{i}" for i in row] for row in sources(rows, device).tolist()]
        limits = {"max_decoding_length": length, "min_decoding_length": length}
        engine.translate_batch(words, beam_size=beam, max_batch_size=0, **limits)

    return translated


def sources(rows: int, device: str) -> Tensor:
    return torch.randint(4, BASE.vocab_size, (rows, SOURCE), generator=torch.Generator().manual_seed(0)).to(device)


def work(name: str, device: str) -> None:
    """A worker: for each line "rows beam", run and say how long it took.

    A single sentence is soon over, so it is written several times for a steadier figure.
    """
    run = contestant(name, device)
    print("ready", flush=True)
    for line in sys.stdin:
        rows, beam = map(int, line.split())
        times = AGAIN if rows == 1 else 1
        spent = sum(seconds(partial(run, rows, beam), device) for _ in range(times))
        print(json.dumps(spent / times), flush=True)


def asked(worker: subprocess.Popen[str], what: str) -> Any:
    """What a worker that was sent this line answers."""
    assert worker.stdin
    assert worker.stdout
    worker.stdin.write(f"{what}\n")
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def decoding(device: str = "cpu", rounds: int = 5, say: Callable[[str], None] = print) -> list[Row]:
    """Output tokens per second for each shape, everyone in turn within a round."""
    if device == "cpu" and find_spec("ctranslate2") is None:
        raise GlassformerError("the benchmark runs CTranslate2 beside us: pip install ctranslate2")
    workers = {}
    for name in CONTESTANTS[device]:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.decode", name, device]
        workers[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for name, worker in workers.items():
        assert worker.stdout
        if worker.stdout.readline().strip() != "ready":
            raise GlassformerError(f"{name} did not start; see its message above")
        say(f"{name} is ready")

    table = []
    for rows, beam in SHAPES[device]:
        times: dict[str, list[float]] = {name: [] for name in workers}
        for round_ in range(-2, rounds):  # the first two are for caches to fill and kernels to load
            for name, worker in workers.items():
                spent = asked(worker, f"{rows} {beam}")
                if round_ >= 0:
                    times[name].append(spent)
        say(f"batch {rows}, beam {beam}: {rounds} rounds")
        table += [Row(name, beam, rows, rows * OUTPUT[device] / statistics.median(t)) for name, t in times.items()]
    for worker in workers.values():
        worker.communicate()
    return table


@dataclass(frozen=True)
class Growth:
    prefix: int
    cached: float  # seconds of one step
    uncached: float


@torch.inference_mode()
def growth(device: str) -> list[Growth]:
    """What one more token costs after a prefix, with the cache and by reading the whole prefix again."""
    model = prepare(EncoderDecoder(BASE).eval().to(device), "fp32")
    memory = model.encode(sources(8, device))
    found = []
    for prefix in (32, 128, 512):
        tgt = torch.randint(4, BASE.vocab_size, (8, prefix + 8), device=device)
        cache = model.new_cache(prefix + 8)
        model.decode(tgt[:, :prefix], memory, cache=cache)
        cached, uncached = [], []
        for step in range(prefix, prefix + 8):
            one_more = partial(model.decode, tgt[:, step : step + 1], memory, cache=cache)
            cached.append(seconds(one_more, device))
        for _ in range(3):
            uncached.append(seconds(partial(model.decode, tgt[:, : prefix + 1], memory), device))
        found.append(Growth(prefix, statistics.median(cached), statistics.median(uncached)))
    return found


def seconds(call: Callable[[], object], device: str) -> float:
    begin = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


if __name__ == "__main__":
    work(*sys.argv[1:3])
