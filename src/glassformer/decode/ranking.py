"""The likeliest tokens of a large vocabulary.

Shapes: R rows, V vocabulary, N blocks of W tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.decode.kernels import ours

WIDTH = 128


class Likeliest(NamedTuple):
    """Of each row the highest logits, highest first, their ids, and what to subtract for log-probabilities."""

    logits: Tensor  # (R, C)
    ids: Tensor  # (R, C)
    normaliser: Tensor  # (R, 1)


def likeliest(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest logits of each row (R, V) and their ids, highest first.

    Where our kernels are not, a CPU finds the highest of many blocks much faster than the `count` highest of all; and
    those can only lie in the `count` blocks whose own highest are highest, or in what the blocks leave over.
    """
    rows, size = logits.shape
    own = ours(logits)
    if own is not None:
        return own.highest(logits.contiguous(), min(count, size))
    blocks = size // WIDTH
    if logits.device.type != "cpu" or blocks <= 2 * count:
        return logits.topk(min(count, size))
    table = logits[:, : blocks * WIDTH].view(rows, blocks, WIDTH)
    chosen = table.amax(-1).topk(count)[1].unsqueeze(-1)  # (R, count, 1)
    among = table.gather(1, chosen.expand(-1, -1, WIDTH)).flatten(1)
    ids = (chosen * WIDTH + torch.arange(WIDTH)).flatten(1)
    if blocks * WIDTH < size:
        among = torch.cat((among, logits[:, blocks * WIDTH :]), dim=1)
        ids = torch.cat((ids, torch.arange(blocks * WIDTH, size).expand(rows, -1)), dim=1)
    best, places = among.topk(count)
    return best, ids.gather(1, places)


def normaliser(logits: Tensor) -> Tensor:
    """The logarithm (R, 1) to subtract from logits (R, V) for log-probabilities."""
    own = ours(logits)
    return logits.logsumexp(-1, keepdim=True) if own is None else own.normalise(logits.contiguous())
