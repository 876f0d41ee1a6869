"""The text side of a published translator, by its family."""

from __future__ import annotations

from pathlib import Path

from glassformer.common.errors import InputError, WeightsError
from glassformer.common.files import read_json
from glassformer.data import PairTokenizer
from glassformer.model import EncoderDecoder
from glassformer.weights.pretrained.language_text import KINDS, load_languages
from glassformer.weights.pretrained.loader import load_model, read_config
from glassformer.weights.pretrained.marian_text import load_marian
from glassformer.weights.pretrained.plain_text import PlainText

TAUGHT = ("bart", "t5", "pegasus")  # which write what they were trained to write


def reads_several(folder: Path) -> bool:
    """Whether a folder holds a published translator that has to be told from which language."""
    return (read_json(folder / "config.json") or {}).get("model_type") in KINDS


def load_published(
    folder: Path, source: str | None = None, to: str | None = None
) -> tuple[EncoderDecoder, PairTokenizer]:
    """The model and the text side of a Hugging Face folder, ready to translate."""
    kind = read_config(folder).values.get("model_type")
    if kind in KINDS:
        return load_languages(folder, source, to)
    if kind not in ("marian", *TAUGHT):
        what = f"holds a model of type {kind!r}" if kind else "is not a trained model"
        raise WeightsError(
            f"{folder} {what}; `glassformer train` makes a translator, and of Hugging Face folders those of Marian, "
            f"M2M100, NLLB and mBART are read too, and of BART, T5 and Pegasus, which have to be taught"
        )
    if source is not None:
        raise InputError(f"{folder} translates from one language only; source={source!r} cannot be chosen")
    if kind == "marian":
        return load_marian(folder)
    model = load_model(folder)
    assert isinstance(model, EncoderDecoder)
    return model, PlainText.load(folder, model.config.vocab_size)
