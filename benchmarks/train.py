"""A training step beside the peers': forward, loss, backward, clip, AdamW."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.peers import HuggingFaceMarian, contestants
from glassformer.data import Batches, BatchOptions, Tokenizer, prepare, read_pairs
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.model.loss import IGNORED
from glassformer.train import read_recipe
from glassformer.train.feed import local_rows
from glassformer.train.parallel import World
from glassformer.train.step import Stepper

SMALL = ModelConfig(
    vocab_size=8000,
    d_model=256,
    heads=4,
    d_ff=1024,
    layers=3,
    dropout=0.1,
    attention_dropout=0.0,
    activation_dropout=0.0,
)


@dataclass(frozen=True)
class Row:
    name: str
    precision: str
    seconds: float  # of a median step
    tokens: float  # target tokens per second
    ratio: float  # of ours to the best peer's in the same run; of a peer's to ours


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)


def stepper(
    model: nn.Module,
    src: Tensor,
    tgt: Tensor,
    labels: Tensor,
    bf16: bool,
    src_mask: Tensor | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> Callable[[], None]:
    """A plain training loop's step, as one would write it around any model."""
    optimizer = optimizer or adam(model)
    model.train()

    def step() -> None:
        with torch.autocast(src.device.type, dtype=torch.bfloat16, enabled=bf16):
            logits = model(src, tgt) if src_mask is None else model(src, tgt, src_mask)
        flat, asked = logits.flatten(0, 1).float(), labels.flatten()
        loss = F.cross_entropy(flat, asked, ignore_index=IGNORED, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def recipe_steps() -> list[Row]:
    """Batches of the demo: our training path beside Hugging Face Marian in a plain loop, batch by batch in turn."""
    recipe = read_recipe("numerals")
    tokenizer = Tokenizer.train(chain.from_iterable(map(read_pairs, recipe.data.train)), recipe.tokenizer)
    world = World(0, 1, torch.device("cpu"))
    table = []
    with tempfile.TemporaryDirectory() as folder:
        store = prepare(recipe.data.train, tokenizer, Path(folder) / "store", recipe.data.filter)
        assert isinstance(recipe.train.batch_tokens, int)
        plan = Batches(store, BatchOptions(tokens=recipe.train.batch_tokens)).epoch(0)
        batches = [plan[i] for i in range(12)]
        inputs = [local_rows(batch, world) for batch in batches]
    tokens = sum(batch.tokens for batch in batches)
    for precision in ("float32", "bf16"):
        config = recipe.model_config(tokenizer)
        train = replace(recipe.train, precision="bf16" if precision == "bf16" else "fp32")
        ours = Stepper(EncoderDecoder(config).train(), train, world)
        peer = HuggingFaceMarian(config)
        optimizer = adam(peer)
        loops = [
            stepper(peer, x["src"], x["tgt"], x["labels"], precision == "bf16", x["src_mask"], optimizer)
            for x in (given.rows for given in inputs)
        ]
        times: dict[str, list[float]] = {"glassformer": [], "hugging face marian": []}
        for round_ in range(4):  # the first one warms up
            spent = dict.fromkeys(times, 0.0)
            for x, loop in zip(inputs, loops, strict=True):
                for who, step in (("glassformer", partial(ours, x, 1e-4, round_)), ("hugging face marian", loop)):
                    begin = time.perf_counter()
                    step()
                    spent[who] += time.perf_counter() - begin
            for who, seconds in spent.items():
                times[who] += [seconds] if round_ else []
        medians = {who: statistics.median(values) for who, values in times.items()}
        for who, seconds in medians.items():
            other = next(value for key, value in medians.items() if key != who)
            table.append(Row(who, precision, seconds / len(batches), tokens / seconds, other / seconds))
    return table


def training_steps(rounds: int, report: Callable[[str], None]) -> list[Row]:
    """Median time of a step for each contestant, their steps taken in turn so that all meet the same machine."""
    generator = torch.Generator().manual_seed(0)
    src, tgt, labels = (torch.randint(3, SMALL.vocab_size, (64, 24), generator=generator) for _ in range(3))
    table = []
    for precision in ("float32", "bf16"):
        steps = {
            name: stepper(model, src, tgt, labels, precision == "bf16") for name, model in contestants(SMALL).items()
        }
        times: dict[str, list[float]] = {name: [] for name in steps}
        for round_ in range(rounds + 1):
            for name, step in steps.items():
                begin = time.perf_counter()
                step()
                if round_:  # the first one warms up
                    times[name].append(time.perf_counter() - begin)
            report(f"{precision}: round {round_} of {rounds}")
        medians = {name: statistics.median(values) for name, values in times.items()}
        best = min(value for name, value in medians.items() if name != "glassformer")
        for name, seconds in medians.items():
            ratio = (best if name == "glassformer" else medians["glassformer"]) / seconds
            table.append(Row(name, precision, seconds, tgt.numel() / seconds, ratio))
    return table
