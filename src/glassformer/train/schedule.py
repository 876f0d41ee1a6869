"""The learning rate at each step, as a factor of `train.lr`."""

from __future__ import annotations

import math

from glassformer.train.recipe import Train


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
