"""BART, and the families that change a part of it: mBART and M2M100, which NLLB is too.

BART has learned positions two rows into their table, a norm after the embedding, Post-LN. mBART is Pre-LN. M2M100 is
Pre-LN with a sinusoid of its own, which begins at its third row: its frequencies go from 1 to 1/10000 inclusive, where
the paper's stop one step before, and its sines come first.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from glassformer.common.errors import WeightsError
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.weights.pretrained.family import Family, Names, Settings, Take, Weights, from_row, layers, pairs

LOGITS_BIAS = Take(("final_logits_bias",), lambda t: t.flatten(), lambda t: (t.unsqueeze(0),))
OFFSET = 2  # rows of the position table that no token uses

NAMES: Names = {
    "d_model": "d_model",
    "heads": "encoder_attention_heads",
    "d_ff": "encoder_ffn_dim",
    "layers": "encoder_layers",
    "decoder_heads": "decoder_attention_heads",
    "decoder_d_ff": "decoder_ffn_dim",
    "decoder_layers": "decoder_layers",
    "max_length": ("max_position_embeddings", 1024),
    "activation": ("activation_function", "gelu"),
    "embedding_scale": ("scale_embedding", False),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.0),
    "activation_dropout": ("activation_dropout", 0.0),
}
ENCODER_LAYER = {
    "self_attention.projection": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention.output": ("self_attn.out_proj",),
    "self_attention_residual.norm": ("self_attn_layer_norm",),
    "feed_forward.up": ("fc1",),
    "feed_forward.down": ("fc2",),
    "feed_forward_residual.norm": ("final_layer_norm",),
}
DECODER_LAYER = ENCODER_LAYER | {
    "cross_attention.projection": ("encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross_attention.output": ("encoder_attn.out_proj",),
    "cross_attention_residual.norm": ("encoder_attn_layer_norm",),
}


def common(settings: Settings, vocab: int) -> dict[str, Any]:
    """What BART and the families after it say alike."""
    return {
        **settings.ids(vocab, "decoder_start_token_id", "bos_token_id"),
        **settings.read(NAMES),
        "output_bias": True,
        "force_end": settings.token("forced_eos_token_id", vocab) is not None,
    }


def norms(settings: Settings, pre: bool, embedding: bool) -> dict[str, Any]:
    """Where the norms are; settings that put them elsewhere are refused."""
    for name, value in (("normalize_before", pre), ("normalize_embedding", embedding), ("add_final_layer_norm", pre)):
        settings.only(name, value)
    return {"norm": "pre" if pre else "post", "embedding_norm": embedding}


def config(settings: Settings, tied: bool, pre: bool = False) -> ModelConfig:
    shared = common(settings, settings.need("vocab_size")) | norms(settings, pre, embedding=True)
    return ModelConfig(**shared, positions="learned", tied=tied)


def stacks(config: ModelConfig) -> Weights:
    """All layers, and the norm that ends a Pre-LN stack."""
    table = layers(config.layers, "encoder.blocks", "encoder.layers", ENCODER_LAYER)
    table |= layers(config.decoder.layers, "decoder.blocks", "decoder.layers", DECODER_LAYER)
    last = {"encoder.norm": "encoder.layer_norm", "decoder.norm": "decoder.layer_norm"}
    return table | pairs(last if config.norm == "pre" else {})


def weights(config: ModelConfig, settings: Settings) -> Weights:
    table = stacks(config)
    for side in ("encoder", "decoder"):
        table |= pairs({f"{side}.embedding.norm": f"{side}.layernorm_embedding"})
        table[f"{side}.embedding.positions.table"] = Take((f"{side}.embed_positions.weight",), *from_row(OFFSET))
    table["encoder.embedding.tokens.weight"] = Take(("shared.weight",))
    table["head.bias"] = LOGITS_BIAS
    return table


FAMILY = Family(
    model=EncoderDecoder,
    config=config,
    weights=weights,
    prefix="model.",
    embedding="shared.weight",
    head="lm_head.weight",
    same=(("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"),),
)


def m2m100_config(settings: Settings, tied: bool) -> ModelConfig:
    vocab = settings.need("vocab_size")
    if settings.token("pad_token_id", vocab) is None:
        raise WeightsError("config.json lacks `pad_token_id`, after which this model type counts its positions")
    shared = common(settings, vocab) | {
        "norm": "pre",
        "activation": settings.activation("activation_function", "relu"),
        "embedding_scale": settings.get("scale_embedding", True),
        "output_bias": False,
    }
    return ModelConfig(**shared, positions="sinusoidal", tied=tied)


def m2m100_sinusoid(first: int, length: int, width: int) -> Tensor:
    """In float32 throughout, as in the training of these models."""
    half = width // 2
    frequency = torch.exp(torch.arange(half) * -(math.log(10_000) / max(1, half - 1)))
    angle = torch.arange(first, first + length).float().unsqueeze(1) * frequency  # (L, D/2)
    return torch.cat((angle.sin(), angle.cos()), dim=1)  # (L, D)


def m2m100_weights(config: ModelConfig, settings: Settings) -> Weights:
    table = stacks(config) | {"encoder.embedding.tokens.weight": Take(("shared.weight",))}
    assert config.pad_id is not None
    positions = m2m100_sinusoid(config.pad_id + 1, config.max_length, config.d_model)
    for side in ("encoder", "decoder"):
        table[f"{side}.embedding.positions.table"] = Take((), lambda: positions, lambda t: ())
    return table


MBART = replace(FAMILY, config=lambda settings, tied: config(settings, tied, pre=True))
POSITIONS = r"(encoder|decoder)\.embed_positions\.weights?"  # of older files: the sinusoid, which is computed here
M2M100 = replace(FAMILY, config=m2m100_config, weights=m2m100_weights, constant=POSITIONS)
