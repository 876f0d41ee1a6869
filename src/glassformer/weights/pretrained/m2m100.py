"""M2M100, which NLLB is too: BART's layers with Pre-LN, and a sinusoid of its own that begins at its third row.

Its frequencies go from 1 to 1/10000 inclusive, where the paper's stop one step before; its sines stand first.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from glassformer.common.errors import WeightsError
from glassformer.model import ModelConfig
from glassformer.weights.pretrained import bart
from glassformer.weights.pretrained.family import Settings, Take, Weights


def config(settings: Settings, tied: bool) -> ModelConfig:
    vocab = settings.need("vocab_size")
    if settings.token("pad_token_id", vocab) is None:
        raise WeightsError("config.json lacks `pad_token_id`, after which this model type counts its positions")
    shared = bart.common(settings, vocab) | {
        "norm": "pre",
        "activation": settings.activation("activation_function", "relu"),
        "embedding_scale": settings.get("scale_embedding", True),
        "output_bias": False,
    }
    return ModelConfig(**shared, positions="sinusoidal", tied=tied)


def sinusoid(first: int, length: int, width: int) -> Tensor:
    """In float32 throughout, as those compute it who trained these models."""
    half = width // 2
    frequency = torch.exp(torch.arange(half) * -(math.log(10_000) / max(1, half - 1)))
    angle = torch.arange(first, first + length).float().unsqueeze(1) * frequency  # (L, D/2)
    return torch.cat((angle.sin(), angle.cos()), dim=1)  # (L, D)


def weights(config: ModelConfig, settings: Settings) -> Weights:
    table = bart.stacks(config) | {"encoder.embedding.tokens.weight": Take(("shared.weight",))}
    assert config.pad_id is not None
    positions = sinusoid(config.pad_id + 1, config.max_length, config.d_model)
    for side in ("encoder", "decoder"):
        table[f"{side}.embedding.positions.table"] = Take((), lambda: positions, lambda t: ())
    return table


FAMILY = replace(bart.FAMILY, config=config, weights=weights, constant=r"(encoder|decoder)\.embed_positions\.weights?")
