"""One decoding step: attention, a packed block's short way through one new token of each row, and the writer that
asks the model for the next tokens.

The products of such a step are so small that calling modules, splitting heads and moving axes around them costs as much
as they do. What is computed is `Block.forward`; what is left out are dropouts, probes and choices that cannot matter
here, and every axis that has one place only.

Shapes: B sentences, K beams, R rows (B K), E entries of a cache, H heads, d head width, D model width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.common.device import disable_cudnn_sdp
from glassformer.common.errors import ConfigError
from glassformer.decode.beam import Beam
from glassformer.decode.greedy import Greedy
from glassformer.decode.kernels import Kernels, Linear, Packed, cpu_supports, kernels_for
from glassformer.decode.search import Constraints, TopTokens
from glassformer.model import Cache, DecoderOnly, EncoderDecoder
from glassformer.model.attention import NO_MASK, Attention, AttentionMask
from glassformer.model.cache import LayerCache
from glassformer.model.layer import Block, FeedForward, Residual
from glassformer.model.norm import LayerNorm, Norm, RMSNorm
from glassformer.weights.quantized import Int8Matrix, Matrix, dequantize, quantize_by_max

Kind = Literal["fp32", "bf16", "int8"]

ONEDNN_MIN_ROWS = 8  # with fewer of them a plain float32 product is faster than oneDNN's packed one
KERNEL_MAX_ROWS = 160  # with more of them it is faster than our kernel
HINT = 32  # rows that oneDNN lays weights out for; other numbers work as well


def packed_linear(weight: Matrix, bias: Tensor | None, kind: Kind, relu: bool = False) -> PackedLinear:
    """x W^T + b, and its relu where that is asked for, by our own kernel, or by oneDNN's where there is none."""
    bias = None if bias is None else bias.detach()
    if kind == "int8" and isinstance(weight, Int8Matrix) and weight.alphas is not None:
        return StaticInt8(weight, bias, relu)
    stored = isinstance(weight, Int8Matrix)
    own = kernels_for(weight.scales if isinstance(weight, Int8Matrix) else weight)
    if kind != "int8":
        weight = dequantize(weight)
    if own is None or kind not in own.kinds:
        return (PackedLinear if stored and kind == "fp32" else OneDnn)(weight, bias, kind, relu)
    return KernelLinear(weight, bias, kind, relu, own)


class PackedLinear(nn.Module):
    """By PyTorch, laid out for none: who stores a model small wants no second copy of it in float32."""

    def __init__(self, weight: Matrix, bias: Tensor | None, kind: Kind, relu: bool = False) -> None:
        super().__init__()
        self.weight = dequantize(weight) if kind == "fp32" else torch.empty(0)  # what was rounded is not read again
        self.bias, self.relu = bias, relu

    def forward(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """The result, and `add` on top of it."""
        y = self.product(x)
        return y if add is None else y.add_(add)

    def product(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight, self.bias)
        return y.relu_() if self.relu else y


class KernelLinear(PackedLinear):
    """By our own kernels, which are made for the few rows of a decoding step."""

    def __init__(self, weight: Matrix, bias: Tensor | None, kind: Kind, relu: bool, kernels: Kernels) -> None:
        super().__init__(weight, bias, kind, relu)
        self.kernels, self.linear = kernels, Linear(Packed(weight, kind), bias, relu)
        self.max_rows = KERNEL_MAX_ROWS if kind == "fp32" else math.inf

    def forward(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        if x.numel() <= self.max_rows * x.shape[-1]:
            return self.kernels.product(x.contiguous(), self.linear, add)
        return super().forward(x, add)


class OneDnn(PackedLinear):
    """By oneDNN, which PyTorch brings with it."""

    def __init__(self, weight: Matrix, bias: Tensor | None, kind: Kind, relu: bool = False) -> None:
        super().__init__(weight, bias, kind, relu)
        if kind == "int8":
            rounded, self.scale = quantize_by_max(weight)[:2]
            self.packed = torch.ops.onednn.qlinear_prepack(rounded, None)
            self.zeros = torch.zeros(len(rounded), dtype=torch.int64)
            # Without VNNI two products are added up in 16 bits, which 8 bits of x would overflow; 7 do not.
            self.zero = 128 if cpu_supports("vnni") else 64
            self.full = torch.tensor(self.zero - 1.0)  # a tensor divides in one operation, a number in two
        else:
            dtype = torch.bfloat16 if kind == "bf16" else torch.float32
            self.packed = torch.ops.mkldnn._reorder_linear_weight(dequantize(weight).to(dtype), HINT)
            self.half_bias = None if bias is None else bias.to(dtype)
        self.way: Callable[[Tensor], Tensor] = getattr(self, kind)

    def product(self, x: Tensor) -> Tensor:
        return self.way(x)

    def fp32(self, x: Tensor) -> Tensor:
        if x.numel() < ONEDNN_MIN_ROWS * x.shape[-1]:
            return super().product(x)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, self.after, [], "")
        return product

    def bf16(self, x: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.bfloat16(), self.packed, self.half_bias, self.after, [], ""
        )
        return product if self.relu else product.float()  # what follows relu multiplies in bf16 as well

    def int8(self, x: Tensor) -> Tensor:
        highest = x.abs().amax(-1, keepdim=True).clamp_min_(1e-30)  # each token has a scale of its own
        # Bytes without a sign, around `zero`: with one, oneDNN has fast kernels for AMX only.
        rounded = (x * torch.div(self.full, highest)).round_().add_(self.zero).to(torch.uint8)
        step, zero = 1 / (self.zero - 1), self.zero
        y: Tensor = torch.ops.onednn.qlinear_pointwise(
            rounded, step, zero, self.packed, self.scale, self.zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        y = y.mul_(highest) if self.bias is None else torch.addcmul(self.bias, y, highest)
        return y.relu_() if self.relu else y

    @property
    def after(self) -> str:
        return "relu" if self.relu else "none"


EXACT = 1024  # products of two 8-bit numbers, of which float32 adds up so many without rounding


class StaticInt8(PackedLinear):
    """In whole numbers, as Firefox's engine computes: the inputs rounded by scales that come with the weights, and
    moved by 127 to lie above zero, which the bias takes back."""

    def __init__(self, weight: Int8Matrix, bias: Tensor | None, relu: bool) -> None:
        super().__init__(torch.empty(0), bias, "fp32", relu)
        assert weight.alphas is not None
        self.alphas, counts = weight.alphas.unique_consecutive(return_counts=True)
        self.counts: list[int] = counts.tolist()
        self.whole = weight.values.float()
        self.steps = 1 / (weight.alphas * (1 / weight.scales))
        moved = weight.values.sum(1, dtype=torch.int64)
        self.moved = 127 * moved.double()
        correction = -127 * self.steps * moved.float()
        self.moved_bias = correction if bias is None else bias + correction

    def product(self, x: Tensor) -> Tensor:
        sums = []
        for alpha, rows in zip(self.alphas, self.whole.split(self.counts), strict=True):
            rounded = (x * alpha).round_().clamp_(-127, 127)
            pairs = zip(rounded.split(EXACT, -1), rows.split(EXACT, -1), strict=True)
            sums.append(torch.stack([F.linear(part, some).double() for part, some in pairs]).sum(0))
        y = (torch.cat(sums, -1) + self.moved).float() * self.steps + self.moved_bias
        return y.relu_() if self.relu else y


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
        self.project, self.output = project.forward, output.forward

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
        self.up, self.activated, self.down = up.forward, part.activated, down.forward

    def __call__(self, x: Tensor, add: Tensor) -> Tensor:
        return self.down(self.activated(self.up(x)), add)


def start_of(model: EncoderDecoder) -> int:
    """The token that every target begins with."""
    if model.config.start_id is None:
        raise ConfigError("start_id=None: the model's config names no start token, so no target can begin; set it")
    return model.config.start_id


class Writer:
    """A model, its sources and its cache; a decoder-only model's source is the prompt that it continues."""

    thinning = 0.5  # to leave a batch costs a copy of all that stay: worth it once at most this share of them does

    @disable_cudnn_sdp
    def __init__(
        self, model: EncoderDecoder | DecoderOnly, src: Tensor, src_mask: Tensor | None, limit: int, beams: int
    ) -> None:
        self.model, self.mask = model, src_mask
        self.memory: Tensor | None = None
        self.prompt = src  # (B, P)
        if isinstance(model, EncoderDecoder):
            self.memory = model.encode(src, src_mask)
            self.prompt = src.new_full((src.shape[0], 1), start_of(model))
        self.cache: Cache = model.new_cache(self.prompt.shape[1] + limit, beams)
        self.cache.attend = step_attention

    @disable_cudnn_sdp
    def next(self, tokens: Tensor | None = None) -> Tensor:
        """Logits (B K, V) after one more token (B K, 1) of every row; without tokens (B, V), after the prompt."""
        ids = self.prompt if tokens is None else tokens
        if isinstance(self.model, DecoderOnly):
            logits: Tensor = self.model(ids, self.mask if tokens is None else None, self.cache)
        else:
            assert self.memory is not None
            logits = self.model.decode(ids, self.memory, self.mask, self.cache)
        return logits[:, -1].float()

    def next_top(self, tokens: Tensor | None, top_count: int | None) -> Tensor | TopTokens:
        """Logits as from `next`; perhaps only the `top_count` highest of each row."""
        return self.next(tokens)

    def run_steps(self, selector: Greedy | Beam, constraints: Constraints) -> int:
        """Read the tokens that were chosen last, and choose the next ones, for as many steps as can be made at once and
        until some sentences may leave: how many they were, 0 where steps are made one by one."""
        return 0

    def follow(self, origin: Tensor) -> None:
        """Let beam i of each sentence continue from what was beam `origin[:, i]`."""
        self.cache.follow(origin)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only."""
        self.cache.keep(sentences)
        if self.memory is not None:
            self.memory = self.memory[sentences]
            self.mask = None if self.mask is None else self.mask[sentences]


def left_pad(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Padding to the left, so that every prompt ends where its continuation begins."""
    order = mask.int().argsort(dim=1, stable=True)
    return ids.gather(1, order), mask.gather(1, order)


def still_running(going: Tensor, most: float) -> Tensor | None:
    """The rows that still go on, once they are at most this share: then it pays to let the others leave the batch."""
    rows = torch.nonzero(going).flatten()
    return rows if len(rows) <= most * len(going) else None
