"""A trained model as a folder, complete in itself.

config.json         the model's configuration
model.safetensors   its weights, each tensor once
tokenizer.json      text to ids and back (tokenizer.src.json and tokenizer.tgt.json where each side has its own)
source_words.txt    the words of the source language that its training met
recipe.toml         how it was trained, and in [about] what it is for
scores.json         how well it does, with what each score was measured by
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import WeightsError
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.text import Tokenizer

FORMAT = "glassformer"


@dataclass
class Bundle:
    model: EncoderDecoder
    tokenizer: Tokenizer
    recipe: str = ""
    scores: dict[str, Any] = field(default_factory=dict)


def is_bundle(folder: str | Path) -> bool:
    try:
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("format") == FORMAT


def weights(model: torch.nn.Module) -> dict[str, Tensor]:
    """Every tensor a model consists of, tied ones once."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


def write_bytes(path: Path, data: bytes) -> None:
    """Whole or not at all: written beside, flushed to the disk, then renamed into place."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        flush_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def flush_folder(folder: Path) -> None:
    """Make a rename last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def why(error: OSError) -> str:
    """What kept a file from being written, in words."""
    return "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)


def save_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """Replace the files of the vocabulary, each whole or not at all."""
    partial = folder / ".tokenizer.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        tokenizer.save(partial)
        for file in sorted(partial.iterdir()):
            write_bytes(folder / file.name, file.read_bytes())
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def save(folder: str | Path, model: EncoderDecoder, tensors: dict[str, Tensor], tokenizer: Tokenizer) -> None:
    """Write the model's part of a bundle; `tensors` are its weights, which an average may have changed."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_tokenizer(folder, tokenizer)
    write_tensors(folder / "model.safetensors", tensors)
    write_text(folder / "config.json", json.dumps({"format": FORMAT, **model.config.to_dict()}, indent=1) + "\n")


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, save(plain, metadata))


def load(folder: str | Path) -> Bundle:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    if not is_bundle(folder):
        what = (
            "is not a folder" if not folder.is_dir() else "is not a trained model (its config.json is missing or other)"
        )
        raise WeightsError(f"{folder} {what}; `glassformer train` makes one, `make demo` the first")
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    values.pop("format")
    model = EncoderDecoder(ModelConfig.from_dict(values))
    try:
        tensors = load_file(folder / "model.safetensors")
    except FileNotFoundError:
        raise WeightsError(
            f"{folder / 'model.safetensors'} is missing; if training was interrupted, continue it: "
            f"glassformer train --resume --out {folder}"
        ) from None
    except SafetensorError as error:
        raise WeightsError(f"{folder / 'model.safetensors'} cannot be read ({error}); copy it again") from None
    own = weights(model)
    for name in [*own, *tensors]:
        if name not in own or name not in tensors or own[name].shape != tensors[name].shape:
            raise WeightsError(f"{folder}: the weights do not fit config.json at `{name}`")
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)
    recipe = folder / "recipe.toml"
    return Bundle(
        model.eval(),
        Tokenizer.load(folder),
        recipe.read_text(encoding="utf-8") if recipe.exists() else "",
        read_scores(folder),
    )


def read_scores(folder: Path) -> dict[str, Any]:
    """The scores measured so far, by what was scored."""
    path = folder / "scores.json"
    try:
        scores = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise WeightsError(f"{path} is damaged ({error}); delete it and measure again") from None
    if not isinstance(scores, dict):
        raise WeightsError(f"{path} is damaged (no JSON object); delete it and measure again")
    return scores
