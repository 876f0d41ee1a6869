"""A packed block's short way through one new token of each row.

The products of such a step are so small that calling modules, splitting heads and moving axes around them costs as much
as they do. What is computed is `Block.forward`; what is left out are dropouts, probes and choices that cannot matter
here, and every axis that has one place only.

Shapes: B sentences, K beams, R rows (B K), E entries of a cache, H heads, d head width, D model width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.decode.kernels import ours
from glassformer.model.attention import EVERYTHING, Attention, Sight
from glassformer.model.cache import LayerCache
from glassformer.model.layer import Block, FeedForward, Residual
from glassformer.model.norm import LayerNorm

Function = Callable[[Tensor], Tensor]
Adding = Callable[[Tensor, Tensor | None], Tensor]  # to what it finds, what else it is given


class StepBlock(nn.Module):
    """A block that goes the short way at a decoding step and leaves everything else to the block it was made from."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.block = block
        # Plain objects from here on: a module is slow to call and to be asked for its parts.
        self.own = Heads(block.self_attention)
        self.other = Heads(block.cross_attention) if hasattr(block, "cross_attention") else None
        self.feed_forward = feeding(block.feed_forward)
        self.pre = block.self_attention_residual.pre
        self.norms = [norming(part) for part in block.children() if isinstance(part, Residual)]  # in order of use

    def forward(
        self,
        x: Tensor,
        sight: Sight,
        memory: Tensor | None = None,
        memory_sight: Sight = EVERYTHING,
        cache: LayerCache | None = None,
    ) -> Tensor:
        whole = self.block.training or torch.is_grad_enabled() or sight.rotation is not None
        if whole or cache is None or cache.k is None or x.shape[1] != 1:
            return self.block.forward(x, sight, memory, memory_sight, cache)
        sublayers: list[Adding] = [partial(self.own.remember, cache=cache, bias=sight.bias), self.feed_forward]
        if self.other is not None:
            assert cache.cross is not None  # kept since the prompt, like the keys
            sublayers.insert(1, partial(self.other.consult, held=cache.cross, bias=memory_sight.bias))
        stream = x.squeeze(1)  # (R, D)
        for sublayer, norm in zip(sublayers, self.norms, strict=True):
            stream = sublayer(norm(stream), stream) if self.pre else norm(sublayer(stream, stream))
        return stream.unsqueeze(1)


class Heads:
    """One attention of a packed block, asked a single query by each row."""

    def __init__(self, attention: Attention) -> None:
        self.heads, self.d_head, self.scale = attention.heads, attention.d_head, attention.scale
        self.kernels = ours(attention.output.weight)
        projection: Any = attention.projection
        output: Any = attention.output
        self.project: Function = (projection.query if hasattr(projection, "query") else projection.whole).multiply
        self.output: Adding = output.multiply

    def remember(self, x: Tensor, add: Tensor, cache: LayerCache, bias: Tensor | None) -> Tensor:
        q, k, v = self.project(x).view(len(x), 3, self.heads, 1, self.d_head).unbind(1)  # (R, H, 1, d) each
        if self.kernels is None:
            return self.output(self.attend(q, *cache.append(k, v), bias), add)
        assert cache.k is not None
        assert cache.v is not None
        found = self.kernels.attend(q, cache.k, cache.v, cache.cache.place.stop, bias, self.scale, (k, v))
        return self.output(found, add)

    def consult(self, x: Tensor, add: Tensor, held: tuple[Tensor, Tensor], bias: Tensor | None) -> Tensor:
        q = self.project(x).view(len(x), self.heads, 1, self.d_head)
        if self.kernels is None:
            return self.output(self.attend(q, *held, bias), add)
        return self.output(self.kernels.attend(q, *held, held[0].shape[2], bias, self.scale), add)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """What the heads find, side by side: (R, H d), from q (R, H, 1, d) and k, v (B, H, E, d)."""
        sentences, heads, entries, d_head = k.shape
        beams = len(q) // sentences
        q = q * self.scale
        if beams > 1:  # beams share their keys and attend to them side by side
            q = q.view(sentences, beams, heads, d_head).transpose(1, 2)
        scores = torch.bmm(q.reshape(-1, beams, d_head), k.flatten(0, 1).transpose(1, 2))  # (B H, K, E)
        if bias is None:
            pattern = torch.softmax(scores, -1)
        else:
            scores.view(sentences, heads, beams, entries).add_(bias)
            pattern = torch.softmax(scores, -1).nan_to_num_(0.0)  # a row that sees nothing
        context = torch.bmm(pattern, v.flatten(0, 1))  # (B H, K, d)
        if beams > 1:
            context = context.view(sentences, heads, beams, d_head).transpose(1, 2)
        return context.reshape(sentences * beams, heads * d_head)


def feeding(part: FeedForward) -> Adding:
    packed: Any = part
    up: Function = packed.up.multiply
    down: Adding = packed.down.multiply
    activation, gated = part.activation, part.gated

    def feed_forward(x: Tensor, add: Tensor | None) -> Tensor:
        hidden = up(x)
        if gated:
            gate, value = hidden.chunk(2, dim=-1)
            return down(activation(gate) * value, add)
        return down(activation(hidden), add)

    return feed_forward


def norming(residual: Residual) -> Function:
    norm: Any = residual.norm
    shape, weight, eps = norm.weight.shape, norm.weight, norm.eps
    if isinstance(norm, LayerNorm):
        bias = norm.bias
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    return lambda x: torch.rms_norm(x, shape, weight, eps)
