"""BERT with its masked-language-model head: an encoder, Post-LN, segments beside positions, a norm after both."""

from __future__ import annotations

from glassformer.model import EncoderOnly, ModelConfig
from glassformer.weights.pretrained.family import Family, Names, Settings, Take, Weights, layers, pairs

SIZES: Names = {
    "d_model": "hidden_size",
    "heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "layers": "num_hidden_layers",
    "norm_eps": ("layer_norm_eps", 1e-12),
    "activation": ("hidden_act", "gelu"),
}
NAMES = SIZES | {
    "max_length": ("max_position_embeddings", 512),
    "segments": ("type_vocab_size", 2),
    "dropout": ("hidden_dropout_prob", 0.1),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1),
}
LAYER = {
    "self_attention.projection": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "self_attention.output": ("attention.output.dense",),
    "self_attention_residual.norm": ("attention.output.LayerNorm",),
    "feed_forward.up": ("intermediate.dense",),
    "feed_forward.down": ("output.dense",),
    "feed_forward_residual.norm": ("output.LayerNorm",),
}


def config(settings: Settings, tied: bool) -> ModelConfig:
    settings.only("position_embedding_type", "absolute")
    settings.only("is_decoder", False)
    return common(settings, NAMES, tied)


def common(settings: Settings, names: Names, tied: bool) -> ModelConfig:
    """What BERT and the families after it say alike, each by its own names."""
    vocab = settings.need("vocab_size")
    return ModelConfig(
        vocab_size=vocab,
        **settings.read(names),
        norm="post",
        positions="learned",
        embedding_scale=False,
        embedding_norm=True,
        tied=tied,
        output_transform=True,
        output_bias=True,
        activation_dropout=0.0,
        pad_id=settings.token("pad_token_id", vocab),
        start_id=None,
        end_id=None,
    )


def weights(config: ModelConfig, settings: Settings) -> Weights:
    embeddings, predictions = "embeddings", "cls.predictions"
    return (
        layers(config.layers, "encoder.blocks", "encoder.layer", LAYER)
        | pairs(
            {
                "encoder.embedding.norm": f"{embeddings}.LayerNorm",
                "head.transform.dense": f"{predictions}.transform.dense",
                "head.transform.norm": f"{predictions}.transform.LayerNorm",
            }
        )
        | {
            "encoder.embedding.tokens.weight": Take((f"{embeddings}.word_embeddings.weight",)),
            "encoder.embedding.positions.table": Take((f"{embeddings}.position_embeddings.weight",)),
            "encoder.embedding.segments.weight": Take((f"{embeddings}.token_type_embeddings.weight",)),
            "head.bias": Take((f"{predictions}.bias",)),
        }
    )


FAMILY = Family(
    model=EncoderOnly,
    config=config,
    weights=weights,
    prefix="bert.",
    embedding="embeddings.word_embeddings.weight",
    head="cls.predictions.decoder.weight",
    same=(("cls.predictions.bias", "cls.predictions.decoder.bias"),),
    constant=r"embeddings\.position_ids",
    other_head=r"pooler\..*|cls\.seq_relationship\..*",
    rename=((r"LayerNorm\.gamma$", "LayerNorm.weight"), (r"LayerNorm\.beta$", "LayerNorm.bias")),
)
