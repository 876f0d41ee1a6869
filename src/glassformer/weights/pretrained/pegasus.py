"""Pegasus: Marian's embedding and its sinusoid around mBART's Pre-LN stacks."""

from __future__ import annotations

from dataclasses import replace

from glassformer.model import ModelConfig
from glassformer.weights.pretrained import bart, marian
from glassformer.weights.pretrained.family import Settings


def config(settings: Settings, tied: bool) -> ModelConfig:
    for name, value in (("normalize_before", True), ("normalize_embedding", False), ("add_final_layer_norm", True)):
        settings.only(name, value)
    settings.only("static_position_embeddings", True)
    shared = bart.common(settings, settings.need("vocab_size")) | {"norm": "pre"}
    return ModelConfig(**shared, positions="sinusoidal", tied=tied)


FAMILY = replace(bart.FAMILY, config=config, weights=marian.weights)
