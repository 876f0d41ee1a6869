"""DistilBERT: BERT without segments, under names of its own."""

from __future__ import annotations

from dataclasses import replace

from glassformer.model import EncoderOnly, ModelConfig
from glassformer.weights.pretrained import bert
from glassformer.weights.pretrained.family import Family, Names, Settings, Take, Weights, layers, pairs

NAMES: Names = {
    "d_model": "dim",
    "heads": "n_heads",
    "d_ff": "hidden_dim",
    "layers": "n_layers",
    "activation": ("activation", "gelu"),
    "max_length": ("max_position_embeddings", 512),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.1),
}
LAYER = {
    "self_attention.projection": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "self_attention.output": ("attention.out_lin",),
    "self_attention_residual.norm": ("sa_layer_norm",),
    "feed_forward.up": ("ffn.lin1",),
    "feed_forward.down": ("ffn.lin2",),
    "feed_forward_residual.norm": ("output_layer_norm",),
}


def config(settings: Settings, tied: bool) -> ModelConfig:
    return replace(bert.common(settings, NAMES, tied), norm_eps=1e-12)


def weights(config: ModelConfig, settings: Settings) -> Weights:
    single = {
        "encoder.embedding.norm": "embeddings.LayerNorm",
        "head.transform.dense": "vocab_transform",
        "head.transform.norm": "vocab_layer_norm",
    }
    return (
        layers(config.layers, "encoder.blocks", "transformer.layer", LAYER)
        | pairs(single)
        | {
            "encoder.embedding.tokens.weight": Take(("embeddings.word_embeddings.weight",)),
            "encoder.embedding.positions.table": Take(("embeddings.position_embeddings.weight",)),
            "head.bias": Take(("vocab_projector.bias",)),
        }
    )


FAMILY = Family(
    model=EncoderOnly,
    config=config,
    weights=weights,
    prefix="distilbert.",
    embedding="embeddings.word_embeddings.weight",
    head="vocab_projector.weight",
    constant=r"embeddings\.position_ids",
)
