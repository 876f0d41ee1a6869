"""Attention of one decoding step, and a packed block's short way through one new token of each row.

The products of such a step are so small that calling modules, splitting heads and moving axes around them costs as much
as they do. What is computed is `Block.forward`; what is left out are dropouts, probes and choices that cannot matter
here, and every axis that has one place only.

Shapes: B sentences, K beams, R rows (B K), E entries of a cache, H heads, d head width, D model width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from glassformer.decode.kernels import kernels_for
from glassformer.decode.linear import PackedLinear
from glassformer.model.attention import NO_MASK, Attention, AttentionMask
from glassformer.model.cache import LayerCache
from glassformer.model.layer import Block, FeedForward, Residual
from glassformer.model.norm import LayerNorm, Norm, RMSNorm

MAX_QUERIES = 8  # of a sentence: with more of them the fused kernel is faster
MIN_HEADS = 4096  # of all sentences: with fewer of them a GPU's fused kernel is faster

Sublayer = Callable[[Tensor, Tensor], Tensor]  # of its input, and what its output is added to


def matmul_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float) -> Tensor:
    """softmax(q k^T scale + bias) v as plain products: (B, H, K, d), from q of that shape and k, v (B, H, E, d)."""
    scores = torch.bmm((q * scale).flatten(0, 1), k.flatten(0, 1).transpose(1, 2))  # (B H, K, E)
    if bias is None:
        pattern = torch.softmax(scores, -1)
    else:
        scores.view(*q.shape[:3], -1).add_(bias)
        pattern = torch.softmax(scores, -1).nan_to_num_(0.0)  # a row that sees nothing
    return torch.bmm(pattern, v.flatten(0, 1)).view_as(q)


def step_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float) -> Tensor | None:
    """By plain products where they beat the fused kernel: for the few queries of a step."""
    few, grouped = q.shape[2] <= MAX_QUERIES, q.shape[1] != k.shape[1]
    faster = q.dtype == torch.float32 if q.device.type == "cpu" else q.shape[0] * q.shape[1] >= MIN_HEADS
    if few and faster and not grouped and not torch.is_grad_enabled():
        return matmul_attention(q, k, v, bias, scale)
    return None


class StepBlock(nn.Module):
    """A block that goes the short way at a decoding step and leaves everything else to the block it was made from."""

    def __init__(
        self, block: Block, self_attention: SelfStep, cross_attention: CrossStep | None, feed_forward: FeedForwardStep
    ) -> None:
        super().__init__()
        self.block = block
        # Plain objects from here on: a module is slow to call and to be asked for its parts.
        self.self_attention, self.self_residual = self_attention, ResidualStep(block.self_attention_residual)
        self.cross_attention = cross_attention
        if cross_attention is not None:
            self.cross_residual = ResidualStep(block.cross_attention_residual)
        self.feed_forward, self.feed_forward_residual = feed_forward, ResidualStep(block.feed_forward_residual)

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        memory: Tensor | None = None,
        memory_mask: AttentionMask = NO_MASK,
        cache: LayerCache | None = None,
    ) -> Tensor:
        whole = self.block.training or torch.is_grad_enabled() or mask.rotation is not None
        if whole or cache is None or cache.k is None or x.shape[1] != 1:
            return self.block.forward(x, mask, memory, memory_mask, cache)
        stream, cross = x.squeeze(1), self.cross_attention  # (R, D)
        stream = self.self_residual(stream, lambda y, add: self.self_attention(y, add, mask.bias, cache))
        if cross is not None:
            stream = self.cross_residual(stream, lambda y, add: cross(y, add, memory_mask.bias, cache))
        stream = self.feed_forward_residual(stream, self.feed_forward)
        return stream.unsqueeze(1)


class ResidualStep:
    """What a sublayer adds to the stream is added by its last product."""

    def __init__(self, residual: Residual) -> None:
        self.norm, self.pre = norm_step(residual.norm), residual.pre

    def __call__(self, stream: Tensor, sublayer: Sublayer) -> Tensor:
        return sublayer(self.norm(stream), stream) if self.pre else self.norm(sublayer(stream, stream))


def norm_step(norm: Norm) -> Callable[[Tensor], Tensor]:
    """The norm's kernel with all that it reads at hand; a norm that none is known for computes as it does elsewhere."""
    shape, weight, bias, eps = norm.weight.shape, norm.weight, norm.bias, norm.eps
    if isinstance(norm, LayerNorm):
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    if isinstance(norm, RMSNorm):
        return lambda x: torch.rms_norm(x, shape, weight, eps)
    return norm.fused


class AttentionStep:
    """An attention of which each row asks a single query; `project` gives it that, and what else it is to give."""

    def __init__(self, attention: Attention, project: PackedLinear, output: PackedLinear) -> None:
        self.heads, self.d_head, self.scale = attention.heads, attention.d_head, attention.scale
        self.kernels = kernels_for(output.weight)
        self.project, self.output = project.multiply, output.multiply

    def attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """What the heads gather, side by side: (R, H d), from q (R, H, 1, d) and k, v (B, H, E, d)."""
        rows, beams = q.shape[0], q.shape[0] // k.shape[0]  # len() of a tensor takes longer
        if beams > 1:  # beams share their keys and attend to them side by side
            q = q.view(-1, beams, self.heads, self.d_head).transpose(1, 2)  # (B, H, K, d)
        context = matmul_attention(q, k, v, bias, self.scale)
        if beams > 1:
            context = context.transpose(1, 2)
        return context.reshape(rows, self.heads * self.d_head)


class SelfStep(AttentionStep):
    """Appends its keys and values to the cache."""

    def __call__(self, x: Tensor, add: Tensor, bias: Tensor | None, cache: LayerCache) -> Tensor:
        q, k, v = self.project(x).view(x.shape[0], 3, self.heads, 1, self.d_head).unbind(1)  # (R, H, 1, d) each
        if self.kernels is None:
            return self.output(self.attend(q, *cache.append(k, v), bias), add)
        assert cache.k is not None
        assert cache.v is not None
        context = self.kernels.attend(q, cache.k, cache.v, cache.cache.place.stop, bias, self.scale, (k, v))
        return self.output(context, add)


class CrossStep(AttentionStep):
    """Reads the keys and values of the source, kept since the prompt."""

    def __call__(self, x: Tensor, add: Tensor, bias: Tensor | None, cache: LayerCache) -> Tensor:
        assert cache.cross is not None
        q, (k, v) = self.project(x).view(x.shape[0], self.heads, 1, self.d_head), cache.cross
        if self.kernels is None:
            return self.output(self.attend(q, k, v, bias), add)
        return self.output(self.kernels.attend(q, k, v, k.shape[2], bias, self.scale), add)


class FeedForwardStep:
    def __init__(self, part: FeedForward, up: PackedLinear, down: PackedLinear) -> None:
        self.up, self.activated, self.down = up.multiply, part.activated, down.multiply

    def __call__(self, x: Tensor, add: Tensor) -> Tensor:
        return self.down(self.activated(self.up(x)), add)
