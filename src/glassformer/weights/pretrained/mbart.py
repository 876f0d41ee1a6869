"""mBART: BART with its norms before the sublayers, and one more at the end of each stack."""

from __future__ import annotations

from dataclasses import replace

from glassformer.model import ModelConfig
from glassformer.weights.pretrained import bart
from glassformer.weights.pretrained.family import Settings


def config(settings: Settings, tied: bool) -> ModelConfig:
    for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm"):
        settings.only(name, True)
    shared = bart.common(settings, settings.need("vocab_size")) | {"norm": "pre"}
    return ModelConfig(**shared, positions="learned", embedding_norm=True, tied=tied)


FAMILY = replace(bart.FAMILY, config=config)
