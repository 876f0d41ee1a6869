"""BERT with its masked-language-model head, and the families that change a part of it: RoBERTa and DistilBERT.

BERT is an encoder, Post-LN, with segments beside positions and a norm after both. RoBERTa counts its positions from the
row after the padding's, and its head has other names. DistilBERT has no segments, and names of its own.
"""

from __future__ import annotations

from dataclasses import replace

from glassformer.common.errors import WeightsError
from glassformer.model import EncoderOnly, ModelConfig
from glassformer.weights.pretrained.family import Family, Names, Settings, Take, Weights, from_row, layers, pairs

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


EMBEDDINGS = pairs({"encoder.embedding.norm": "embeddings.LayerNorm"}) | {
    "encoder.embedding.tokens.weight": Take(("embeddings.word_embeddings.weight",)),
    "encoder.embedding.positions.table": Take(("embeddings.position_embeddings.weight",)),
}


def weights(config: ModelConfig, settings: Settings) -> Weights:
    head = {
        "head.transform.dense": "cls.predictions.transform.dense",
        "head.transform.norm": "cls.predictions.transform.LayerNorm",
    }
    table = layers(config.layers, "encoder.blocks", "encoder.layer", LAYER) | pairs(head) | EMBEDDINGS
    table["encoder.embedding.segments.weight"] = Take(("embeddings.token_type_embeddings.weight",))
    return table | {"head.bias": Take(("cls.predictions.bias",))}


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


def roberta_config(settings: Settings, tied: bool) -> ModelConfig:
    settings.only("hidden_act", "gelu")  # which the head always has
    whole = config(settings, tied)
    if whole.pad_id is None:
        raise WeightsError("config.json lacks `pad_token_id`, after which this model type counts its positions")
    return replace(whole, max_length=whole.max_length - whole.pad_id - 1)


def roberta_weights(config: ModelConfig, settings: Settings) -> Weights:
    assert config.pad_id is not None
    positions = Take(("embeddings.position_embeddings.weight",), *from_row(config.pad_id + 1))
    head = {"head.transform.dense": "lm_head.dense", "head.transform.norm": "lm_head.layer_norm"}
    other = {"encoder.embedding.positions.table": positions, "head.bias": Take(("lm_head.bias",))}
    return weights(config, settings) | pairs(head) | other


ROBERTA = replace(
    FAMILY,
    config=roberta_config,
    weights=roberta_weights,
    prefix="roberta.",
    head="lm_head.decoder.weight",
    same=(("lm_head.bias", "lm_head.decoder.bias"),),
    other_head=r"pooler\..*",
    rename=(),
)

DISTILBERT_NAMES: Names = {
    "d_model": "dim",
    "heads": "n_heads",
    "d_ff": "hidden_dim",
    "layers": "n_layers",
    "activation": ("activation", "gelu"),
    "max_length": ("max_position_embeddings", 512),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.1),
}
DISTILBERT_LAYER = {
    "self_attention.projection": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "self_attention.output": ("attention.out_lin",),
    "self_attention_residual.norm": ("sa_layer_norm",),
    "feed_forward.up": ("ffn.lin1",),
    "feed_forward.down": ("ffn.lin2",),
    "feed_forward_residual.norm": ("output_layer_norm",),
}


def distilbert_weights(config: ModelConfig, settings: Settings) -> Weights:
    head = {"head.transform.dense": "vocab_transform", "head.transform.norm": "vocab_layer_norm"}
    table = layers(config.layers, "encoder.blocks", "transformer.layer", DISTILBERT_LAYER) | pairs(head) | EMBEDDINGS
    return table | {"head.bias": Take(("vocab_projector.bias",))}


DISTILBERT = replace(
    FAMILY,
    config=lambda settings, tied: replace(common(settings, DISTILBERT_NAMES, tied), norm_eps=1e-12),
    weights=distilbert_weights,
    prefix="distilbert.",
    head="vocab_projector.weight",
    same=(),
    other_head="$^",
    rename=(),
)
