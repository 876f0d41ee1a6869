"""Models ready to use: translators of sentences and texts, and models of one stack, which continue texts, fill gaps or
tell labels. Each is loaded on first use, so that translating need not wait for the others."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassformer.model import Model, ModelConfig
    from glassformer.pipelines.classifier import Classifier as Classifier
    from glassformer.pipelines.classifier import Label as Label
    from glassformer.pipelines.filler import Filling as Filling
    from glassformer.pipelines.filler import MaskFiller as MaskFiller
    from glassformer.pipelines.generator import Continuation as Continuation
    from glassformer.pipelines.generator import TextGenerator as TextGenerator

_HOMES = {
    "Classifier": "classifier",
    "Continuation": "generator",
    "Filling": "filler",
    "Label": "classifier",
    "MaskFiller": "filler",
    "TextGenerator": "generator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def load_pipeline(folder: Path, device: str = "cpu") -> TextGenerator | MaskFiller | Classifier | None:
    """The pipeline of a folder's model of one stack; None for an encoder with a decoder, and for a published folder
    without a tokenizer."""
    from glassformer.model import DecoderOnly
    from glassformer.pipelines.classifier import Classifier
    from glassformer.pipelines.filler import MaskFiller
    from glassformer.pipelines.generator import TextGenerator

    found = kind_and_config(folder)
    if found is None:
        return None
    kind, config = found
    if kind is DecoderOnly:
        return TextGenerator.load(folder, device)
    labels = config.labels > 0 or config.patch_size is not None
    return Classifier.load(folder, device) if labels else MaskFiller.load(folder, device)


def kind_and_config(folder: Path) -> tuple[type[Model], ModelConfig] | None:
    """What kind of model of one stack a folder holds, by its config.json alone."""
    from glassformer.model import EncoderDecoder
    from glassformer.weights import bundle
    from glassformer.weights.pretrained.loader import FAMILIES, read_config
    from glassformer.weights.pretrained.tokenizer import TOKENIZER_JSON

    if bundle.is_bundle(folder):
        read = bundle.read_config(folder)
        return None if read.kind is EncoderDecoder else (read.kind, read.config)
    if not (folder / "config.json").is_file():
        return None
    settings = read_config(folder)
    name = settings.values.get("model_type")
    if name not in FAMILIES:
        return None
    family = FAMILIES[name](settings)
    if family.model is EncoderDecoder:
        return None
    config = family.config(settings, False)
    if config.patch_size is None and not (folder / TOKENIZER_JSON).is_file():
        return None
    return family.model, config
