"""A model whose weights are those that a format's rounding leaves."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.model import EncoderDecoder

HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


@torch.no_grad()
def round_parts(model: EncoderDecoder, kind: str) -> EncoderDecoder:
    """A copy of the model, rounded as CTranslate2 rounds for storage: matrices to whole numbers with a scale for each
    row (int8) or for all (int16), or every number to one of 16 bits."""
    whole, _, rest = kind.partition("_")
    if whole == "float32":
        return model
    rounded = copy.deepcopy(model)
    if whole in HALVES or rest in HALVES:
        half = HALVES[rest or whole]
        matrices = {part.data_ptr() for part in parts(rounded)} if whole.startswith("int") else set()
        for tensor in (*rounded.parameters(), *rounded.buffers()):
            if tensor.data_ptr() not in matrices:
                tensor.copy_(tensor.to(half))
    if whole.startswith("int"):
        seen: set[int] = set()
        for part in parts(rounded):
            if part.data_ptr() not in seen:
                seen.add(part.data_ptr())
                part.copy_(whole_numbers(part, whole))
    return rounded


def whole_numbers(part: Tensor, kind: str) -> Tensor:
    if kind == "int16":
        scale = 2**10 / part.abs().amax()
    else:
        highest = part.abs().amax(1, keepdim=True)
        scale = 127.0 / torch.where(highest == 0, 127.0, highest)
    return (part * scale).round() / scale


def parts(model: EncoderDecoder) -> Iterator[Tensor]:
    """The matrices that are rounded, each as it is stored."""
    for stack in (model.encoder, model.decoder):
        yield stack.embedding.tokens.weight
        blocks: list[Any] = list(stack.blocks)
        for block in blocks:
            own, cross, network = block.self_attention, block.cross_attention, block.feed_forward
            yield own.projection.weight
            yield own.output.weight
            if cross is not None:
                queries = cross.projection.rows[0]
                yield cross.projection.weight[:queries]
                yield cross.projection.weight[queries:]
                yield cross.output.weight
            yield from network.up.weight.chunk(2) if network.gated else (network.up.weight,)
            yield network.down.weight
    yield model.head.weight
