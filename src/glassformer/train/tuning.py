"""What of a model learns, and how fast: weights that stay as they are, low-rank adapters, rates by layer."""

from __future__ import annotations

import math
import re

from torch import nn

from glassformer.model import Model
from glassformer.train.options import Train
from glassformer.weights import lora as adapter

STATE = 3  # numbers kept for each trainable weight: its gradient and two moments; a moving average is one more


def select_trainable(model: Model, train: Train) -> str:
    """Let only the weights learn that the recipe names, and say which; nothing is said where all do.

    With an adapter all of the model stays as it is but a head of labels, which has too few weights to be worth one.
    """
    if train.lora_rank:
        chosen = adapter.attach(model, train.lora_rank, train.lora_alpha, train.lora_on, train.seed)
        for name, p in model.named_parameters():
            p.requires_grad_(adapter.is_added(name) or bool(model.config.labels and name.startswith("head.")))
        return f"an adapter of rank {train.lora_rank} on {len(chosen)} matrices; {trainable_summary(model, train)}"
    if not train.freeze:
        return ""
    names = dict(model.named_parameters(remove_duplicate=False))
    frozen = adapter.matching(train.freeze, names, "freeze")
    for name in frozen:
        names[name].requires_grad_(False)
    tied = [name for name, p in names.items() if not p.requires_grad and name not in frozen]
    also = f", and with them {', '.join(tied)}, tied to one" if tied else ""
    return f"{len(frozen)} tensors are frozen{also}; {trainable_summary(model, train)}"


def trainable_summary(model: nn.Module, train: Train) -> str:
    """How much learns, and what memory that saves."""
    every, learning = count_parameters(model)
    before = every - sum(p.numel() for name, p in model.named_parameters() if adapter.is_added(name))
    return (
        f"{learning:,} of {every:,} parameters learn ({learning / every:.2%}); weights, gradients and optimizer take "
        f"{state_bytes(every, learning, train) / 2**20:,.1f} MiB, were all of the model to learn "
        f"{state_bytes(before, before, train) / 2**20:,.1f}"
    )


def count_parameters(model: nn.Module) -> tuple[int, int]:
    """All parameters, and those that learn."""
    parameters = list(model.parameters())
    return sum(p.numel() for p in parameters), sum(p.numel() for p in parameters if p.requires_grad)


def state_bytes(every: int, learning: int, train: Train) -> int:
    """The memory of weights, gradients and optimizer state."""
    return 4 * (every + (STATE + bool(train.ema)) * learning)


def layer_distance(name: str, model: nn.Module) -> int:
    """How many layers a weight is away from the head, by the shortest way.

    The last block is one away, an embedding one more than the lowest block, tied or not. The last block of an encoder
    that a decoder looks at is two away: between it and the head lies the decoder's last.
    """
    stack = name.partition(".")[0]
    if stack == "head":
        return 0
    below = 1 if stack == "encoder" and hasattr(model, "decoder") else 0
    layers = len(model.get_submodule(f"{stack}.blocks")._modules)
    if block := re.match(r"\w+\.blocks\.(\d+)\.", name):
        return below + layers - int(block[1])
    return below if name.startswith(f"{stack}.norm.") else below + layers + 1


def lr_factor(train: Train, step: int) -> float:
    """Step 0 is the first. A straight warm-up to 1, then the schedule's fall.

    `inverse_sqrt` is the paper's: with lr = d_model^-0.5 * warmup_steps^-0.5 it is its formula to the letter.
    """
    warmup = max(1, train.warmup_steps)
    if step < train.warmup_steps:
        return (step + 1) / warmup
    if train.schedule == "constant":
        return 1.0
    if train.schedule == "inverse_sqrt":
        return math.sqrt(warmup / max(step + 1, warmup))
    done = (step - train.warmup_steps) / max(1, train.steps - train.warmup_steps)
    if train.schedule == "linear":
        return max(0.0, 1.0 - done)
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
