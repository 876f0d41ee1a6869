"""Schematics: how a model is put together, drawn as SVG from a forward pass of it. Read `forward_pass`, `canvas`,
`model`, `attention`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from glassformer.explain.schematic.attention import draw_attention, draw_masks
from glassformer.explain.schematic.canvas import Canvas
from glassformer.explain.schematic.forward_pass import ForwardPass, record_calls
from glassformer.explain.schematic.model import draw_layer, draw_model
from glassformer.model import EncoderDecoder, Model, ModelConfig

DRAWINGS: dict[str, Callable[[ForwardPass, str], Canvas]] = {
    "model": draw_model,
    "encoder-layer": lambda run, language: draw_layer(run, "encoder", language),
    "decoder-layer": lambda run, language: draw_layer(run, "decoder", language),
    "attention": draw_attention,
    "masks": draw_masks,
}


def schematics(model: Model, language: str) -> dict[str, str]:
    """Every drawing of a model, for a page that has the styles; only an encoder-decoder with layers has them."""
    drawable = isinstance(model, EncoderDecoder) and model.config.layers and model.config.decoder.layers
    return dict(_drawn(model.config, language)) if drawable else {}


@lru_cache(maxsize=16)
def _drawn(config: ModelConfig, language: str) -> dict[str, str]:
    run = record_calls(config)
    return {kind: draw(run, language).svg(standalone=False) for kind, draw in DRAWINGS.items()}
