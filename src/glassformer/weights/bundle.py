"""A trained model as a folder, complete in itself.

config.json         the model's configuration, what kind it is, the version of this format, how its weights are stored
model.safetensors   its weights, each tensor once
tokenizer.json      text to ids and back (tokenizer.src.json and tokenizer.tgt.json where each side has its own; none
                    where images are read)
source_words.txt    the words of the source language that its training met
recipe.toml         how it was trained, and in [about] what it is for
scores.json         how well it does, with what each score was measured by

The metadata of model.safetensors hold the config.json that its weights were saved with, and their checksum: a setting
or a weight that has changed since is noticed.

Small, it takes a quarter of the room: `"weights": "int8"` in config.json, each matrix of model.safetensors in int8 with
a scale for each row (`x.weight`, `x.scales`), no table that can be computed, and the vocabulary compressed (.xz).
Smaller still, "int6": these matrices in 6 bits a number, four numbers in three bytes. Read, they are in int8.

`"kind": "encoder"` or `"decoder"` is a model of one stack; without, it is an encoder and a decoder. `"labels"` are the
names of what a classifier tells apart.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from glassformer.common.errors import ConfigError, WeightsError, check_choice, one_of
from glassformer.common.files import read_json, read_safetensors, write_bytes, write_tensors, write_text
from glassformer.data import Tokenizer
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model, ModelConfig
from glassformer.weights.lora import load_adapter
from glassformer.weights.quantized import (
    dequantize_model,
    empty_model,
    quantizable,
    quantize,
    scales_name,
    set_weights,
    unpacked,
)
from glassformer.weights.quantized import weights as weights

FORMAT = "glassformer"
# 2: weights may be int8; 3: settings that came LATER; 4: a kind; 5: int6. A config.json without one is of the first.
FORMAT_VERSION = 5
# Settings that the first two versions did not know: one at its default is not written, so that they still read it.
LATER = (
    *("qkv_bias", "rotary_factor", "rotary_length", "rotary_low", "rotary_high"),
    *("image_size", "patch_size", "channels", "labels", "autoregression"),
)
VOCABULARY = ("source_words.txt", "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json")
Weights = Literal["float32", "int8", "int6"]
WEIGHTS = ("float32", "int8", "int6")
PAIR = "encoder-decoder"  # the kind that config.json need not name
KINDS: dict[str, type[Model]] = {PAIR: EncoderDecoder, "encoder": EncoderOnly, "decoder": DecoderOnly}
Some = TypeVar("Some", EncoderDecoder, EncoderOnly, DecoderOnly)


@dataclass
class Bundle:
    folder: Path
    model: Model
    vocabulary: Tokenizer | None  # none where images are read
    recipe: str = ""  # its text, if there is one that can be read
    labels: tuple[str, ...] = ()

    @property
    def tokenizer(self) -> Tokenizer:
        if self.vocabulary is None:
            raise WeightsError(f"{self.folder} {describe_use(self.model)}; it has no vocabulary")
        return self.vocabulary

    def of_kind(self, kind: type[Some]) -> Some:
        """The model, if it is of this kind."""
        if not isinstance(self.model, kind):
            raise WeightsError(f"{self.folder} {describe_use(self.model)}")
        return self.model


def describe_use(model: Model) -> str:
    """What a model is and what uses it, for the error of a wrong kind."""
    if isinstance(model, EncoderDecoder):
        return "is an encoder and a decoder, a translator: `glassformer translate` and gf.Translator use it"
    if isinstance(model, DecoderOnly):
        return "is a decoder alone, which continues texts: `glassformer generate` and gf.TextGenerator use it"
    if model.config.labels or model.config.patch_size is not None:
        what = "texts" if model.config.patch_size is None else "images"
        return f"is an encoder with labels for {what}: `glassformer classify` and gf.Classifier use it"
    return "is an encoder alone, which fills gaps: `glassformer fill` and gf.MaskFiller use it"


def is_bundle(folder: str | Path) -> bool:
    try:
        return (read_json(Path(folder) / "config.json") or {}).get("format") == FORMAT
    except WeightsError:
        return False


def save_tokenizer(folder: Path, tokenizer: Tokenizer, small: bool = False) -> None:
    """Replace the files of the vocabulary, each whole or not at all."""
    with tempfile.TemporaryDirectory() as place:
        tokenizer.save(place, small)
        for file in sorted(Path(place).iterdir(), key=lambda file: (file.name == "config.json", file.name)):
            write_bytes(folder / file.name, file.read_bytes())
    for name in VOCABULARY:  # in one form alone, so that none is an older one's
        (folder / (name if small else f"{name}.xz")).unlink(missing_ok=True)


def save(
    folder: str | Path,
    model: Model,
    tensors: dict[str, Tensor],
    tokenizer: Tokenizer | None,
    weights: Weights = "float32",
    labels: Sequence[str] = (),
) -> None:
    """Write the model's part of a bundle; `tensors` are its weights, which an average may have changed, `labels` the
    names of what its head tells apart, where that is no vocabulary."""
    check_choice("weights", weights, WEIGHTS)
    if labels:
        check_labels(list(labels), model.config.labels)
    folder, small, six = Path(folder), weights != "float32", weights == "int6"
    folder.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        save_tokenizer(folder, tokenizer, small)
    defaults = {field.name: field.default for field in fields(ModelConfig)}
    settings = {
        name: value for name, value in model.config.to_dict().items() if name not in LATER or value != defaults[name]
    }
    kind = next(name for name, one in KINDS.items() if isinstance(model, one))
    version = 5 if six else 4 if kind != PAIR else 3 if any(name in settings for name in LATER) else 2 if small else 1
    stored: dict[str, Any] = {"format_version": version} | ({"weights": weights} if small else {})
    stored |= {"kind": kind} if kind != PAIR else {}
    config = {"format": FORMAT, **stored, **settings} | ({"labels": list(labels)} if labels else {})
    write_weights(folder, quantize(model, tensors, six) if small else tensors, config)
    write_text(folder / "config.json", json.dumps(config, indent=1) + "\n")


def write_weights(folder: Path, tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
    """Write the weights of a bundle whose config.json holds `config`."""
    saved = {"config": config, "checksum": checksum(tensors)}
    write_tensors(folder / "model.safetensors", tensors, {FORMAT: json.dumps(saved)})  # one key: their order is random


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """The same for the same names, types, shapes and numbers; quick to compute, and no guard against forgery."""
    crc = 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        crc = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode(), crc)
        crc = zlib.crc32(tensor.view(-1).view(torch.uint8).numpy().data, crc)
    return f"crc32:{crc:08x}"


def pack(folder: str | Path, out: str | Path, weights_as: Weights = "int8") -> None:
    """Write the bundle in `folder` a second time, to `out`, its weights in int8 or int6. Its scores are not copied."""
    folder, out = Path(folder), Path(out)
    loaded = load(folder)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise WeightsError(f"{out} exists already; name a folder that is not there yet, or an empty one")
    save(out, loaded.model, weights(loaded.model), loaded.vocabulary, weights_as, loaded.labels)
    if loaded.recipe:
        write_text(out / "recipe.toml", loaded.recipe)


def load(folder: str | Path, rounded: bool = False, adapter: str | Path | None = None) -> Bundle:
    """The bundle in a folder. `rounded`: weights that are stored in int8 stay so, in a model that
    cannot be called itself; `glassformer.decode.precision.prepare` makes one of it that can. What an `adapter` has
    learnt is added to the weights."""
    folder = Path(folder)
    config, stored_as, kind, labels = read_config(folder)
    path = folder / "model.safetensors"
    if not os.path.lexists(path):
        raise WeightsError(
            f"{path} is missing; if training was interrupted, continue it: glassformer train --resume --out {folder}"
        )
    tensors, metadata = read_safetensors(path)
    expected = saved_checksum(folder, metadata)
    try:
        if max(config.layers, config.decoder_layers or 0) > len(tensors):
            raise ConfigError(f"there are more layers than tensors in {path.name}, {len(tensors)}")
        model = empty_model(config, kind)
    except (ConfigError, RuntimeError) as error:  # torch's own, of sizes that no memory holds
        raise WeightsError(f"{folder / 'config.json'}: {error}") from None
    found = checksum(tensors)
    if stored_as == "int6":
        tensors = unpacked(model, tensors)
    check_tensors(folder, model, tensors, stored_as)
    if expected is None:
        warnings.warn(
            f"{folder} is of an older glassformer: it holds no checksum, so damage to its settings or weights goes "
            f"unnoticed. Write it again: glassformer pack {folder} --out NEW --weights {stored_as}",
            stacklevel=2,
        )
    elif found != expected:
        raise WeightsError(f"{path} is damaged: its weights are not those that were saved; copy it again")
    kept = (torch.int8, torch.float32)
    set_weights(model, {n: t.to(t.dtype if t.dtype in kept else torch.float32, copy=True) for n, t in tensors.items()})
    if not rounded or adapter is not None:
        dequantize_model(model)
    if adapter is not None:
        labels = load_adapter(model, adapter) or labels
    recipe = ""
    with contextlib.suppress(OSError):  # a model translates without
        recipe = (folder / "recipe.toml").read_text(encoding="utf-8", errors="replace")
    vocabulary = Tokenizer.load(folder) if config.patch_size is None else None
    if vocabulary is not None:
        pieces, sizes = (vocabulary.src_size, vocabulary.tgt_size), (config.encoder.vocab_size, config.vocab_size)
        if pieces[0] > sizes[0] or pieces[1] > sizes[1]:
            raise WeightsError(f"{folder}: its tokenizer has {pieces} pieces, its model {sizes}; copy the folder again")
    return Bundle(folder, model.eval(), vocabulary, recipe, labels)


def check_tensors(folder: Path, model: Model, tensors: dict[str, Tensor], stored_as: Weights) -> None:
    """Every tensor that the model wants is there, and no other."""
    small = stored_as != "float32"
    whole = quantizable(model) if small else []
    shapes = {name: tensor.shape for name, tensor in weights(model).items()}
    shapes |= {scales_name(name): shapes[name][:1] for name in whole}
    computed = {name for name, _ in model.named_buffers()} if small else set[str]()
    for name in [*shapes, *tensors]:
        if name not in tensors and name in computed:
            continue
        unlike = name not in tensors or name not in shapes or tensors[name].shape != shapes[name]
        if unlike or not (tensors[name].dtype == torch.int8 if name in whole else tensors[name].is_floating_point()):
            raise WeightsError(f"{folder}: the weights do not fit config.json at `{name}`")


def saved_checksum(folder: Path, metadata: Mapping[str, str]) -> str | None:
    """The checksum that the weights were saved with, if config.json is what they were saved with; None of an older
    bundle."""
    if FORMAT not in metadata:
        return None
    values = read_json(folder / "config.json") or {}
    try:
        saved = json.loads(metadata[FORMAT])
        config, found = dict(saved["config"]), str(saved["checksum"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise WeightsError(f"{folder / 'model.safetensors'} is damaged (its metadata); copy it again") from None
    for key in config | values:
        was, now = (one.get(key, "missing") for one in (config, values))
        if was != now:
            raise WeightsError(
                f"{folder / 'config.json'}: `{key}` is {now!r:.40}, and the weights were saved with {was!r:.40}; "
                f"copy both files again"
            )
    return found


class BundleConfig(NamedTuple):
    """What config.json says of a bundle."""

    config: ModelConfig
    weights: Weights
    kind: type[Model]
    labels: tuple[str, ...]  # their names, where they have some


def check_labels(labels: list[Any], count: int) -> None:
    if not all(isinstance(label, str) and label for label in labels) or len(set(labels)) != len(labels) or not labels:
        raise ConfigError(f"labels {str(labels)[:60]} must be names, each another")
    if len(labels) != count:
        raise ConfigError(f"there are {len(labels)} names of labels, and the model's head tells {count} apart")


def read_config(folder: Path) -> BundleConfig:
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
    stored_as, kind, named = values.pop("weights", "float32"), values.pop("kind", PAIR), values.get("labels")
    labels = named if isinstance(named, list) else []
    try:
        check_choice("weights", stored_as, WEIGHTS)
        check_choice("kind", kind, tuple(KINDS))
        if lacking := [field.name for field in fields(ModelConfig) if field.name not in (*values, *LATER)]:
            raise ConfigError(f"it lacks {one_of(lacking)}, and a bundle holds every setting; copy the file again")
        if named is labels:
            values["labels"] = len(labels)
            check_labels(labels, len(labels))
        return BundleConfig(ModelConfig.from_dict(values), stored_as, KINDS[kind], tuple(labels))
    except ConfigError as error:
        raise WeightsError(f"{path}: {error}") from None


def read_scores(folder: Path) -> dict[str, Any]:
    """The scores measured so far, by what was scored."""
    return read_json(folder / "scores.json", "delete it and measure again") or {}


def reloader(folder: Path, load: Callable[[Path], Some]) -> Callable[[], Some]:
    """A function that loads the model of a folder again, if its files have not changed."""
    folder = folder.resolve()

    def file_states() -> list[tuple[str, int, int]]:
        kinds = (".safetensors", ".bin", ".npz", ".spm", ".json", ".xz")
        files = [file for file in sorted(folder.iterdir()) if file.suffix in kinds and file.name != "scores.json"]
        return [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]

    before = file_states()

    def reload() -> Some:
        if not folder.is_dir() or file_states() != before:
            raise WeightsError(f"{folder} is not what it was when it was loaded; load it again")
        return load(folder)

    return reload
