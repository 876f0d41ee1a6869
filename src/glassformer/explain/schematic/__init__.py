"""Schematics: how a model is put together, drawn as SVG from a pass of it. Read `passing`, `canvas`, `layer`, `whole`,
`attention`, `masks`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from glassformer.explain.schematic.attention import draw_attention
from glassformer.explain.schematic.canvas import Canvas
from glassformer.explain.schematic.layer import draw_layer
from glassformer.explain.schematic.masks import draw_masks
from glassformer.explain.schematic.passing import Pass, watch
from glassformer.explain.schematic.whole import draw_model
from glassformer.model import EncoderDecoder, Model, ModelConfig

KINDS: dict[str, Callable[[Pass, str], Canvas]] = {
    "model": draw_model,
    "encoder-layer": lambda found, language: draw_layer(found, "encoder", language),
    "decoder-layer": lambda found, language: draw_layer(found, "decoder", language),
    "attention": draw_attention,
    "masks": draw_masks,
}


def schematics(model: Model, language: str) -> dict[str, str]:
    """Every drawing of a model, for a page that has the styles; only an encoder-decoder with layers has them."""
    drawable = isinstance(model, EncoderDecoder) and model.config.layers and model.config.decoder.layers
    return dict(_drawn(model.config, language)) if drawable else {}


@lru_cache(maxsize=16)
def _drawn(config: ModelConfig, language: str) -> dict[str, str]:
    found = watch(config)
    return {kind: draw(found, language).svg(coat=False) for kind, draw in KINDS.items()}


__all__ = ["KINDS", "Pass", "schematics", "watch"]
