"""Marian: BART's layers with a fixed sinusoid whose sines come before its cosines, and no norm after the embedding.

Pegasus is the same with Pre-LN.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from glassformer.model import ModelConfig
from glassformer.model.embedding import sinusoid
from glassformer.weights.pretrained import bart
from glassformer.weights.pretrained.family import Family, Settings, Take, Weights


def config(settings: Settings, tied: bool) -> ModelConfig:
    source = settings.need("vocab_size")
    shared = settings.get("share_encoder_decoder_embeddings", True)
    vocab = source if shared else settings.get("decoder_vocab_size", source)
    return sinusoidal(settings, vocab, tied, pre=False, src_vocab_size=None if shared else source)


def sinusoidal(settings: Settings, vocab: int, tied: bool, pre: bool, **more: Any) -> ModelConfig:
    settings.only("static_position_embeddings", True)
    shared = bart.common(settings, vocab) | bart.norms(settings, pre, embedding=False)
    return ModelConfig(**shared, **more, positions="sinusoidal", tied=tied)


def sines_first(length: int, width: int) -> Tensor:
    table = sinusoid(length, width)
    return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)


def weights(config: ModelConfig, settings: Settings) -> Weights:
    table = bart.stacks(config)
    for side in ("encoder", "decoder"):
        # Older files carry the table; newer ones leave it to be computed.
        table[f"{side}.embedding.positions.table"] = Take(
            (f"{side}.embed_positions.weight?",),
            lambda t: sines_first(config.max_length, config.d_model) if t is None else t,
            lambda t: (None,),
        )
    if config.src_vocab_size is None:
        table["encoder.embedding.tokens.weight"] = Take(("shared.weight",))
    else:
        table["encoder.embedding.tokens.weight"] = Take(("encoder.embed_tokens.weight",))
        table["decoder.embedding.tokens.weight"] = Take(("decoder.embed_tokens.weight",))
    table["head.bias"] = bart.LOGITS_BIAS
    return table


def family(settings: Settings) -> Family:
    shared = settings.get("share_encoder_decoder_embeddings", True)
    own = replace(bart.FAMILY, config=config, weights=weights)
    return own if shared else replace(own, embedding="decoder.embed_tokens.weight", same=())


PEGASUS = replace(
    bart.FAMILY,
    config=lambda settings, tied: sinusoidal(settings, settings.need("vocab_size"), tied, pre=True),
    weights=weights,
)
