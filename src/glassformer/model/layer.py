"""One layer: attention between positions, a feed-forward network within each, residuals around both.

Shapes: B batch, T positions, D model width, F feed-forward width.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model.attention import NO_MASK, Attention, AttentionMask
from glassformer.model.cache import LayerCache
from glassformer.model.config import Activation, ModelConfig
from glassformer.model.norm import make_norm
from glassformer.model.probe import Probe


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU's tanh form; torch's own kernel rounds it differently from the models that were trained with it."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """act(x W1) W2 at each position on its own; gated: (act(x W_gate) * x W1) W2, which with SiLU is SwiGLU."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gated, self.activation = config.gated, ACTIVATIONS[config.activation]
        self.up = nn.Linear(config.d_model, config.d_ff * (2 if config.gated else 1), bias=config.bias)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.dropout = nn.Dropout(config.dropout if config.activation_dropout is None else config.activation_dropout)
        self.hidden = Probe()

    def activated(self, up: Tensor) -> Tensor:
        if not self.gated:
            return self.activation(up)  # (B, T, F)
        gate, value = up.chunk(2, dim=-1)  # (B, T, F) twice
        return self.activation(gate) * value

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(self.activated(self.up(x)))  # (B, T, F)
        return self.down(self.dropout(hidden))  # (B, T, D)


class SSRU(nn.Module):
    """A recurrence in the place of a decoder's self-attention: one vector, the cell, is all that it keeps of the past.

    f_t = sigmoid(x_t W_f),  c_t = f_t c_{t-1} + (1 - f_t) x_t W,  output relu(c_t)
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.candidate = nn.Linear(config.d_model, config.d_model, bias=False)
        self.forget = nn.Linear(config.d_model, config.d_model, bias=config.bias)
        self.gate, self.cell = Probe(), Probe()

    def forward(self, x: Tensor, mask: AttentionMask, cache: LayerCache | None = None) -> Tensor:
        gate = self.gate(self.forget(x).sigmoid())  # (B, T, D)
        added, cell = (1 - gate) * self.candidate(x), torch.zeros_like(x[:, 0])
        if mask.positions is not None:  # a text begins with an empty cell
            gate = gate * (mask.positions != 0).unsqueeze(-1)
        if cache is not None and cache.cell is not None:  # one for each sentence, or for each beam
            cell = cache.cell.expand(-1, x.shape[0] // cache.cell.shape[0], -1).flatten(0, 1)  # (B K, D)
        cells = [cell := kept * cell + new for kept, new in zip(gate.unbind(1), added.unbind(1), strict=True)]
        if cache is not None:
            cache.cell = cell.view(cache.cache.batch or len(cell), -1, cell.shape[-1])
        return F.relu(self.cell(torch.stack(cells, 1)))  # (B, T, D)


class Residual(nn.Module):
    """What a sublayer adds to the stream, and where it is normalised.

    Pre-LN leaves the stream itself untouched, an identity path from the last layer to the first; Post-LN, the
    original paper's order, normalises the stream after every addition.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = make_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.pre = config.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class Block(nn.Module):
    """An encoder layer, or with `cross` a decoder layer that also looks at the encoder's memory."""

    def __init__(self, config: ModelConfig, cross: bool) -> None:
        super().__init__()
        self.recurrence = SSRU(config) if config.autoregression == "ssru" else None
        if self.recurrence is None:
            self.self_attention = Attention(config)
        self.self_attention_residual = Residual(config)
        self.cross_attention = Attention(config) if cross else None
        if cross:
            self.cross_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self, x: Tensor, mask: AttentionMask, memory: Tensor | None = None, memory_mask: AttentionMask = NO_MASK,
        cache: LayerCache | None = None,
    ) -> Tensor:  # fmt: skip
        own, cross = self.recurrence or self.self_attention, self.cross_attention
        x = self.self_attention_residual(x, lambda y: own(y, mask, cache=cache))
        if cross is not None and memory is not None:
            x = self.cross_attention_residual(x, lambda y: cross(y, memory_mask, memory, cache))
        return self.feed_forward_residual(x, self.feed_forward)
