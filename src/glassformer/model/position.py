"""Positions: five ways to give a model the order of its tokens, which attention alone does not see.

    sinusoidal, learned   a table row per position, added to the embedding
    rotary                q and k turned by an angle that grows with the position (RoPE)
    alibi, relative       a term added to the attention scores that depends on the distance only

Shapes: B batch, T queries, S keys, H heads, D model width, d head width.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.common.errors import InputError
from glassformer.model.config import ModelConfig


def sinusoid(length: int, width: int, base: float = 10_000.0) -> Tensor:
    """The paper's table: sin and cos of pos / base^(2i / D), side by side for each pair 2i, 2i + 1."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)  # (L, 1)
    frequency = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)  # (D/2)
    angle = position * frequency  # (L, D/2)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()  # (L, D)


class PositionTable(nn.Module):
    """A row per position, fixed (sinusoidal) or learned."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.positions == "sinusoidal":
            self.register_buffer("table", sinusoid(config.max_length, config.d_model))
        else:
            self.table = nn.Parameter(torch.zeros(config.max_length, config.d_model))

    def forward(self, positions: Tensor) -> Tensor:
        return F.embedding(positions, self.table)  # (..., T, D)

    def check(self, length: int) -> None:
        if length > self.table.shape[0]:
            raise InputError(
                f"a sequence of {length} tokens is longer than the position table of {self.table.shape[0]}; "
                f"shorten it, or build the model with max_length={length} or more"
            )


class Rotary(nn.Module):
    """RoPE: pair i of a head's values turned by the angle position * base^(-2i / d).

    A turned q and a turned k meet in a dot product that depends on the distance of their positions alone. For texts
    longer than those a model has learnt from, of `rotary_length` at most, its slow pairs are made slower.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.width, self.base, self.factor = config.d_head, config.rotary_base, config.rotary_factor
        self.length, self.low, self.high = config.rotary_length, config.rotary_low, config.rotary_high

    def pace(self, frequency: Tensor) -> Tensor:
        """1 for pairs that turn `high` times or more in the length once learnt, 1/factor for those that turn `low`
        times or less, and between the two for those between; without such a length, 1/factor for all."""
        turns = frequency * ((self.length or 0) / (2 * math.pi))
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return kept + (1 - kept) / self.factor

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        pair = torch.arange(0, self.width, 2, device=positions.device, dtype=torch.float32)
        frequency = 1 / self.base ** (pair / self.width)  # (d/2)
        angle = positions.unsqueeze(-1) * (frequency * self.pace(frequency))  # (T, d/2)
        return angle.cos(), angle.sin()


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair (x[2i], x[2i + 1]) of every head by its angle; x is (B, H, T, d)."""
    cos, sin = rotation
    a, b = x.float().view(*x.shape[:-1], -1, 2).unbind(-1)  # (B, H, T, d/2) twice
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).type_as(x)


def alibi_slopes(heads: int) -> list[float]:
    """2^(-8/n), 2^(-16/n), ...; between powers of two, every second slope of the next power fills the rest."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    between = [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * (heads - power), 2)]
    return slopes + between


class Alibi(nn.Module):
    """Minus slope times distance on every score: each head looks back with a horizon of its own."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.slopes = alibi_slopes(config.heads)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        distance = (keys.unsqueeze(0) - queries.unsqueeze(1)).abs().float()  # (T, S)
        return torch.stack([-slope * distance for slope in self.slopes]).unsqueeze(0)  # (1, H, T, S)


def relative_bucket(offset: Tensor, buckets: int, furthest: int, both_ways: bool) -> Tensor:
    """The bucket of `key - query`: near offsets one each, far ones in logarithmically growing groups."""
    bucket = torch.zeros_like(offset)
    if both_ways:
        buckets //= 2
        bucket = (offset > 0).long() * buckets
        distance = offset.abs()
    else:
        distance = (-offset).clamp_min(0)
    exact = buckets // 2
    growth = torch.log(distance.clamp_min(1).float() / exact) / math.log(furthest / exact)
    far = (exact + (growth * (buckets - exact)).long()).clamp_max(buckets - 1)
    return bucket + torch.where(distance < exact, distance, far)


class RelativeBias(nn.Module):
    """T5's positions: one learned score per bucket of distance and head."""

    def __init__(self, config: ModelConfig, both_ways: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(config.relative_buckets, config.heads))
        self.furthest, self.both_ways = config.relative_distance, both_ways

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        offset = keys.unsqueeze(0) - queries.unsqueeze(1)  # (T, S)
        bucket = relative_bucket(offset, self.table.shape[0], self.furthest, self.both_ways)
        return F.embedding(bucket, self.table).permute(2, 0, 1).unsqueeze(0)  # (1, H, T, S)
