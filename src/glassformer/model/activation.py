"""Activations: the curve that every hidden value of a feed-forward network passes, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU's tanh form; torch's own kernel rounds it differently from the models that were trained with it."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": F.silu,
}
