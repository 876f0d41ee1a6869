"""What a run will need, measured on a small piece of it before it starts."""

from __future__ import annotations

import resource
import tempfile
import time
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import torch

from glassformer.model import EncoderDecoder
from glassformer.text import PAD, Batches, BatchOptions, Corpus, Tokenizer, prepare, read_pairs
from glassformer.train import parallel
from glassformer.train.feed import share
from glassformer.train.recipe import Recipe
from glassformer.train.step import Stepper

SAMPLE = 20_000  # pairs the forecast is made from
TRIAL_TOKENS = 4096  # of a step, where the recipe leaves it to be found
WARM_UP = 5
ENOUGH = 5.0  # seconds of trial


@dataclass(frozen=True)
class Forecast:
    vocabulary: int
    parameters: int
    state_bytes: int  # weights, gradients, both moments, moving average
    peak_bytes: int  # at the widest batch, measured
    tokens_per_second: float
    steps_per_epoch: int
    seconds_per_epoch: float
    total_seconds: float
    padding: float
    precision: str


def forecast(recipe: Recipe, pairs: int, device: str) -> Forecast:
    """Train a few steps on the corpus's beginning and extend what they cost to `pairs`."""
    world = parallel.enter(device)
    with tempfile.TemporaryDirectory() as folder:
        beginning = list(islice(chain.from_iterable(map(read_pairs, recipe.data.train)), SAMPLE))
        lines = "".join(f"{clean(a)}\t{clean(b)}\n" for a, b in beginning)
        (Path(folder) / "sample.tsv").write_text(lines, encoding="utf-8")
        sample = Corpus(tsv=Path(folder) / "sample.tsv")
        tokenizer = Tokenizer.train(beginning, replace(recipe.tokenizer, vocab_size=affordable(recipe, len(beginning))))
        store = prepare([sample], tokenizer, Path(folder) / "store", recipe.data.filter)
        tokens = recipe.train.batch_tokens
        options = BatchOptions(tokens=TRIAL_TOKENS if tokens == "auto" else tokens, shapes=recipe.train.shapes)
        batches = Batches(store, options)
        plan = batches.epoch(0)
        model = EncoderDecoder(recipe.model_config(tokenizer)).to(world.device)
        stepper = Stepper(model, replace(recipe.train, cuda_graphs=False, compile=False), world, PAD)
        widest = max(range(len(plan)), key=lambda i: plan.shape(i).cells)
        # The first steps of a shape also set up its kernels; they show the memory, the later ones the time.
        for i in [widest, *range(min(WARM_UP, len(plan)))]:
            stepper(share(plan[i], world, recipe.train.accumulate), 0.0, i)
        float(stepper.loss_total)  # waits for the device
        begin, count, step = time.perf_counter(), 0, 0
        while step < WARM_UP and (step < 1 or time.perf_counter() - begin < ENOUGH):
            batch = plan[step % len(plan)]
            stepper(share(batch, world, recipe.train.accumulate), 0.0, step)
            count, step = count + batch.tokens, step + 1
        float(stepper.loss_total)
        speed = count / (time.perf_counter() - begin)
    parameters = sum(p.numel() for p in model.parameters())
    epoch_tokens = (store.report["tgt_tokens"] + len(store)) * pairs / max(1, store.report["read"])
    steps = max(1, round(len(plan) * pairs / max(1, store.report["read"])))
    on_gpu = world.device.type == "cuda"
    return Forecast(
        vocabulary=tokenizer.tgt_size,
        parameters=parameters,
        state_bytes=parameters * (20 if recipe.train.ema else 16),
        peak_bytes=torch.cuda.max_memory_allocated()
        if on_gpu
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        tokens_per_second=speed,
        steps_per_epoch=steps,
        seconds_per_epoch=epoch_tokens / speed,
        total_seconds=epoch_tokens / speed / steps * recipe.train.steps,
        padding=plan.padding_share,
        precision=stepper.precision,
    )


def clean(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ")


def affordable(recipe: Recipe, pairs: int) -> int:
    """A vocabulary that a small beginning of the corpus can fill; the whole of it decides at the start of the run."""
    return recipe.tokenizer.vocab_size if pairs >= SAMPLE else min(recipe.tokenizer.vocab_size, 500)
