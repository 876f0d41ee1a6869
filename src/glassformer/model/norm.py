"""Normalisation: each position's D values brought to one scale.

Shapes: `x` is (..., D). A norm runs torch's fused kernel, where there is one, unless its `normalised` probe is watched;
then the lines of `reference`, which are the definition, run instead.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model.config import ModelConfig, NormType
from glassformer.model.probe import Probe, has_hooks


class Norm(nn.Module):
    """What norms have in common: a weight for each of the D values, perhaps a bias, and two equal ways to compute."""

    bias: nn.Parameter | None

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.register_parameter("bias", None)
        self.eps = eps
        self.normalised = Probe()

    def reference(self, x: Tensor) -> Tensor:
        raise NotImplementedError  # the definition

    def fused(self, x: Tensor) -> Tensor:
        return self.reference(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.reference(x) if has_hooks((self.normalised,)) else self.fused(x)


class LayerNorm(Norm):
    """(x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance over the D values of one position."""

    bias: nn.Parameter

    def __init__(self, width: int, eps: float) -> None:
        super().__init__(width, eps)
        self.bias = nn.Parameter(torch.zeros(width))

    def reference(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).square().mean(-1, keepdim=True)  # biased: divided by D, not D - 1
        normalised: Tensor = self.normalised((x - mean) / (variance + self.eps).sqrt())
        return normalised * self.weight + self.bias

    def fused(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(Norm):
    """x / sqrt(mean(x^2) + eps) * weight: LayerNorm without the mean and without a bias."""

    def reference(self, x: Tensor) -> Tensor:
        mean_square = x.square().mean(-1, keepdim=True)
        normalised: Tensor = self.normalised(x / (mean_square + self.eps).sqrt())
        return normalised * self.weight

    def fused(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


NORMS: dict[NormType, type[Norm]] = {"layer": LayerNorm, "rms": RMSNorm}


def make_norm(config: ModelConfig) -> Norm:
    return NORMS[config.norm_type](config.d_model, config.norm_eps)
