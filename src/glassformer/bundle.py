"""A trained model as a folder, complete in itself.

config.json         the model's configuration, and the version of this format
model.safetensors   its weights, each tensor once
tokenizer.json      text to ids and back (tokenizer.src.json and tokenizer.tgt.json where each side has its own)
source_words.txt    the words of the source language that its training met
recipe.toml         how it was trained, and in [about] what it is for
scores.json         how well it does, with what each score was measured by
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import ConfigError, WeightsError
from glassformer.files import read_json, read_tensors, write_bytes, write_tensors, write_text
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.text import Tokenizer

FORMAT = "glassformer"
FORMAT_VERSION = 1  # a config.json that names none is of the first
VOCABULARY = ("source_words.txt", "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json")


@dataclass
class Bundle:
    model: EncoderDecoder
    tokenizer: Tokenizer
    recipe: str = ""  # its text, if there is one that can be read


def is_bundle(folder: str | Path) -> bool:
    try:
        return (read_json(Path(folder) / "config.json") or {}).get("format") == FORMAT
    except WeightsError:
        return False


def weights(model: torch.nn.Module) -> dict[str, Tensor]:
    """Every tensor a model consists of, tied ones once."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


def save_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """Replace the files of the vocabulary, each whole or not at all."""
    with tempfile.TemporaryDirectory() as place:
        tokenizer.save(place)
        for file in sorted(Path(place).iterdir()):
            write_bytes(folder / file.name, file.read_bytes())


def save(folder: str | Path, model: EncoderDecoder, tensors: dict[str, Tensor], tokenizer: Tokenizer) -> None:
    """Write the model's part of a bundle; `tensors` are its weights, which an average may have changed."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_tokenizer(folder, tokenizer)
    write_tensors(folder / "model.safetensors", tensors)
    config = {"format": FORMAT, "format_version": FORMAT_VERSION, **model.config.to_dict()}
    write_text(folder / "config.json", json.dumps(config, indent=1) + "\n")


def load(folder: str | Path) -> Bundle:
    folder = Path(folder)
    model = EncoderDecoder(read_config(folder))
    path = folder / "model.safetensors"
    if not os.path.lexists(path):
        raise WeightsError(
            f"{path} is missing; if training was interrupted, continue it: glassformer train --resume --out {folder}"
        )
    tensors = read_tensors(path)
    own = weights(model)
    for name in [*own, *tensors]:
        if name not in own or name not in tensors or own[name].shape != tensors[name].shape:
            raise WeightsError(f"{folder}: the weights do not fit config.json at `{name}`")
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)
    recipe = ""
    with contextlib.suppress(OSError):  # a model translates without
        recipe = (folder / "recipe.toml").read_text(encoding="utf-8", errors="replace")
    return Bundle(model.eval(), Tokenizer.load(folder), recipe)


def read_config(folder: Path) -> ModelConfig:
    path = folder / "config.json"
    values = read_json(path)
    if values is None or values.pop("format", None) != FORMAT:
        what = "it holds no config.json" if values is None else "its config.json is another's"
        what = f"is not a trained model ({what})" if folder.is_dir() else "is not a folder"
        raise WeightsError(f"{folder} {what}; `glassformer train` makes one, `make demo` the first")
    version = values.pop("format_version", 1)
    if type(version) is not int or version < 1:
        raise WeightsError(f"{path}: format_version {version!r} is no version; copy the file again")
    if version > FORMAT_VERSION:
        raise WeightsError(
            f"{folder} is of format version {version}; this glassformer reads versions up to {FORMAT_VERSION}: "
            f"update it (pip install --upgrade glassformer), or save the model again by the glassformer you have"
        )
    try:
        return ModelConfig.from_dict(values)
    except ConfigError as error:
        raise WeightsError(f"{path}: {error}") from None


def read_scores(folder: Path) -> dict[str, Any]:
    """The scores measured so far, by what was scored."""
    return read_json(folder / "scores.json", "delete it and measure again") or {}


def unchanged(folder: Path, load: Callable[[Path], EncoderDecoder]) -> Callable[[], EncoderDecoder]:
    """Loads the model of a folder a second time, if it still is the one that it was."""
    folder = folder.resolve()

    def told() -> list[tuple[str, int, int]]:
        files = [file for file in sorted(folder.iterdir()) if file.suffix in (".safetensors", ".bin", ".json")]
        return [
            (file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.name != "scores.json"
        ]

    before = told()

    def again() -> EncoderDecoder:
        if not folder.is_dir() or told() != before:
            raise WeightsError(f"{folder} is not what it was when it was loaded; load the translator again")
        return load(folder)

    return again
