"""What fits into memory: a model at all, and on a GPU how many tokens a step may have."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from glassformer.common.errors import ConfigError
from glassformer.data import END, PAD, Batch, Store
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model, ModelConfig
from glassformer.train.feed import local_rows
from glassformer.train.objective import OBJECTIVES
from glassformer.train.options import Train
from glassformer.train.parallel import World
from glassformer.train.recipe import Recipe
from glassformer.train.step import Stepper

DEFAULT_TOKENS = 4096  # where there is no GPU to fill, and the size of the trial on one
LARGEST = 65_536  # beyond this a step gains no speed
STEPS_PER_EPOCH = 20  # a small corpus keeps at least so many steps
MEMORY_SHARE = 0.8  # of the memory that is free
BYTES_PER_WEIGHT = 16  # its value, gradient and two moments


def min_parameters(config: ModelConfig, kind: type[nn.Module] = EncoderDecoder) -> int:
    """The weights in a model's matrices, counted without making them; biases and norms are few."""

    def rows(stack: ModelConfig, attentions: int) -> int:
        attention = 2 * (stack.heads + (stack.kv_heads or stack.heads)) * stack.d_head
        return stack.layers * (attentions * attention + (3 if stack.gated else 2) * stack.d_ff)

    tables = config.vocab_size * (1 if config.tied else 2) + (config.src_vocab_size or 0) + config.segments
    tables += config.max_length if config.positions in ("sinusoidal", "learned") else 0
    encoder = 0 if kind is DecoderOnly else rows(config.encoder, 1)
    decoder = 0 if kind is EncoderOnly else rows(config.decoder, 1 if kind is DecoderOnly else 2)
    return (tables + encoder + decoder) * config.d_model


def check_memory(config: ModelConfig, train: Train, world: World) -> None:
    """Refuse a model whose state alone is larger than the memory, before any of it is made."""
    weights = min_parameters(config, OBJECTIVES[train.objective].model)
    needed = weights * (BYTES_PER_WEIGHT if not train.lora_rank else 4)
    if world.device.type == "cuda":
        there = torch.cuda.get_device_properties(world.device).total_memory
        there *= world.size if train.parallel == "fsdp" else 1
    else:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise ConfigError(
            f"a model of d_model={config.d_model}, layers={config.layers}, d_ff={config.d_ff} and a vocabulary of "
            f"{config.vocab_size:,} has over {weights:,} weights: training it takes "
            f"{needed / 2**30:,.1f} GiB for them, their gradients and moments, and there are {there / 2**30:,.1f}; "
            f"make it smaller"
        )


def find_budget(recipe: Recipe, stores: list[Store], model: Model, world: World) -> int:
    """Measure the memory of two trial steps at the widest shape and extend the line between them.

    The first of `stores` is the one to train on; a batch must hold the longest sentence of any.
    """
    lengths = [store.lengths() for store in stores]
    width = max(int(max(src.max(), tgt.max() + 1)) for src, tgt in lengths)
    if world.device.type != "cuda":
        return max(width, DEFAULT_TOKENS)
    src, tgt = lengths[0]
    tokens = int(np.maximum(src, tgt + 1).sum())
    peaks = []
    for size in (DEFAULT_TOKENS, 2 * DEFAULT_TOKENS):
        rows = max(8 * world.size, size // width // (8 * world.size) * 8 * world.size)
        ids = np.full((rows, width), END, dtype=np.int64)
        batch = Batch(ids, ids > PAD, ids, ids, rows * width, rows)
        torch.cuda.reset_peak_memory_stats(world.device)
        trial = type(model)(model.config).to(world.device)
        stepper = Stepper(trial, replace(recipe.train, cuda_graphs=False, compile=False), world)
        stepper(local_rows(batch, world, recipe.train.accumulate, recipe.train.objective), 0.0, 0)
        peaks.append((rows * width, torch.cuda.max_memory_allocated(world.device)))
        del trial, stepper
        torch.cuda.empty_cache()
    (small, low), (large, high) = peaks
    slope = max(1.0, (high - low) / max(1, large - small))
    free = torch.cuda.mem_get_info(world.device)[0] * MEMORY_SHARE
    if recipe.train.cuda_graphs:
        free /= 2  # recorded steps keep their memory to themselves while another shape's first step needs its own
    fits = -int(world.max(-((free - low) / slope + small)))  # the same budget on every device
    budget = min(fits, LARGEST, max(DEFAULT_TOKENS, tokens // STEPS_PER_EPOCH))
    return max(width, budget // 1024 * 1024)
