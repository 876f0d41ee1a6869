"""A model made ready to be run: the same weights, rounded or laid out for the processor at hand.

fp32   float32; on a CPU each matrix is stored in the order in which its kernel reads it
bf16   matrices and what they multiply rounded to bfloat16; on a CPU the sums between them stay float32
int8   CPU: matrices rounded to 8 bits row by row, and what they multiply as well, each token by its own scale, so
       that no sentence's result depends on the sentences beside it
auto   bf16 where the processor has units for it and the model is large enough to gain, else fp32
"""

from __future__ import annotations

import copy
from typing import Any, Literal, TypeVar, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.decode.kernels.build import has
from glassformer.decode.linear import Kind, PackedLinear, packed_linear
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


def ready(model: Model, precision: Precision = "auto") -> Model:
    """A copy of `model` for inference, on its device; the original stays as it is. The two share what is not a matrix:
    once that is changed, make another."""
    device = next(model.parameters()).device
    chosen = pick(precision, model.config.d_model, device)
    if device.type != "cpu":
        return model if chosen == "fp32" else copy.deepcopy(model).to(torch.bfloat16)
    if not torch.backends.mkldnn.is_available():
        return model
    return packed(twin(model), chosen)


def pick(precision: Precision, width: int, device: torch.device) -> Kind:
    if precision not in get_args(Precision):
        raise ConfigError(f"precision={precision!r} is not one of {one_of(get_args(Precision))}")
    if device.type == "cpu":
        able = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
        fast = able and has("amx_tile")
    else:
        able = fast = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    if precision == "auto":
        return "bf16" if fast and width >= WIDE else "fp32"
    if precision == "bf16" and not able:
        raise ConfigError(f"this {device.type} has no bfloat16 arithmetic; use fp32, or int8 on a CPU")
    if precision == "int8" and device.type != "cpu":
        raise ConfigError(f"int8 is for CPUs; on {device.type} use bf16 or fp32")
    return precision


class Stamp:
    """Of which tensors a model consisted, and in which state: cheap to compare, for it is done at every request.

    In-place operations, `load_state_dict` and new parameters or modules show; what is written through `.data` does not.
    """

    def __init__(self, model: nn.Module) -> None:
        modules = {module for module in model.modules() if [*module.parameters(), *module.buffers()]}
        tables = [table for m in modules for table in (m._parameters, m._buffers, m._modules)]
        parts = [(table, name, part) for table in tables for name, part in table.items()]
        self.parts = [found for found in parts if isinstance(found[2], Tensor) or found[2] in modules]
        self.states = [(part, *state(part)) for _, _, part in self.parts if isinstance(part, Tensor)]

    def holds(self) -> bool:
        return all(table.get(name) is part for table, name, part in self.parts) and all(
            state(tensor) == (version, address) for tensor, version, address in self.states
        )


def state(tensor: Tensor) -> tuple[int, int]:
    return 0 if tensor.is_inference() else tensor._version, tensor.data_ptr()


class PackedProjection(nn.Module):
    """A projection's matrices, packed together where they are used together."""

    def __init__(self, projection: Projection, kind: Kind, cross: bool) -> None:
        super().__init__()
        self.rows, queries = projection.rows, projection.rows[0]
        weight, bias = projection.weight, projection.bias

        def part(rows: slice) -> PackedLinear:
            return packed_linear(weight[rows], None if bias is None else bias[rows], kind)

        if cross:
            self.query, self.rest = part(slice(queries)), part(slice(queries, None))
        else:
            self.whole = part(slice(None))

    def all(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self.whole(x), self.rows, dim=-1)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self.rest(memory), self.rows[1:], dim=-1)


class PackedHead(nn.Module):
    def __init__(self, head: Head, kind: Kind) -> None:
        super().__init__()
        self.transform, self.linear = head.transform, packed_linear(head.weight, head.bias, kind)

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.transform(hidden))
        return logits


def packed(model: Model, kind: Kind) -> Model:
    """Replace every matrix product of `model` by a packed one."""
    for name, module in list(model.named_modules()):
        replacement: nn.Module
        if isinstance(module, Projection):
            replacement = PackedProjection(module, kind, cross="cross_attention" in name)
        elif isinstance(module, Head):
            replacement = PackedHead(module, kind)
        elif isinstance(module, nn.Linear):
            replacement = packed_linear(module.weight, module.bias, kind)
        else:
            continue
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, replacement)
    for module in model.modules():
        if isinstance(module, FeedForward) and module.activation is F.relu and not module.gated:
            up: Any = module.up
            up.relu, module.activation = True, same  # applied while the product is written
    for stack in model.children():
        if isinstance(stack, Stack) and stack.causal:
            stack.blocks = nn.ModuleList(shortened(cast(Block, block)) for block in stack.blocks)
    return model


def shortened(block: Block) -> nn.Module:
    full = block.self_attention.groups == block.self_attention.heads  # the short way knows no others
    return StepBlock(block) if full else block


def same(x: Tensor) -> Tensor:
    return x
