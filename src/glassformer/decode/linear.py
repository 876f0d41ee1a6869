"""A product with a fixed matrix, laid out beforehand for the kernel that will read it; float32 in and out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.decode.kernels import Kernels, Linear, Packed, kernels_for
from glassformer.decode.kernels.build import cpu_supports
from glassformer.weights.quantized import Int8Matrix, Matrix, dequantize, quantize_by_max

Kind = Literal["fp32", "bf16", "int8"]

ONEDNN_MIN_ROWS = 8  # with fewer of them a plain float32 product is faster than oneDNN's packed one
KERNEL_MAX_ROWS = 160  # with more of them it is faster than our kernel
HINT = 32  # rows that oneDNN lays weights out for; other numbers work as well


def packed_linear(weight: Matrix, bias: Tensor | None, kind: Kind, relu: bool = False) -> PackedLinear:
    """x W^T + b, and its relu where that is asked for, by our own kernel, or by oneDNN's where there is none."""
    bias = None if bias is None else bias.detach()
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

    def multiply(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        """The result, and `add` on top of it."""
        y = self.product(x)
        return y if add is None else y.add_(add)

    def forward(self, x: Tensor) -> Tensor:
        return self.multiply(x)

    def product(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight, self.bias)
        return y.relu_() if self.relu else y


class KernelLinear(PackedLinear):
    """By our own kernels, which are made for the few rows of a decoding step."""

    def __init__(self, weight: Matrix, bias: Tensor | None, kind: Kind, relu: bool, kernels: Kernels) -> None:
        super().__init__(weight, bias, kind, relu)
        self.kernels, self.linear = kernels, Linear(Packed(weight, kind), bias, relu)
        self.max_rows = KERNEL_MAX_ROWS if kind == "fp32" else math.inf

    def multiply(self, x: Tensor, add: Tensor | None = None) -> Tensor:
        if x.numel() <= self.max_rows * x.shape[-1]:
            return self.kernels.product(x.contiguous(), self.linear, add)
        return super().multiply(x, add)


class OneDnn(PackedLinear):
    """By oneDNN, which PyTorch brings with it."""

    def __init__(self, weight: Matrix, bias: Tensor | None, kind: Kind, relu: bool = False) -> None:
        super().__init__(weight, bias, kind, relu)
        if kind == "int8":
            rounded, self.scale = quantize_by_max(weight)
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
