"""The loss along with the product that makes the logits, for a GPU.

With a vocabulary of 50,000 the logits and their gradient are the largest tensors of a step. Here one kernel computes
the loss of a row of logits and writes the row's gradient over it, while the row is still in the cache.

    loss = log sum_v exp(x_v) - (1 - e) x_label - e / V sum_v x_v        with smoothing e
    d loss / d x_v = softmax(x)_v - (1 - e) [v = label] - e / V

Shapes: N rows, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
from torch import Tensor
from torch.nn import functional as F
from triton import language as tl

from glassformer.model.loss import IGNORED

BLOCK, WARPS = 8192, 8  # pieces read at once, and by how many warps: the fastest on an H200


@triton.jit
def kernel(logits, labels, losses, pieces, stride, smoothing, ignored, SMOOTHED: tl.constexpr, BLOCK: tl.constexpr):
    """One row; logarithms to the base 2, which is what the hardware knows."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    logits += row * stride
    columns = tl.arange(0, BLOCK)
    if label == ignored:
        tl.store(losses + row, 0.0)
        for start in range(0, pieces, BLOCK):
            at = start + columns
            tl.store(logits + at, tl.zeros((BLOCK,), logits.dtype.element_ty), mask=at < pieces)
    else:
        wanted = tl.load(logits + label).to(tl.float32)
        highest = tl.full((), -3e38, tl.float32)
        parts = tl.zeros((BLOCK,), tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, pieces, BLOCK):
            at = start + columns
            x = tl.load(logits + at, mask=at < pieces, other=float("-inf")).to(tl.float32)
            if SMOOTHED:
                sums += tl.where(at < pieces, x, 0.0)
            x *= 1.4426950408889634  # log2(e)
            higher = tl.maximum(highest, tl.max(x, 0))
            parts = parts * tl.exp2(highest - higher) + tl.exp2(x - higher)
            highest = higher
        total = highest + tl.log2(tl.sum(parts, 0))
        even = smoothing / pieces
        loss = total * 0.6931471805599453 - (1 - smoothing) * wanted  # ln(2)
        if SMOOTHED:
            loss -= even * tl.sum(sums, 0)
        tl.store(losses + row, loss)
        for start in range(0, pieces, BLOCK):
            at = start + columns
            x = tl.load(logits + at, mask=at < pieces, other=float("-inf")).to(tl.float32)
            gradient = tl.exp2(x * 1.4426950408889634 - total) - tl.where(at == label, 1 - smoothing, 0.0) - even
            tl.store(logits + at, gradient.to(logits.dtype.element_ty), mask=at < pieces)


@torch.library.custom_op("glassformer::losses", mutates_args=("logits",))
def losses(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """The loss of each row (N); the logits (N, V), whose rows may stand apart, become its gradient."""
    found = torch.empty(len(logits), device=logits.device)
    kernel[len(logits),](
        logits, labels.contiguous(), found, logits.shape[1], logits.stride(0), smoothing, IGNORED,
        SMOOTHED=smoothing > 0, BLOCK=BLOCK, num_warps=WARPS, num_stages=1,
    )  # fmt: skip
    return found


@losses.register_fake
def _(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    return torch.empty(len(logits), device=logits.device)


class HeadLoss(torch.autograd.Function):
    """The summed loss of vectors (N, D) that a head's weights (V, D) and biases (V) turn into logits."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, smoothing: float,
        dtype: torch.dtype,
    ) -> Tensor:  # fmt: skip
        hidden, weight = hidden.to(dtype), weight.to(dtype)
        logits = F.linear(hidden, weight, None if bias is None else bias.to(dtype))
        found = losses(logits, labels, smoothing)
        ctx.save_for_backward(hidden, weight, logits)
        return found.sum()

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, gradient = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (
            (gradient @ weight).float() * scale if wanted[0] else None,
            (gradient.T @ hidden).float() * scale if wanted[1] else None,
            gradient.sum(0, dtype=torch.float32) * scale if wanted[2] else None,
            None, None, None,
        )  # fmt: skip


class JoinedLoss:
    """What `Stepper.loss` is, compiled, for a model on one GPU and without R-Drop."""

    def __init__(self, model: Any, smoothing: float, dtype: torch.dtype, options: dict[str, Any]) -> None:
        self.model, self.head, self.smoothing, self.dtype = model, model.head, smoothing, dtype
        self.compiled: Callable[..., Tensor] = torch.compile(self.loss, dynamic=False, options=options)

    def loss(self, labels: Tensor, **given: Tensor) -> Tensor:
        hidden = self.model(**given).flatten(0, -2)  # (N, D)
        weight, bias = self.head.weight, self.head.bias
        return HeadLoss.apply(hidden, weight, bias, labels.flatten(), self.smoothing, self.dtype)

    def __call__(self, **rows: Tensor) -> Tensor:
        try:
            self.model.head = self.head.transform  # the product is this loss's own
            return self.compiled(**rows)
        finally:
            self.model.head = self.head
