"""A model made ready to be run: the same weights, rounded or laid out for the processor at hand.

fp32   float32; on a CPU each matrix is stored in the order in which its kernel reads it
bf16   matrices and what they multiply rounded to bfloat16; on a CPU the sums between them stay float32
int8   CPU: matrices rounded to 8 bits row by row, and what they multiply as well, each token by its own scale, so
       that no sentence's result depends on the sentences beside it
auto   bf16 where the processor has units for it and the model is large enough to gain, else fp32
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.decode.step import StepBlock
from glassformer.errors import ConfigError, one_of
from glassformer.model import DecoderOnly, EncoderDecoder
from glassformer.model.attention import Projection
from glassformer.model.layer import Block, FeedForward
from glassformer.model.probe import twin
from glassformer.model.transformer import Head, Stack

Precision = Literal["auto", "fp32", "bf16", "int8"]
Model = TypeVar("Model", EncoderDecoder, DecoderOnly)

WIDE = 256  # from this model width on, bf16 gains more than its conversions cost
FEW = 8  # rows below which a plain float32 product is faster than the packed one
FULL = torch.tensor(127.0)  # the largest whole number of 8 bits; as a tensor it divides in one operation, not two
HINT = 32  # rows that packed weights are laid out for; other numbers work as well


def ready(model: Model, precision: Precision = "auto") -> Model:
    """A copy of `model` for inference, on its device; the original stays as it is."""
    device = next(model.parameters()).device
    chosen = pick(precision, model.config.d_model, device)
    if device.type != "cpu":
        return model if chosen == "fp32" else copy.deepcopy(model).to(torch.bfloat16)
    if not torch.backends.mkldnn.is_available():
        return model
    return packed(twin(model), chosen)


def pick(precision: Precision, width: int, device: torch.device) -> Precision:
    if precision not in get_args(Precision):
        raise ConfigError(f"precision={precision!r} is not one of {one_of(get_args(Precision))}")
    if device.type == "cpu":
        able = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
        fast = able and torch.cpu._is_amx_tile_supported()
    else:
        able = fast = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "auto":
        return "bf16" if fast and width >= WIDE else "fp32"
    if precision == "bf16" and not able:
        raise ConfigError(f"this {device.type} has no bfloat16 arithmetic; use fp32, or int8 on a CPU")
    if precision == "int8" and device.type != "cpu":
        raise ConfigError(f"int8 is for CPUs; on {device.type} use bf16 or fp32")
    return precision


class PackedLinear(nn.Module):
    """x W^T + b with W laid out for oneDNN's kernels; float32 in and out, whatever it multiplies in."""

    def __init__(self, weight: Tensor, bias: Tensor | None, precision: Precision, after: str = "none") -> None:
        super().__init__()
        self.after, self.precision = after, precision
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        if precision == "int8":
            self.scale = weight.detach().abs().amax(1).clamp_min(1e-12) / 127
            rounded = (weight.detach() / self.scale.unsqueeze(1)).round().to(torch.int8)
            self.packed = torch.ops.onednn.qlinear_prepack(rounded, None)
            self.zeros = torch.zeros(len(weight), dtype=torch.int64)
        else:
            dtype = torch.bfloat16 if precision == "bf16" else torch.float32
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.to(dtype), HINT)
            self.half_bias = None if self.bias is None else self.bias.to(dtype)
        self.multiply: Callable[[Tensor], Tensor] = getattr(self, precision)

    def fp32(self, x: Tensor) -> Tensor:
        if x.numel() < FEW * x.shape[-1]:
            y = F.linear(x, self.weight, self.bias)
            return y.relu_() if self.after == "relu" else y
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, self.after, [], "")
        return product

    def bf16(self, x: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.bfloat16(), self.packed, self.half_bias, self.after, [], ""
        )
        return product if self.after == "relu" else product.float()  # what follows relu multiplies in bf16 as well

    def int8(self, x: Tensor) -> Tensor:
        highest = x.abs().amax(-1, keepdim=True).clamp_min_(1e-30)  # each token has a scale of its own
        rounded = (x * torch.div(FULL, highest)).round_().to(torch.int8)
        y: Tensor = torch.ops.onednn.qlinear_pointwise(
            rounded, 1 / 127, 0, self.packed, self.scale, self.zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        y = y.mul_(highest) if self.bias is None else torch.addcmul(self.bias, y, highest)
        return y.relu_() if self.after == "relu" else y

    def forward(self, x: Tensor) -> Tensor:
        return self.multiply(x)


class PackedProjection(nn.Module):
    """A projection's matrices, packed together where they are used together."""

    def __init__(self, projection: Projection, precision: Precision, cross: bool) -> None:
        super().__init__()
        self.rows, queries = projection.rows, projection.rows[0]
        weight, bias = projection.weight, projection.bias

        def part(rows: slice) -> PackedLinear:
            return PackedLinear(weight[rows], None if bias is None else bias[rows], precision)

        if cross:
            self.query, self.rest = part(slice(queries)), part(slice(queries, None))
        else:
            self.whole = part(slice(None))

    def all(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self.whole(x), self.rows, dim=-1)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self.rest(memory), self.rows[1:], dim=-1)


class PackedHead(nn.Module):
    def __init__(self, head: Head, precision: Precision) -> None:
        super().__init__()
        self.transform, self.linear = head.transform, PackedLinear(head.weight, head.bias, precision)

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.transform(hidden))
        return logits


def packed(model: Model, precision: Precision) -> Model:
    """Replace every matrix product of `model` by a packed one."""
    for name, module in list(model.named_modules()):
        replacement: nn.Module
        if isinstance(module, Projection):
            replacement = PackedProjection(module, precision, cross="cross_attention" in name)
        elif isinstance(module, Head):
            replacement = PackedHead(module, precision)
        elif isinstance(module, nn.Linear):
            replacement = PackedLinear(module.weight, module.bias, precision)
        else:
            continue
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, replacement)
    for module in model.modules():
        if isinstance(module, FeedForward) and module.activation is F.relu and not module.gated:
            up: Any = module.up
            up.after, module.activation = "relu", same  # oneDNN applies it while it writes the product
    grouped = model.config.kv_heads not in (None, model.config.heads)  # the short way knows full heads only
    for stack in model.children():
        if isinstance(stack, Stack) and stack.causal and not grouped:
            stack.blocks = nn.ModuleList(StepBlock(cast(Block, block)) for block in stack.blocks)
    return model


def same(x: Tensor) -> Tensor:
    return x
