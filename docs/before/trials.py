"""The trials of chapter 0: the same task, the same training, three models of one size; and one layer by itself."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from recurrent import Recurrent
from torch import nn
from transformer import PAD, Attention, Config, Task, Transformer, greedy, loss, measure, table

Pair: TypeAlias = tuple[list[int], list[int]]
MODELS: dict[str, Callable[[int], nn.Module]] = {  # all of 262 to 264 thousand weights
    "recurrent": lambda vocabulary: Recurrent(vocabulary, width=88, attention=False),
    "with attention": lambda vocabulary: Recurrent(vocabulary, width=84),
    "transformer": lambda vocabulary: Transformer(Config(vocabulary)),
}
# The highest rate of each: the best of 0.001, 0.002, 0.004 and 0.008 with seed 0, which no table is made with.
RATES = {"recurrent": 0.008, "with attention": 0.008, "transformer": 0.004}
WARM_UP, BATCH = 100, 32
DIGITS = {
    "one": "ein", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs", "seven": "sieben",
    "eight": "acht", "nine": "neun",
}  # fmt: skip
LONGEST = 12  # digits of a list, in training
WIDTH = 64  # of the layers that are timed


class Lists:
    """Digits in a row, each of one piece: `seven two nine` is to give `sieben zwei neun`.

    Nothing of it is hard but to keep it: the first word is written when all the others have been read.
    """

    def __init__(self, task: Task) -> None:
        sources, targets = (task.tokenizer.encode_source(DIGITS), task.tokenizer.encode_target(DIGITS.values()))
        self.digits = [(source, target) for (source,), (target,) in zip(sources, targets, strict=True)]

    def pair(self, chance: random.Random, length: int) -> Pair:
        sources, targets = zip(*chance.choices(self.digits, k=length), strict=True)
        return list(sources), list(targets)

    def some(self, chance: random.Random, size: int) -> list[Pair]:
        """Pairs of 1 to 12 digits."""
        return [self.pair(chance, chance.randint(1, LONGEST)) for _ in range(size)]


def learn(
    kind: str, task: Task, draw: Callable[[random.Random, int], list[Pair]], steps: int, seed: int
) -> tuple[nn.Module, float]:
    """A model of this kind after so many steps, and the processor's seconds for one of them."""
    torch.manual_seed(seed)
    chance = random.Random(seed)
    model = MODELS[kind](task.tokenizer.tgt_size)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    began = time.process_time()
    for step in range(1, steps + 1):
        src, tgt, labels = task.batch(draw(chance, BATCH))
        for group in optimizer.param_groups:
            group["lr"] = RATES[kind] * min(step / WARM_UP, (WARM_UP / step) ** 0.5)
        optimizer.zero_grad()
        loss(model(src, tgt), labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # recurrent networks need it
        optimizer.step()
    return model.eval(), (time.process_time() - began) / steps


def share_right(model: nn.Module, pairs: Sequence[Pair]) -> float:
    sources, targets = zip(*pairs, strict=True)
    written = greedy(model, table(sources), limit=max(map(len, targets)) + 1)
    return statistics.fmean(list(ids) == list(wanted) for ids, wanted in zip(written, targets, strict=True))


def translate(kind: str, task: Task, steps: int, seed: int) -> dict[str, float]:
    """Numbers in words to German: the held-out loss, the share written without a fault, seconds for a step."""
    model, seconds = learn(kind, task, lambda chance, size: chance.sample(task.train, size), steps, seed)
    return {"loss": measure(model, task), "right": share_right(model, task.held_out), "seconds": seconds}


def keep_lists(kind: str, task: Task, steps: int, seed: int, lengths: Sequence[int]) -> dict[str, Any]:
    """Lists of digits: the share of lists of each length that are written without a fault."""
    lists, chance = Lists(task), random.Random(f"{seed} held out")
    model, seconds = learn(kind, task, lists.some, steps, seed)
    found = [share_right(model, [lists.pair(chance, length) for _ in range(200)]) for length in lengths]
    return {"right": found, "seconds": seconds}


def seconds_of_a_layer(length: int, device: str = "cpu", repeats: int = 7) -> dict[str, float]:
    """Forward and back through one layer, a sentence of this length: the median of some, the first left out."""
    x = torch.randn(1, length, WIDTH, device=device, requires_grad=True)
    attention, lstm = Attention(Config(PAD + 1)).to(device), nn.LSTM(WIDTH, WIDTH, batch_first=True).to(device)
    layers: dict[str, Callable[[], torch.Tensor]] = {
        "recurrent": lambda: lstm(x)[0],
        "self-attention": lambda: attention(x, x, None),
    }
    clock = time.process_time if device == "cpu" else time.perf_counter
    found = {}
    for name, layer in layers.items():
        times = []
        for _ in range(repeats + 1):
            began = clock()
            layer().sum().backward()
            if device != "cpu":
                torch.cuda.synchronize()
            times.append(clock() - began)
        found[name] = statistics.median(times[1:])
    return found
