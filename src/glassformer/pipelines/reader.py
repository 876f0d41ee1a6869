"""Whatever a folder holds that is no translator, ready for use."""

from __future__ import annotations

from pathlib import Path

from glassformer.model import DecoderOnly, EncoderDecoder, Model, ModelConfig
from glassformer.pipelines.classifier import Classifier
from glassformer.pipelines.filler import MaskFiller
from glassformer.pipelines.generator import TextGenerator
from glassformer.weights import bundle
from glassformer.weights.pretrained.loader import FAMILIES, read_config
from glassformer.weights.pretrained.tokenizer import TOKENIZER_JSON

Reader = TextGenerator | MaskFiller | Classifier


def load_reader(folder: Path, device: str = "cpu") -> Reader | None:
    """What reads the texts or images of a folder's model; nothing where that is an encoder and a decoder, or where a
    published folder brings no text side."""
    found = described(folder)
    if found is None:
        return None
    kind, config = found
    if kind is DecoderOnly:
        return TextGenerator.load(folder, device)
    labels = config.labels > 0 or config.patch_size is not None
    return Classifier.load(folder, device) if labels else MaskFiller.load(folder, device)


def described(folder: Path) -> tuple[type[Model], ModelConfig] | None:
    """What kind of model a folder holds, by its config.json alone."""
    if bundle.is_bundle(folder):
        told = bundle.read_config(folder)
        return None if told.kind is EncoderDecoder else (told.kind, told.config)
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
