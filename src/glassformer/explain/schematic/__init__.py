"""Schematics: how a model is put together, drawn as SVG from a pass of it. Read `passing`, `canvas`, `layer`, `whole`,
`attention`, `masks`."""

from __future__ import annotations

from collections.abc import Callable

from glassformer.explain.schematic.attention import draw_attention
from glassformer.explain.schematic.canvas import Canvas
from glassformer.explain.schematic.layer import draw_layer
from glassformer.explain.schematic.masks import draw_masks
from glassformer.explain.schematic.passing import Pass, watch
from glassformer.explain.schematic.whole import draw_model

KINDS: dict[str, Callable[[Pass, str], Canvas]] = {
    "model": draw_model,
    "encoder-layer": lambda found, language: draw_layer(found, "encoder", language),
    "decoder-layer": lambda found, language: draw_layer(found, "decoder", language),
    "attention": draw_attention,
    "masks": draw_masks,
}

__all__ = ["KINDS", "Canvas", "Pass", "watch"]
