"""Models ready to use: translators of sentences and texts, and models of one stack, which continue texts, fill gaps or
tell labels."""

from __future__ import annotations

from pathlib import Path

from glassformer.model import DecoderOnly, EncoderDecoder, Model, ModelConfig
from glassformer.pipelines.classifier import Classifier, Label
from glassformer.pipelines.filler import Filling, MaskFiller
from glassformer.pipelines.generator import Continuation, TextGenerator
from glassformer.weights import bundle
from glassformer.weights.pretrained.loader import FAMILIES, read_config
from glassformer.weights.pretrained.tokenizer import TOKENIZER_JSON

__all__ = ["Classifier", "Continuation", "Filling", "Label", "MaskFiller", "TextGenerator"]
Pipeline = TextGenerator | MaskFiller | Classifier


def load_pipeline(folder: Path, device: str = "cpu") -> Pipeline | None:
    """The pipeline of a folder's model of one stack; None for an encoder with a decoder, and for a published folder
    without a tokenizer."""
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
