"""Attention: every query gathers values from the keys it matches.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d) + bias) V

Shapes: B batch, T queries, S keys, H heads, G key/value heads (G = H unless grouped), D model width, d head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model.cache import LayerCache
from glassformer.model.config import ModelConfig
from glassformer.model.position import rotate
from glassformer.model.probe import Probe, watched


class Sight(NamedTuple):
    """What the queries of one forward pass may see; built once per stack and shared by its layers.

    `bias` is added to the scores and carries padding, causality and distance terms. `causal` alone says
    "causal and nothing else", which the fastest kernels understand without a matrix.
    """

    bias: Tensor | None = None  # broadcasts to (B, H, T, S)
    causal: bool = False
    rotation: tuple[Tensor, Tensor] | None = None  # cosines and sines, each (T, d/2)


EVERYTHING = Sight()
SHORT = 64  # keys
FEW = 8  # queries
MANY = 4096  # heads of all rows


def softmax(scores: Tensor) -> Tensor:
    """Shares that sum to one over the keys; a row that may see nothing gets zeros, not NaN."""
    highest = scores.amax(-1, keepdim=True).detach()  # subtracted so that exp cannot overflow
    blind = highest == float("-inf")
    weight = (scores - highest.masked_fill(blind, 0.0)).exp()
    return weight / weight.sum(-1, keepdim=True).masked_fill(blind, 1.0)


class Projection(nn.Linear):
    """The matrices W_Q, W_K and W_V in one, rows in that order, so that self-attention multiplies once."""

    def __init__(self, config: ModelConfig) -> None:
        groups = config.kv_heads or config.heads
        self.rows = [config.heads * config.d_head, groups * config.d_head, groups * config.d_head]
        super().__init__(config.d_model, sum(self.rows), bias=config.bias)

    def all(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self(x), self.rows, dim=-1)  # (B, T, H d), (B, T, G d), (B, T, G d)

    def query(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight[: self.rows[0]], None if self.bias is None else self.bias[: self.rows[0]])

    def keys_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        bias = None if self.bias is None else self.bias[self.rows[0] :]
        return torch.split(F.linear(memory, self.weight[self.rows[0] :], bias), self.rows[1:], dim=-1)


class Attention(nn.Module):
    """Multi-head attention: project, split into heads, attend in each, merge, project."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.groups, self.d_head = config.heads, config.kv_heads or config.heads, config.d_head
        self.scale = config.score_scale or 1 / math.sqrt(config.d_head)
        self.projection = Projection(config)
        self.output = nn.Linear(config.heads * config.d_head, config.d_model, bias=config.bias)
        self.dropout = config.dropout if config.attention_dropout is None else config.attention_dropout
        self.q, self.k, self.v, self.products, self.scores, self.masked, self.pattern, self.context = (
            Probe() for _ in range(8)
        )
        self._probes = (
            self.q, self.k, self.v, self.products, self.scores, self.masked, self.pattern, self.context
        )  # fmt: skip

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.view(*x.shape[:-1], heads, self.d_head).transpose(1, 2)  # (B, H, T, d)

    def project(
        self, x: Tensor, memory: Tensor | None, sight: Sight, cache: LayerCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of `x`; keys and values of `memory`, or of `x` itself and all the cache has seen before it."""
        if memory is not None:
            q = self.split(self.projection.query(x), self.heads)
            if cache is not None and cache.cross is not None:
                return q, *cache.cross
            k, v = (self.split(part, self.groups) for part in self.projection.keys_values(memory))
            if cache is not None:
                cache.cross = k, v = k.contiguous(), v.contiguous()
            return q, k, v
        parts = self.projection.all(x)
        q, k, v = (
            self.split(part, heads) for part, heads in zip(parts, (self.heads, self.groups, self.groups), strict=True)
        )
        if sight.rotation is not None:
            q, k = rotate(q, sight.rotation), rotate(k, sight.rotation)
        if cache is not None:
            k, v = cache.append(k, v)
        return q, k, v

    def written_out(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        """The definition, every value of it visible."""
        q, k, v = self.q(q), self.k(k), self.v(v)
        if self.groups < self.heads:  # each key/value head serves several query heads
            k, v = (x.repeat_interleave(self.heads // self.groups, dim=1) for x in (k, v))
        products = self.products(q @ k.transpose(-2, -1))  # (B, H, T, S)
        masked = scores = self.scores(products * self.scale)
        if sight.bias is not None:
            masked = scores + sight.bias
        elif sight.causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            masked = scores.masked_fill(future, float("-inf"))
        pattern = self.pattern(softmax(self.masked(masked).float()).type_as(v))
        context: Tensor = self.context(F.dropout(pattern, self.dropout, self.training) @ v)
        return context  # (B, H, T, d)

    def fused(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        """The same in one kernel, which forms neither scores nor pattern in memory."""
        return F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=None if sight.bias is None else sight.bias.to(q.dtype),
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=sight.causal,
            scale=self.scale,
            enable_gqa=self.groups < self.heads,
        )

    def stepwise(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        """The same for the few queries of a decoding step, where plain products often beat the fused kernel."""
        scores = torch.bmm((q * self.scale).flatten(0, 1), k.flatten(0, 1).transpose(1, 2))
        scores = scores.view(*q.shape[:3], -1)
        if sight.bias is None:
            pattern = torch.softmax(scores, -1)
        else:
            pattern = torch.softmax(scores.add_(sight.bias), -1).nan_to_num_(0.0)  # a row that sees nothing
        return torch.bmm(pattern.flatten(0, 1), v.flatten(0, 1)).view(q.shape)

    def way(self, q: Tensor, k: Tensor, sight: Sight) -> Callable[[Tensor, Tensor, Tensor, Sight], Tensor]:
        """Which of the three equal ways to attend is right here."""
        if watched(self._probes):
            return self.written_out
        if torch.compiler.is_compiling():
            # A compiler fuses the written lines too, and on a GPU, for short sequences, better than the kernel is.
            return self.written_out if q.is_cuda and k.shape[2] <= SHORT else self.fused
        whole = self.groups == self.heads and not (self.training and self.dropout)
        few = q.shape[2] <= FEW and not sight.causal and whole and not torch.is_grad_enabled()
        plain = q.dtype == torch.float32 if q.device.type == "cpu" else q.shape[0] * q.shape[1] >= MANY
        return self.stepwise if few and plain else self.fused

    def forward(self, x: Tensor, sight: Sight, memory: Tensor | None = None, cache: LayerCache | None = None) -> Tensor:
        q, k, v = self.project(x, memory, sight, cache)
        # Rows that share their keys, as beams do, attend to them side by side, like more queries.
        beams = q.shape[0] // max(1, k.shape[0])
        if beams > 1:
            q = q.view(-1, beams, *q.shape[1:]).transpose(1, 2).flatten(2, 3)  # (B/K, H, K T, d)
        context = self.way(q, k, sight)(q, k, v, sight)  # (B, H, T, d)
        if beams > 1:
            context = context.view(*context.shape[:2], beams, -1, self.d_head).transpose(1, 2).flatten(0, 1)
        merged = context.transpose(1, 2).flatten(2)  # (B, T, H d): the heads side by side again
        output: Tensor = self.output(merged)
        return output  # (B, T, D)
