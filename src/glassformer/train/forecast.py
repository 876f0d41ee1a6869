"""What a run will need, measured on a small piece of it before it starts."""

from __future__ import annotations

import itertools
import resource
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from glassformer.common.report import Report
from glassformer.train import parallel
from glassformer.train.feed import local_rows
from glassformer.train.recipe import Recipe
from glassformer.train.run import prepare_run
from glassformer.train.step import Stepper
from glassformer.train.tuning import count_parameters, state_bytes

WARM_UP = 5
ENOUGH = 5.0  # seconds of trial


@dataclass(frozen=True)
class Forecast:
    vocabulary: int
    parameters: int
    learning: int  # of them
    state_bytes: int  # weights, gradients, both moments, moving average
    peak_bytes: int  # at the widest batch, measured
    tokens_per_second: float
    steps_per_epoch: int
    seconds_per_epoch: float
    total_seconds: float
    padding: float
    precision: str


def forecast(recipe: Recipe, device: str, report: Report | None = None) -> Forecast:
    """Get ready exactly as training does, take a few steps, and extend what they cost to the whole run."""
    world, report = parallel.init_distributed(device), report or Report(quiet=True)
    with tempfile.TemporaryDirectory() as name:
        made = prepare_run(recipe, Path(name), world, report)
        report.show("training a few steps", every=0)
        plan = next(plan for plan in map(made.batches.epoch, itertools.count()) if len(plan))
        model = made.model.to(world.device).train()
        stepper = Stepper(model, replace(recipe.train, cuda_graphs=False, compile=False), world)
        widest = max(range(len(plan)), key=lambda i: plan.shape(i).cells)
        # The first steps of a shape also set up its kernels; they show the memory, the later ones the time.
        for i in [widest, *range(min(WARM_UP, len(plan)))]:
            stepper(local_rows(plan[i], world, recipe.train.accumulate, recipe.train.objective), 0.0, i)
        float(stepper.loss_total)  # waits for the device
        begin, count, step = time.perf_counter(), 0, 0
        while step < WARM_UP and (step < 1 or time.perf_counter() - begin < ENOUGH):
            batch = plan[step % len(plan)]
            stepper(local_rows(batch, world, recipe.train.accumulate, recipe.train.objective), 0.0, step)
            count, step = count + batch.tokens, step + 1
        float(stepper.loss_total)
        speed = count / (time.perf_counter() - begin)
        store = made.batches.store
        epoch_tokens = float(np.array(store.weights)[store.corpus] @ (store.lengths()[1] + 1))
    parameters, learning = count_parameters(model)
    on_gpu, usage = world.device.type == "cuda", resource.getrusage(resource.RUSAGE_SELF)
    return Forecast(
        vocabulary=made.tokenizer.tgt_size,
        parameters=parameters,
        learning=learning,
        state_bytes=state_bytes(parameters, learning, recipe.train),
        peak_bytes=torch.cuda.max_memory_allocated() if on_gpu else usage.ru_maxrss * 1024,
        tokens_per_second=speed,
        steps_per_epoch=len(plan),
        seconds_per_epoch=epoch_tokens / speed,
        total_seconds=epoch_tokens / speed / len(plan) * recipe.train.steps,
        padding=plan.padding_share,
        precision=stepper.precision,
    )
