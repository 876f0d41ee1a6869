"""Targets that are given: how likely a model finds one, what could come next, and from where each token was written.

Shapes: B sentences, H heads, S source, T target tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from glassformer.common.device import disable_cudnn_sdp
from glassformer.common.errors import ConfigError, InputError
from glassformer.decode.search import LengthRule, Rule
from glassformer.decode.step import start_of
from glassformer.model import EncoderDecoder
from glassformer.model.layer import Block
from glassformer.model.transformer import share_weights


@disable_cudnn_sdp
@torch.inference_mode()
def score(
    model: EncoderDecoder,
    src: Tensor,
    targets: Sequence[Sequence[int]],
    src_mask: Tensor | None = None,
    *,
    length_penalty: float = 1.0,
    length_rule: Rule = "average",
    given: int = 0,
) -> list[float]:
    """The score that search would give each target (ids without start and end), in one parallel pass; the first `given`
    tokens of each are certain."""
    start, end = start_of(model), model.config.end_id
    if end is None:
        raise ConfigError("end_id=None: the model's config names no end token, so no target can be complete; set it")
    check_one_each(targets, src)
    width = 1 + max(map(len, targets), default=0)
    labels = torch.full((len(targets), width), end, device=src.device)
    real = torch.zeros_like(labels, dtype=torch.bool)
    for i, ids in enumerate(targets):
        labels[i, : len(ids) + 1] = torch.tensor([*ids, end], device=src.device)
        real[i, : len(ids) + 1] = True
    tgt = torch.cat((labels.new_full((len(targets), 1), start), labels[:, :-1]), dim=1)
    log_probabilities = model(src, tgt, src_mask).float().log_softmax(-1)
    own = log_probabilities.gather(2, labels.unsqueeze(2)).squeeze(2).masked_fill(~real, 0.0)
    own[:, :given] = 0.0
    divisor = LengthRule(length_penalty, length_rule).divisor(real.sum(1))
    scores: list[float] = (own.sum(1) / divisor).tolist()
    return scores


def check_one_each(targets: Sequence[Sequence[int]], src: Tensor) -> None:
    if len(targets) != src.shape[0]:
        raise InputError(f"{len(targets)} targets were given for {src.shape[0]} sources; give one each")


@disable_cudnn_sdp
@torch.inference_mode()
def alternatives(
    model: EncoderDecoder, src: Tensor, prefix: Sequence[int] = (), count: int = 5
) -> list[tuple[int, float]]:
    """The likeliest tokens after `prefix` in the target of one source (1, S), with their log-probabilities."""
    size = model.config.vocab_size
    if src.shape[0] != 1:
        raise InputError(f"alternatives() looks at one source; {src.shape[0]} were given")
    if not 1 <= count <= size:
        raise InputError(f"count={count} must lie between 1 and the vocabulary's {size}")
    tgt = torch.tensor([[start_of(model), *prefix]], device=src.device)
    best, ids = model(src, tgt)[0, -1].float().log_softmax(-1).topk(count)
    return list(zip(ids.tolist(), best.tolist(), strict=True))


Alignment = list[tuple[int, int]]


@disable_cudnn_sdp
@torch.inference_mode()
def align(
    model: EncoderDecoder, src: Tensor, targets: Sequence[Sequence[int]], src_mask: Tensor | None = None
) -> list[Alignment]:
    """For each token of each target (ids without start and end) its place, and that of the source token it looked at
    most. The source's end mark is passed over: heads rest there when they look for nothing."""
    check_one_each(targets, src)
    width = max(map(len, targets), default=0)
    if not width:
        return [[] for _ in targets]
    tgt = src.new_full((len(targets), width), start_of(model))  # each position's row reads the token before it
    for i, ids in enumerate(targets):
        tgt[i, 1 : len(ids)] = torch.tensor(list(ids[:-1]), device=src.device)
    layers: list[Tensor] = []

    def record(_module: object, _given: object, pattern: Tensor) -> None:
        layers.append(pattern.float().mean(1))

    watched = share_weights(model)
    for block in watched.decoder.blocks:
        cross = cast(Block, block).cross_attention
        assert cross is not None
        cross.pattern.register_forward_hook(record)
    watched.decoder(tgt, None, watched.encode(src, src_mask), src_mask)
    attention = torch.stack(layers).mean(0)  # (B, T, S)
    real = torch.ones_like(src, dtype=torch.bool) if src_mask is None else src_mask
    words = real if model.config.end_id is None else real & (src != model.config.end_id)
    words = torch.where(words.any(1, keepdim=True), words, real)
    places = attention.masked_fill(~words.unsqueeze(1), -1.0).argmax(-1).tolist()
    return [[(t, row[t]) for t in range(len(ids))] for ids, row in zip(targets, places, strict=True)]
