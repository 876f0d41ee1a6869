"""A trained model as a folder, complete in itself.

config.json         the model's configuration, the version of this format, and how its weights are stored
model.safetensors   its weights, each tensor once
tokenizer.json      text to ids and back (tokenizer.src.json and tokenizer.tgt.json where each side has its own)
source_words.txt    the words of the source language that its training met
recipe.toml         how it was trained, and in [about] what it is for
scores.json         how well it does, with what each score was measured by

Small, it takes a quarter of the room: `"weights": "int8"` in config.json, each matrix of model.safetensors in int8 with
a scale for each row (`x.weight`, `x.scales`), no table that can be computed, and the vocabulary compressed (.xz).
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from glassformer.errors import ConfigError, WeightsError, check_choice, one_of
from glassformer.files import read_json, read_tensors, write_bytes, write_tensors, write_text
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.stored import beside, fill, hollow, matrices, packed, restore
from glassformer.stored import weights as weights
from glassformer.text import Tokenizer

FORMAT = "glassformer"
FORMAT_VERSION = 3  # 2: weights may be int8; 3: settings that came LATER; a config.json that names none is of the first
# Settings that the first two versions did not know: one at its default is not written, so that they still read it.
LATER = ("qkv_bias", "rotary_factor", "rotary_length", "rotary_low", "rotary_high")
VOCABULARY = ("source_words.txt", "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json")
Weights = Literal["float32", "int8"]
WEIGHTS = ("float32", "int8")


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


def save_tokenizer(folder: Path, tokenizer: Tokenizer, small: bool = False) -> None:
    """Replace the files of the vocabulary, each whole or not at all."""
    with tempfile.TemporaryDirectory() as place:
        tokenizer.save(place, small)
        for file in sorted(Path(place).iterdir()):
            write_bytes(folder / file.name, file.read_bytes())
    for name in VOCABULARY:  # in one form alone, so that none is an older one's
        (folder / (name if small else f"{name}.xz")).unlink(missing_ok=True)


def save(
    folder: str | Path,
    model: EncoderDecoder,
    tensors: dict[str, Tensor],
    tokenizer: Tokenizer,
    weights: Weights = "float32",
) -> None:
    """Write the model's part of a bundle; `tensors` are its weights, which an average may have changed."""
    check_choice("weights", weights, WEIGHTS)
    folder, small = Path(folder), weights == "int8"
    folder.mkdir(parents=True, exist_ok=True)
    save_tokenizer(folder, tokenizer, small)
    write_tensors(folder / "model.safetensors", packed(model, tensors) if small else tensors)
    defaults = {field.name: field.default for field in fields(ModelConfig)}
    settings = {
        name: value for name, value in model.config.to_dict().items() if name not in LATER or value != defaults[name]
    }
    version = 3 if any(name in settings for name in LATER) else 2 if small else 1
    stored: dict[str, Any] = {"format_version": version} | ({"weights": weights} if small else {})
    config = {"format": FORMAT, **stored, **settings}
    write_text(folder / "config.json", json.dumps(config, indent=1) + "\n")


def pack(folder: str | Path, out: str | Path) -> None:
    """Write the bundle in `folder` a second time, to `out`, its weights in int8. Its scores are to be measured anew."""
    folder, out = Path(folder), Path(out)
    loaded = load(folder)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise WeightsError(f"{out} exists already; name a folder that is not there yet, or an empty one")
    save(out, loaded.model, weights(loaded.model), loaded.tokenizer, "int8")
    if loaded.recipe:
        write_text(out / "recipe.toml", loaded.recipe)


def load(folder: str | Path, rounded: bool = False) -> Bundle:
    """The bundle in a folder. `rounded`: weights that are stored in int8 stay so, in a model that
    `glassformer.decode.precision.ready` can make ready, but that cannot be called itself."""
    folder = Path(folder)
    config, stored_as = read_config(folder)
    model = hollow(config)
    path = folder / "model.safetensors"
    if not os.path.lexists(path):
        raise WeightsError(
            f"{path} is missing; if training was interrupted, continue it: glassformer train --resume --out {folder}"
        )
    tensors = read_tensors(path)
    check_tensors(folder, model, tensors, stored_as)
    kept = (torch.int8, torch.float32)
    fill(model, {n: t.to(t.dtype if t.dtype in kept else torch.float32, copy=True) for n, t in tensors.items()})
    if not rounded:
        restore(model)
    recipe = ""
    with contextlib.suppress(OSError):  # a model translates without
        recipe = (folder / "recipe.toml").read_text(encoding="utf-8", errors="replace")
    return Bundle(model.eval(), Tokenizer.load(folder), recipe)


def check_tensors(folder: Path, model: EncoderDecoder, tensors: dict[str, Tensor], stored_as: Weights) -> None:
    """Every tensor that the model wants is there, and no other."""
    shapes = {name: tensor.shape for name, tensor in weights(model).items()}
    may_lack: set[str] = set()
    if stored_as == "int8":
        shapes |= {beside(name): shapes[name][:1] for name in matrices(model)}
        may_lack = {name for name, _ in model.named_buffers()}
    whole = set(matrices(model)) if stored_as == "int8" else set()
    for name in [*shapes, *tensors]:
        missing = name not in tensors
        if missing and name in may_lack:
            continue
        unlike = missing or name not in shapes or tensors[name].shape != shapes[name]
        if unlike or (tensors[name].dtype == torch.int8) != (name in whole):
            raise WeightsError(f"{folder}: the weights do not fit config.json at `{name}`")


def read_config(folder: Path) -> tuple[ModelConfig, Weights]:
    """What the model is, and how its weights are stored."""
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
    stored_as = values.pop("weights", "float32")
    if stored_as not in WEIGHTS:
        raise WeightsError(f"{path}: weights {stored_as!r:.40} are not one of {one_of(WEIGHTS)}; copy the file again")
    try:
        return ModelConfig.from_dict(values), stored_as
    except ConfigError as error:
        raise WeightsError(f"{path}: {error}") from None


def read_scores(folder: Path) -> dict[str, Any]:
    """The scores measured so far, by what was scored."""
    return read_json(folder / "scores.json", "delete it and measure again") or {}


def unchanged(folder: Path, load: Callable[[Path], EncoderDecoder]) -> Callable[[], EncoderDecoder]:
    """Loads the model of a folder a second time, if it still is the one that it was."""
    folder = folder.resolve()

    def told() -> list[tuple[str, int, int]]:
        files = [file for file in sorted(folder.iterdir()) if file.suffix in (".safetensors", ".bin", ".json", ".xz")]
        return [
            (file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.name != "scores.json"
        ]

    before = told()

    def again() -> EncoderDecoder:
        if not folder.is_dir() or told() != before:
            raise WeightsError(f"{folder} is not what it was when it was loaded; load the translator again")
        return load(folder)

    return again
