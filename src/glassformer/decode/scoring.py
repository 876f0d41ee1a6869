"""How likely a model finds a target that is given to it.

Shapes: B sentences, T target tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from glassformer.errors import InputError
from glassformer.model import EncoderDecoder


@torch.inference_mode()
def score(
    model: EncoderDecoder,
    src: Tensor,
    targets: Sequence[Sequence[int]],
    src_mask: Tensor | None = None,
    length_penalty: float = 1.0,
) -> list[float]:
    """The score that search would give each target (ids without start and end), in one parallel pass."""
    start, end = model.config.start_id, model.config.end_id
    if start is None or end is None:
        raise InputError("the model's config names no start or end token, so a target cannot be framed by them")
    if len(targets) != src.shape[0]:
        raise InputError(f"{len(targets)} targets were given for {src.shape[0]} sources; give one each")
    width = 1 + max(map(len, targets), default=0)
    labels = torch.full((len(targets), width), end, device=src.device)
    real = torch.zeros_like(labels, dtype=torch.bool)
    for i, ids in enumerate(targets):
        labels[i, : len(ids) + 1] = torch.tensor([*ids, end], device=src.device)
        real[i, : len(ids) + 1] = True
    tgt = torch.cat((labels.new_full((len(targets), 1), start), labels[:, :-1]), dim=1)
    log_probabilities = model(src, tgt, src_mask).float().log_softmax(-1)
    found = log_probabilities.gather(2, labels.unsqueeze(2)).squeeze(2).masked_fill(~real, 0.0)
    scores: list[float] = (found.sum(1) / real.sum(1) ** length_penalty).tolist()
    return scores
