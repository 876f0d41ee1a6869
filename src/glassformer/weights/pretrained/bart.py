"""BART: learned positions two rows into their table, a norm after the embedding, Post-LN."""

from __future__ import annotations

from typing import Any

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
    start = settings.token("decoder_start_token_id", vocab)
    return {
        "vocab_size": vocab,
        **settings.read(NAMES),
        "norm": "post",
        "output_bias": True,
        "pad_id": settings.token("pad_token_id", vocab),
        "start_id": settings.token("bos_token_id", vocab) if start is None else start,
        "end_id": settings.token("eos_token_id", vocab),
        "force_end": settings.token("forced_eos_token_id", vocab) is not None,
    }


def config(settings: Settings, tied: bool) -> ModelConfig:
    for name, value in (("normalize_before", False), ("normalize_embedding", True), ("add_final_layer_norm", False)):
        settings.only(name, value)
    shared = common(settings, settings.need("vocab_size"))
    return ModelConfig(**shared, positions="learned", embedding_norm=True, tied=tied)


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
