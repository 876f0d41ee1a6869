"""What it costs to look inside: building a trace, and having been traced."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

import glassformer as gf
from glassformer.decode import generate
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.model.transformer import share_weights

LARGE = ModelConfig(vocab_size=8000, d_model=512, heads=8, d_ff=2048, layers=6, end_id=None)
SMALL = ModelConfig(vocab_size=800, d_model=128, heads=4, d_ff=512, layers=2, end_id=None)
TOKENS = 40


@dataclass(frozen=True)
class Cost:
    built: float  # seconds of a trace of LARGE, TOKENS in and out, with its manifest and blob
    bytes: int
    decoded: float  # processor seconds of decoding with SMALL
    slower: float  # how much of that more a model takes that has been traced: the median of pairs


def cost(rounds: int = 200) -> Cost:
    large = EncoderDecoder(LARGE).eval()
    ids = list(range(5, 5 + TOKENS))
    sizes: list[int] = []

    def build() -> None:
        found = gf.trace(large, ids, max_new_tokens=TOKENS)
        found.manifest()
        sizes.append(len(found.blob()))

    build()
    built = statistics.median(seconds(build, time.perf_counter) for _ in range(5))
    plain = EncoderDecoder(SMALL).eval()
    seen = share_weights(plain)  # the same weights at the same addresses
    src = torch.randint(4, SMALL.vocab_size, (8, 12), generator=torch.Generator().manual_seed(0))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a second thread's waiting would be counted as work
    spent, ratios = [], []
    for round_ in range(rounds):
        gf.trace(seen, ids[:10], max_new_tokens=10)
        pair = {}
        for model in (plain, seen) if round_ % 2 else (seen, plain):
            pair[model] = seconds(partial(generate, model, src, max_new_tokens=24), time.process_time)
        spent.append(pair[plain])
        ratios.append(pair[seen] / pair[plain])
    torch.set_num_threads(threads)
    return Cost(built, sizes[0], statistics.median(spent), statistics.median(ratios) - 1)


def seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    begin = clock()
    call()
    return clock() - begin
