"""What is to be exported: a model with all that is known of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import torch

from glassformer.common.errors import InputError
from glassformer.data import About, PairTokenizer
from glassformer.model import Model
from glassformer.pipelines import box
from glassformer.pipelines.translator import Translator
from glassformer.weights import bundle
from glassformer.weights.hub import locate
from glassformer.weights.pretrained import load_model


@dataclass(frozen=True)
class Subject:
    """A plain float32 model on the CPU, with its tokenizer where it has one.

    `folder` is the one that it came from, `stored` how its weights lie there; `language` the one it is told to write,
    of a model that knows several.
    """

    model: Model
    tokenizer: PairTokenizer | None = None
    name: str = "model"
    folder: Path | None = None
    about: About = field(default_factory=About)
    stored: bundle.Weights = "float32"
    language: str | None = None


def subject_of(model: Model | Translator | str | Path, language: str | None = None) -> Subject:
    """A bundle, a translator of the box, a Hugging Face folder or a name of the hub; or what was loaded of one."""
    if isinstance(model, Translator):
        translator = model if language is None else model.toward(language)
        return Subject(plain(translator.model), translator.tokenizer, about=translator.about, language=translator.to)
    if isinstance(model, Model):
        if language is not None:
            raise InputError(f"language={language!r} is for a translator; a model alone has no tokenizer to choose by")
        return Subject(plain(model))
    if not isinstance(model, str | Path):
        raise InputError(
            f"a {type(model).__name__} cannot be exported; give a folder, a name of the box, a Translator or a model"
        )
    name = Path(model).name
    if not os.path.lexists(model) and (way := box.directions().get(str(model))) is not None:
        folder, language = box.folder(way.model), language or way.to
    else:
        folder = locate(model)
    if not bundle.is_bundle(folder) and (folder / "config.json").is_file() and not (folder / "source.spm").is_file():
        return Subject(plain(load_model(folder)), None, name, folder)
    translator = Translator.load(folder, to=language)
    stored = bundle.read_config(folder)[1] if bundle.is_bundle(folder) else "float32"
    return Subject(plain(translator.model), translator.tokenizer, name, folder, translator.about, stored, translator.to)


def plain(model: Model) -> Model:
    return model.to(device=torch.device("cpu"), dtype=torch.float32).eval()
