"""RoBERTa: BERT's parts, its positions counted from the row after the padding's, its head under other names."""

from __future__ import annotations

from dataclasses import replace

from glassformer.common.errors import WeightsError
from glassformer.model import ModelConfig
from glassformer.weights.pretrained import bert
from glassformer.weights.pretrained.family import Settings, Take, Weights, from_row, pairs


def config(settings: Settings, tied: bool) -> ModelConfig:
    settings.only("hidden_act", "gelu")  # which the head always has
    whole = bert.config(settings, tied)
    if whole.pad_id is None:
        raise WeightsError("config.json lacks `pad_token_id`, after which this model type counts its positions")
    return replace(whole, max_length=whole.max_length - whole.pad_id - 1)


def weights(config: ModelConfig, settings: Settings) -> Weights:
    assert config.pad_id is not None
    positions = Take(("embeddings.position_embeddings.weight",), *from_row(config.pad_id + 1))
    head = {"head.transform.dense": "lm_head.dense", "head.transform.norm": "lm_head.layer_norm"}
    other = {"encoder.embedding.positions.table": positions, "head.bias": Take(("lm_head.bias",))}
    return bert.weights(config, settings) | pairs(head) | other


FAMILY = replace(
    bert.FAMILY,
    config=config,
    weights=weights,
    prefix="roberta.",
    head="lm_head.decoder.weight",
    same=(("lm_head.bias", "lm_head.decoder.bias"),),
    other_head=r"pooler\..*",
    rename=(),
)
