"""A model made ready to be run: the same weights, rounded or laid out for the processor at hand.

fp32   float32; on a CPU each matrix is stored in the order in which its kernel reads it
bf16   matrices and what they multiply rounded to bfloat16; on a CPU the sums between them stay float32
int8   CPU: matrices rounded to 8 bits row by row, and what they multiply as well, each token by its own scale, so
       that no sentence's result depends on the sentences beside it
auto   int8 where the weights are stored so and our kernels know it; else bf16 where the processor has units for it and
       the model is large enough to gain; else fp32
"""

from __future__ import annotations

import copy
from typing import Literal, TypeVar, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.common.errors import ConfigError, one_of
from glassformer.decode.kernels import available_kernels, cpu_supports
from glassformer.decode.step import CrossStep, FeedForwardStep, Kind, PackedLinear, SelfStep, StepBlock, packed_linear
from glassformer.model import DecoderOnly, EncoderDecoder
from glassformer.model.attention import Projection
from glassformer.model.layer import Block
from glassformer.model.transformer import Head, Stack, Transform, share_weights
from glassformer.weights.quantized import Int8Matrix, dequantize_model, has_alphas, is_quantized, matrix, select_rows

Precision = Literal["auto", "fp32", "bf16", "int8"]
Model = TypeVar("Model", EncoderDecoder, DecoderOnly)

WIDE = 256  # from this model width on, bf16 gains more than its conversions cost


def prepare(model: Model, precision: Precision = "auto") -> Model:
    """A copy of `model` for inference, on its device; the original stays as it is. The two share what is not a matrix:
    once that is changed, make another."""
    device = next(model.parameters()).device
    stored = is_quantized(model)
    chosen = resolve_precision(precision, model.config.d_model, device, stored, has_alphas(model))
    if device.type != "cpu":
        return model if chosen == "fp32" else copy.deepcopy(model).to(torch.bfloat16)
    copied = share_weights(model)
    if torch.backends.mkldnn.is_available():
        return packed(copied, chosen)
    dequantize_model(copied)
    return copied if stored else model


def resolve_precision(
    precision: Precision, width: int, device: torch.device, rounded: bool = False, scaled: bool = False
) -> Kind:
    """What is run for the precision asked for; `rounded`: the weights are stored in int8, `scaled`: with the scales of
    what they multiply."""
    if precision not in get_args(Precision):
        raise ConfigError(f"precision={precision!r} is not one of {one_of(get_args(Precision))}")
    if device.type == "cpu":
        able = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
        fast = able and cpu_supports("amx_tile")
    else:
        able = fast = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "auto":
        own = available_kernels() if rounded and device.type == "cpu" else None
        if (own is not None and "int8" in own.kinds) or (scaled and device.type == "cpu"):
            return "int8"
        return "bf16" if fast and width >= WIDE else "fp32"
    if precision == "bf16" and not able:
        raise ConfigError(f"this {device.type} has no bfloat16 arithmetic; use fp32, or int8 on a CPU")
    if precision == "int8" and device.type != "cpu":
        raise ConfigError(f"int8 is for CPUs; on {device.type} use bf16 or fp32")
    return precision


class WeightsVersion:
    """Of which tensors a model consisted, and in which state: cheap to compare, for it is done at every request.

    In-place operations, `load_state_dict` and new parameters or modules show; what is written through `.data` does not.
    """

    def __init__(self, model: nn.Module) -> None:
        modules = {module for module in model.modules() if [*module.parameters(), *module.buffers()]}
        tables = [table for m in modules for table in (m._parameters, m._buffers, m._modules)]
        parts = [(table, name, part) for table in tables for name, part in table.items()]
        self.parts = [row for row in parts if isinstance(row[2], Tensor) or row[2] in modules]
        self.states = [(part, *state(part)) for _, _, part in self.parts if isinstance(part, Tensor)]

    def holds(self) -> bool:
        return all(table.get(name) is part for table, name, part in self.parts) and all(
            state(tensor) == (version, address) for tensor, version, address in self.states
        )


def state(tensor: Tensor) -> tuple[int, int]:
    return 0 if tensor.is_inference() else tensor._version, tensor.data_ptr()


class Lookup(nn.Module):
    """Rows of an embedding that is stored in int8, in float32."""

    def __init__(self, whole: Int8Matrix) -> None:
        super().__init__()
        self.values, self.scales = whole.values, whole.scales.unsqueeze(1)

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.values) * F.embedding(ids, self.scales)


class PackedSelf(nn.Module):
    """The projection of self-attention, which is one product."""

    def __init__(self, projection: Projection, kind: Kind) -> None:
        super().__init__()
        self.rows, self.whole = projection.rows, packed_linear(matrix(projection), projection.bias, kind)

    def all(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self.whole(x), self.rows, dim=-1)


class PackedCross(nn.Module):
    """The projections of cross-attention: of queries at every step, of keys and values once."""

    def __init__(self, projection: Projection, kind: Kind) -> None:
        super().__init__()
        self.rows, weight, bias = projection.rows, matrix(projection), projection.bias
        self.query, self.rest = (
            packed_linear(select_rows(weight, some), None if bias is None else bias[some], kind)
            for some in (slice(self.rows[0]), slice(self.rows[0], None))
        )

    def keys_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self.rest(memory), self.rows[1:], dim=-1)


class PackedHead(nn.Module):
    def __init__(self, head: Head, kind: Kind) -> None:
        super().__init__()
        self.transform, self.linear = head.transform, packed_linear(matrix(head), head.bias, kind)
        if isinstance(self.transform, Transform):
            pack(self.transform, "dense", self.transform.dense, kind)

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.transform(hidden))
        return logits


def packed(model: Model, kind: Kind) -> Model:
    """Replace every matrix product of `model` by a packed one."""
    for stack in model.children():
        if isinstance(stack, Stack):
            if isinstance(table := matrix(stack.embedding.tokens), Int8Matrix):
                stack.embedding.add_module("tokens", Lookup(table))
            blocks = [block for block in stack.blocks if isinstance(block, Block)]
            stack.blocks = nn.ModuleList(packed_block(block, kind, stack.causal) for block in blocks)
    model.add_module("head", PackedHead(model.head, kind))
    return model


def packed_block(block: Block, kind: Kind, causal: bool) -> nn.Module:
    """The block itself, its products packed; in a decoder, one that also knows a short way through a step."""
    cross, cross_step, self_step = block.cross_attention, None, None
    if block.recurrence is None:
        own = block.self_attention
        projection = PackedSelf(own.projection, kind)
        own.add_module("projection", projection)
        self_step = SelfStep(own, projection.whole, pack(own, "output", own.output, kind))
    else:
        for name in ("candidate", "forget"):
            pack(block.recurrence, name, block.recurrence.get_submodule(name), kind)
    if cross is not None:
        other = PackedCross(cross.projection, kind)
        cross.add_module("projection", other)
        cross_step = CrossStep(cross, other.query, pack(cross, "output", cross.output, kind))
    part = block.feed_forward
    relu = part.activation is F.relu and not part.gated  # applied while the product is written
    if relu:
        part.activation = identity
    up, down = pack(part, "up", part.up, kind, relu), pack(part, "down", part.down, kind)
    if not causal or self_step is None or block.self_attention.groups < block.self_attention.heads:
        return block  # the short way knows no others
    return StepBlock(block, self_step, cross_step, FeedForwardStep(part, up, down))


def pack(parent: nn.Module, name: str, linear: nn.Module, kind: Kind, relu: bool = False) -> PackedLinear:
    """Put a packed product in the place of a module's `linear`."""
    assert isinstance(linear, nn.Linear)
    product = packed_linear(matrix(linear), linear.bias, kind, relu)
    parent.add_module(name, product)
    return product


def identity(x: Tensor) -> Tensor:
    return x
