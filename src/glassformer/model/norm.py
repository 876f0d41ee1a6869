"""Normalisation: each position's D values brought to one scale.

Shapes: `x` is (..., D). Both norms run torch's fused kernel unless their `normalised` probe is watched; then the
lines of `written_out`, which are the definition, run instead.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model.config import ModelConfig
from glassformer.model.probe import Probe, watched


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance over the D values of one position."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.eps = eps
        self.normalised = Probe()

    def written_out(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).square().mean(-1, keepdim=True)  # biased: divided by D, not D - 1
        normalised: Tensor = self.normalised((x - mean) / (variance + self.eps).sqrt())
        return normalised * self.weight + self.bias

    def forward(self, x: Tensor) -> Tensor:
        if watched((self.normalised,)):
            return self.written_out(x)
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight: LayerNorm without the mean and without a bias."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps
        self.normalised = Probe()

    def written_out(self, x: Tensor) -> Tensor:
        mean_square = x.square().mean(-1, keepdim=True)
        normalised: Tensor = self.normalised(x / (mean_square + self.eps).sqrt())
        return normalised * self.weight

    def forward(self, x: Tensor) -> Tensor:
        if watched((self.normalised,)):
            return self.written_out(x)
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def make_norm(config: ModelConfig) -> nn.Module:
    return (LayerNorm if config.norm_type == "layer" else RMSNorm)(config.d_model, config.norm_eps)
