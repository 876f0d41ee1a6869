"""A model around weights as a file holds them: in float32, or as int8 with a scale for each row; in a file, of 6 bits.

Shapes: O rows (outputs, or pieces of a vocabulary), I numbers in each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from glassformer.model import EncoderDecoder, Model, ModelConfig
from glassformer.model.transformer import Head

SCALES = "scales"  # the buffer beside a `weight` of int8
ALPHAS = "alphas"  # perhaps beside it: what each row's inputs are multiplied by before they are rounded
FULL = 127  # the largest whole number used; -128 is not, so that the range is the same on both sides
CLIPS = 30  # limits tried for a row, from its largest number down to
LEAST = 0.7  # this part of it
SIX = 31  # the largest whole number of 6 bits
LOW_BITS = 0xFF  # of a scale, which are zero: its products with whole numbers of 8 bits are exact in float32


class Int8Matrix(NamedTuple):
    """A matrix (O, I) of which row i is `values[i] * scales[i]`."""

    values: Tensor  # (O, I) int8
    scales: Tensor  # (O) float32
    alphas: Tensor | None = None  # (O): the scales of what it multiplies; without them each token has its own

    def dequantize(self) -> Tensor:
        return self.values * self.scales.unsqueeze(1)


Matrix = Tensor | Int8Matrix


def matrix(module: nn.Module) -> Matrix:
    """The weight of a module, as it is stored."""
    weight, scales = module.weight, getattr(module, SCALES, None)
    assert isinstance(weight, Tensor)
    return weight.detach() if scales is None else Int8Matrix(weight.detach(), scales, getattr(module, ALPHAS, None))


def select_rows(whole: Matrix, some: slice) -> Matrix:
    if not isinstance(whole, Int8Matrix):
        return whole[some]
    return Int8Matrix(whole.values[some], whole.scales[some], None if whole.alphas is None else whole.alphas[some])


def dequantize(whole: Matrix) -> Tensor:
    return whole.dequantize() if isinstance(whole, Int8Matrix) else whole


def quantize_by_max(whole: Matrix) -> Int8Matrix:
    """A matrix in int8, each row's largest number at the end of the range; one that is in int8 already, as it is."""
    if isinstance(whole, Int8Matrix):
        return whole
    scales = whole.detach().abs().amax(1).clamp_min(1e-12) / FULL
    return Int8Matrix((whole.detach() / scales.unsqueeze(1)).round().to(torch.int8), scales)


def quantize_by_error(weight: Tensor, largest: int = FULL) -> Int8Matrix:
    """A matrix in int8, each row's scale the one that loses least: its largest numbers may be cut to the range. Of the
    whole numbers, so many on each side are used as `largest` says, at even distances.

    Some number of each row is at the end of the range, and every product of a scale is exact. So what is rounded a
    second time, by either way, is the same again.
    """
    weight = weight.detach().float()
    highest = weight.abs().amax(1).clamp_min(1e-30)
    best = Int8Matrix(torch.zeros_like(weight, dtype=torch.int8), torch.ones_like(highest))
    least = torch.full_like(highest, torch.inf)
    for clip in torch.linspace(1, LEAST, CLIPS):
        scales = (highest * clip / FULL).view(torch.int32).bitwise_and_(~LOW_BITS).view(torch.float32)
        values = (weight / (scales * FULL / largest).unsqueeze(1)).round_().clamp_(-largest, largest)
        values = values.mul_(FULL / largest).round_()
        error = (values * scales.unsqueeze(1)).sub_(weight).square_().sum(1)
        better = error < least
        least = torch.where(better, error, least)
        best.values[better] = values[better].to(torch.int8)
        best.scales[better] = scales[better]
    return best


def pack_six(values: Tensor) -> Tensor:
    """(O, I) int8, of 63 even values, as (O, 3 * I / 4) bytes: four numbers of 6 bits in three."""
    padded = nn.functional.pad(values.float() * (SIX / FULL), (0, -values.shape[1] % 4))
    a, b, c, d = (padded.round().int() + SIX).view(len(values), -1, 4).unbind(-1)
    return torch.stack((a | (b & 3) << 6, b >> 2 | (c & 15) << 4, c >> 4 | d << 2), -1).to(torch.uint8).flatten(1)


def unpack_six(packed: Tensor, width: int) -> Tensor:
    """What `pack_six` was given: (O, width) int8. Two numbers at once are looked up in a table."""
    one = ((torch.arange(64) - SIX) * (FULL / SIX)).round().clamp(max=FULL).to(torch.int8)
    table = torch.stack((one.repeat(64), one.repeat_interleave(64)), -1).view(torch.int16).flatten()
    a, b, c = packed.int().view(len(packed), -1, 3).unbind(-1)
    pairs = table[torch.stack((a | (b & 15) << 8, b >> 4 | c << 4), -1)]
    return pairs.view(torch.int8).flatten(1)[:, :width].contiguous()


class MetaInit(TorchFunctionMode):
    """Under this mode a model gets its weights on the meta device: they have shapes, but no memory and no values."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.empty, torch.zeros, torch.ones):
            return func(*args, **kwargs | {"device": "meta"})
        first = args[0] if args else kwargs.get("tensor")
        in_place = func.__name__.endswith("_") and not func.__name__.endswith("__")
        return first if in_place and isinstance(first, Tensor) and first.is_meta else func(*args, **kwargs)


def quantize(model: Model, tensors: Mapping[str, Tensor], six: bool = False) -> dict[str, Tensor]:
    """The weights of a model as int8 with their scales, or packed in `six` bits; what its configuration says already
    is left out."""
    computed = dict(empty_model(model.config, type(model)).named_buffers())
    some = set(quantizable(model))
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name in some:
            found[name], found[scales_name(name)] = quantize_by_error(tensor, SIX if six else FULL)[:2]
            found[name] = pack_six(found[name]) if six else found[name]
        elif name not in computed or not torch.equal(computed[name], tensor.cpu()):
            found[name] = tensor
    return found


def empty_model(config: ModelConfig, kind: type[Model] = EncoderDecoder) -> Model:
    """A model without weights, to be filled; what is computed of its configuration is there."""
    with MetaInit():
        return kind(config)


def unpacked(model: Model, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file with its matrices of 6 bits in int8; one of another shape stays as it is."""
    whole = weights(model)
    widths = {name: whole[name].shape[1] for name in quantizable(model)}
    packed = {
        name: width
        for name, width in widths.items()
        if name in tensors and tensors[name].dtype == torch.uint8 and tensors[name].shape[1:] == (-(-width // 4) * 3,)
    }
    return {name: unpack_six(t, packed[name]) if name in packed else t for name, t in tensors.items()}


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Every tensor that a model consists of, tied ones once."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


def quantizable(model: nn.Module) -> list[str]:
    """The names of the weights that may be int8: those of products and of the pieces' embeddings."""
    names = {id(weight): name for name, weight in model.named_parameters()}
    owners = [m for m in model.modules() if isinstance(m, nn.Linear | nn.Embedding | Head)]
    return list(dict.fromkeys(names[id(module.weight)] for module in owners))


def set_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put `tensors` in the places of a model's own, by their names; with scales, in int8."""
    names = {id(tensor): name for name, tensor in weights(model).items()}
    made: dict[str, nn.Parameter] = {}
    for module in model.modules():
        for own, old in [*module._parameters.items()]:
            name = "" if old is None else names.get(id(old), "")
            if name not in tensors:
                continue
            if name not in made:
                made[name] = nn.Parameter(tensors[name], requires_grad=tensors[name].is_floating_point())
            module._parameters[own] = made[name]
            if (scales := tensors.get(scales_name(name))) is not None:
                module.register_buffer(SCALES, scales)
        for own, buffer in [*module._buffers.items()]:
            name = "" if buffer is None else names.get(id(buffer), "")
            if name in tensors:
                module._buffers[own] = tensors[name]


def dequantize_model(model: nn.Module) -> None:
    """Make what is in int8 float32 again, matrix by matrix."""
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        if isinstance(whole := matrix(module) if hasattr(module, SCALES) else None, Int8Matrix):
            old = id(module._parameters["weight"])
            if old not in made:
                made[old] = nn.Parameter(whole.dequantize())
            module._parameters["weight"] = made[old]
            del module._buffers[SCALES]
            module._buffers.pop(ALPHAS, None)


def scales_name(name: str) -> str:
    """The name of the scales of a weight."""
    return f"{name.removesuffix('weight')}{SCALES}"


def is_quantized(model: nn.Module) -> bool:
    return any(hasattr(module, SCALES) for module in model.modules())


def has_alphas(model: nn.Module) -> bool:
    """Whether its weights come with the scales of what they multiply."""
    return any(hasattr(module, ALPHAS) for module in model.modules())
