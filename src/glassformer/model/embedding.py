"""What goes into a stack: positions, and a vector for each token of a text or each square of an image.

Shapes: B batch, T positions, D model width, C channels of an image, P width of a square.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.common.errors import InputError
from glassformer.model.config import ModelConfig
from glassformer.model.norm import make_norm


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


class Embedding(nn.Module):
    """Ids to vectors: a learned row per token, scaled by sqrt(D), plus the position's row where there is a table."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_id)
        self.scale = math.sqrt(config.d_model) if config.embedding_scale else 1.0
        self.positions = PositionTable(config) if config.positions in ("sinusoidal", "learned") else None
        self.segments = nn.Embedding(config.segments, config.d_model) if config.segments else None
        self.norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def length(self, ids: Tensor) -> int:
        return ids.shape[-1]

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor | None = None) -> Tensor:
        x = self.tokens(ids) * self.scale  # (B, T, D)
        if self.segments is not None:
            x = x + self.segments(torch.zeros_like(ids) if segments is None else segments)
        if self.positions is not None:
            x = x + self.positions(positions)
        return self.dropout(self.norm(x))

    def check(self, ids: Tensor, length: int, segments: Tensor | None) -> None:
        if ids.dim() != 2 or ids.dtype not in (torch.int64, torch.int32):
            raise InputError(
                f"ids have shape {tuple(ids.shape)} and dtype {ids.dtype}; they must be whole numbers (batch, length)"
            )
        if self.positions is not None:
            self.positions.check(length)
        if segments is not None and self.segments is None:
            raise InputError("this model knows no segments; leave `segments` out")
        # Reading a value back from a GPU would stall it, so there the kernel's own assertion has to do.
        if ids.device.type == "cpu" and ids.numel() and not torch.compiler.is_compiling():
            _check_range(ids, self.config.vocab_size, "id", "the vocabulary")
            if segments is not None:
                _check_range(segments, self.config.segments, "segment", "the segments")


def _check_range(ids: Tensor, size: int, what: str, whole: str) -> None:
    low, high = (int(end) for end in ids.aminmax())
    if low < 0 or high >= size:
        raise InputError(
            f"{what} {low if low < 0 else high} lies outside {whole} of {size} (0 to {size - 1}); "
            f"was it made with another tokenizer?"
        )


class PatchEmbedding(Embedding):
    """An image to vectors: its squares side by side, each by one matrix, and before them one for the whole image."""

    def __init__(self, config: ModelConfig, patch: int) -> None:
        nn.Module.__init__(self)
        self.config, self.patch, self.segments = config, patch, None
        self.projection = nn.Linear(config.channels * patch**2, config.d_model)
        self.first = nn.Parameter(torch.zeros(config.d_model))
        self.positions = PositionTable(config) if config.positions in ("sinusoidal", "learned") else None
        self.norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def length(self, ids: Tensor) -> int:
        return (ids.shape[-1] // self.patch) * (ids.shape[-2] // self.patch) + 1

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor | None = None) -> Tensor:
        squares = F.unfold(ids, self.patch, stride=self.patch).transpose(1, 2)  # (B, T - 1, C P P)
        x = torch.cat((self.first.expand(len(ids), 1, -1), self.projection(squares)), dim=1)  # (B, T, D)
        return self.dropout(self.norm(x if self.positions is None else x + self.positions(positions)))

    def check(self, ids: Tensor, length: int, segments: Tensor | None) -> None:
        shape = (self.config.channels, self.config.image_size, self.config.image_size)
        if ids.shape[1:] != shape or not ids.is_floating_point() or segments is not None:
            raise InputError(
                f"this model reads images of shape (batch, {', '.join(map(str, shape))}) as floating-point numbers, "
                f"and no segments; these have shape {tuple(ids.shape)} and dtype {ids.dtype}"
            )
        if self.positions is not None:
            self.positions.check(length)
