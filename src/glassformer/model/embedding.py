"""What goes into a stack: a vector for each token of a text, or for each square of an image.

Shapes: B batch, T positions, D model width, C channels of an image, P width of a square.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.common.errors import InputError
from glassformer.model.config import ModelConfig
from glassformer.model.norm import make_norm
from glassformer.model.position import PositionTable


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
