"""How many tokens a step may have before a GPU's memory ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from glassformer.model import EncoderDecoder
from glassformer.text import END, PAD, Batch, Store
from glassformer.train.feed import share
from glassformer.train.parallel import World
from glassformer.train.recipe import Recipe
from glassformer.train.step import Stepper

MODEST = 4096  # where there is no GPU to fill, and the size of the trial on one
LARGEST = 65_536  # beyond this a step gains no speed
STEPS_PER_EPOCH = 20  # a small corpus keeps at least so many steps
USE = 0.8  # of the memory that is free


def find_budget(recipe: Recipe, stores: list[Store], model: EncoderDecoder, world: World) -> int:
    """Measure the memory of two trial steps at the widest shape and extend the line between them.

    The first of `stores` is the one to train on; a batch must hold the longest sentence of any.
    """
    lengths = [store.lengths() for store in stores]
    width = max(int(max(src.max(), tgt.max() + 1)) for src, tgt in lengths)
    if world.device.type != "cuda":
        return max(width, MODEST)
    src, tgt = lengths[0]
    tokens = int(np.maximum(src, tgt + 1).sum())
    peaks = []
    for size in (MODEST, 2 * MODEST):
        rows = max(8 * world.size, size // width // (8 * world.size) * 8 * world.size)
        ids = np.full((rows, width), END, dtype=np.int64)
        batch = Batch(ids, ids > PAD, ids, ids, rows * width, rows)
        torch.cuda.reset_peak_memory_stats(world.device)
        trial = EncoderDecoder(model.config).to(world.device)
        stepper = Stepper(trial, replace(recipe.train, cuda_graphs=False, compile=False), world, PAD)
        stepper(share(batch, world, recipe.train.accumulate), 0.0, 0)
        peaks.append((rows * width, torch.cuda.max_memory_allocated(world.device)))
        del trial, stepper
        torch.cuda.empty_cache()
    (small, low), (large, high) = peaks
    slope = max(1.0, (high - low) / max(1, large - small))
    free = torch.cuda.mem_get_info(world.device)[0] * USE
    if recipe.train.cuda_graphs:
        free /= 2  # recorded steps keep their memory to themselves while another shape's first step needs its own
    fits = -int(world.largest(-((free - low) / slope + small)))  # the same budget on every device
    budget = min(fits, LARGEST, max(MODEST, tokens // STEPS_PER_EPOCH))
    return max(width, budget // 1024 * 1024)
