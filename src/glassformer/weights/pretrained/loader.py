"""A local Hugging Face folder as one of our models, every weight of the file accounted for."""

from __future__ import annotations

import pickle
import re
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.common.arguments import checked
from glassformer.common.errors import InputError, WeightsError, did_you_mean, one_of, why
from glassformer.common.files import read_json, read_tensors
from glassformer.data import PairTokenizer
from glassformer.model import EncoderDecoder, Model
from glassformer.weights.hub import locate
from glassformer.weights.lora import HEAD_FOLDER, adapter_labels, load_adapter
from glassformer.weights.marian_files import read_contents
from glassformer.weights.pretrained import bart, bert, gpt2, llama, marian, marian_native, t5, vit
from glassformer.weights.pretrained.family import Family, Parts, Settings
from glassformer.weights.pretrained.multilingual import MULTILINGUAL, MultilingualTokenizer
from glassformer.weights.pretrained.tokenizer import FastTokenizer, MarianTokenizer

FAMILIES: dict[str, Callable[[Settings], Family]] = {
    "marian": marian.family,
    "bart": lambda settings: bart.FAMILY,
    "mbart": lambda settings: bart.MBART,
    "m2m_100": lambda settings: bart.M2M100,
    "pegasus": lambda settings: marian.PEGASUS,
    "t5": lambda settings: t5.FAMILY,
    "bert": lambda settings: bert.FAMILY,
    "roberta": lambda settings: bert.ROBERTA,
    "xlm-roberta": lambda settings: bert.ROBERTA,
    "distilbert": lambda settings: bert.DISTILBERT,
    "vit": lambda settings: vit.FAMILY,
    "gpt2": lambda settings: gpt2.FAMILY,
    "llama": lambda settings: llama.FAMILY,
    "mistral": lambda settings: llama.MISTRAL,
    "qwen2": lambda settings: llama.QWEN2,
}

# Of each model that was loaded, the file's tensors that its own no longer tell to the last bit.
ORIGINALS: weakref.WeakKeyDictionary[nn.Module, dict[str, Parts]] = weakref.WeakKeyDictionary()


@checked
def load_model(folder: str | Path, *, revision: str | None = None, offline: bool = False) -> Model:
    """The model in a Hugging Face folder (config.json and weights), or in one of Marian's own files, as Firefox has
    them; in float32 and eval mode.

    Where there is no such folder, a name such as "Helsinki-NLP/opus-mt-en-de" is that of a model of the hub: it is
    fetched once, its weights as safetensors alone. `revision` is a branch, a tag or a commit of it; with `offline`,
    only what has been fetched before is looked for.
    """
    folder = locate(folder, revision, offline)
    if (files := marian_native.find_files(folder)) is not None:
        return load_native(files)
    settings = read_config(folder)
    kind = settings.values.get("model_type")
    if settings.values.get("format") == "glassformer":
        raise WeightsError(
            f"{folder} is a model that glassformer trained: gf.Translator, gf.TextGenerator, gf.MaskFiller or "
            f"gf.Classifier, whichever it is for, loads it; its `.model` is this"
        )
    if kind not in FAMILIES:
        experts = any("experts" in name for name in settings.values)
        reason = ", being a mixture of experts" if experts else ""
        raise WeightsError(
            f"{folder / 'config.json'}: model_type {kind!r} is not supported{reason}; supported are {one_of(FAMILIES)}"
        )
    family = FAMILIES[kind](settings)
    tensors = read_weights(folder)
    model = assemble(family, settings, tensors)
    if adapter_labels(folder):  # of a run that gave it a head of labels
        load_adapter(model, folder / HEAD_FOLDER)
    return model.eval()


def load_native(files: marian_native.Files, rounded: bool = False) -> EncoderDecoder:
    """The model in Marian's own files. `rounded`: its weights stay in int8, in a model that cannot be called itself;
    `glassformer.decode.precision.prepare` makes one of it that can."""
    contents = read_contents(files.model)
    settings, tensors = marian_native.settings_of(contents)
    model = assemble(marian_native.family(settings), settings, tensors)
    assert isinstance(model, EncoderDecoder)
    marian_native.complete(model, settings, contents, files, rounded)
    return model.eval()


def read_config(folder: Path) -> Settings:
    if not folder.is_dir():
        hint = "" if folder.exists() else "; give one, or a name of the hub: owner/name"
        raise WeightsError(f"{folder} is not a folder{hint}")
    path = folder / "config.json"
    values = read_json(path)
    if values is None:
        raise WeightsError(f"{path} is missing: a model folder holds config.json beside its weights")
    return Settings(values)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder: safetensors, whole or in shards, else pickled ones loaded without running any code."""
    for index, single, read in (
        ("model.safetensors.index.json", "model.safetensors", read_tensors),
        ("pytorch_model.bin.index.json", "pytorch_model.bin", read_pickled),
    ):
        if (folder / single).is_file():
            return read(folder / single)
        if (folder / index).is_file():
            tensors: dict[str, Tensor] = {}
            shards = (read_json(folder / index) or {})["weight_map"].values()
            for shard in sorted(set(shards)):
                if not (folder / shard).is_file():
                    raise WeightsError(f"{folder / shard} is missing, though {index} names it; copy all shards")
                tensors |= read(folder / shard)
            return tensors
    raise WeightsError(f"{folder} holds no weights: model.safetensors (or its shards) is missing")


def read_pickled(path: Path) -> dict[str, Tensor]:
    try:
        values: Any = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {why(error)}") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError):
        raise WeightsError(
            f"{path} holds more than plain tensors, or is damaged, and is not unpickled; "
            f"convert it where you trust it: model.save_pretrained(folder, safe_serialization=True)"
        ) from None
    if not isinstance(values, dict) or not all(isinstance(value, Tensor) for value in values.values()):
        raise WeightsError(f"{path} is not a table of tensors by name")
    return values


class NoHead(nn.Module):
    """In the place of a head that a folder does not hold."""

    def forward(self, hidden: Tensor) -> Tensor:
        raise InputError(
            "the model's folder holds no output head, so there are no logits; `model.encoder(ids, mask)` gives hidden "
            "states, as `model.decoder` does where there is one. For logits, save from a class that has the head, "
            "like BertForMaskedLM"
        )


def assemble(family: Family, settings: Settings, tensors: dict[str, Tensor]) -> Model:
    bare = not any(name.startswith(family.prefix) for name in tensors)  # a stack alone is saved without its prefix
    tensors = settle_names(family, tensors)
    embedding, head = tensors.get(family.embedding), tensors.get(family.head)
    tied = head is None or (embedding is not None and torch.equal(embedding, head))
    if tied:
        tensors.pop(family.head, None)
    config = family.config(settings, tied)
    table = family.weights(config, settings)
    state: dict[str, Tensor] = {}
    originals: dict[str, Parts] = {}
    used: set[str] = set()
    headless = head is None and not (config.tied and settings.get("tie_word_embeddings", True))
    if headless and family.prefix and not bare:
        raise WeightsError(f"the weights lack `{family.head}`, though config.json says it is not tied to the embedding")
    of_head = [ours for ours in table if ours.startswith("head.")]
    if bare and of_head and not any(name in tensors for ours in of_head for name in table[ours].names):
        table = {ours: take for ours, take in table.items() if ours not in of_head}
        headless = headless or of_head != ["head.bias"]
        if not headless:  # the rest of the head is the embedding, and a bias that was never trained is zero
            state["head.bias"] = torch.zeros(config.vocab_size)
    model = family.model(replace(config, output_transform=False, output_bias=False) if headless else config)
    if headless:
        model.add_module("head", NoHead())
    if not tied and head is not None:
        state["head.weight"] = head
        used.add(family.head)
    for ours, take in table.items():
        parts = []
        for name in take.names:
            optional, name = name.endswith("?"), name.removesuffix("?")
            if name not in tensors and not optional:
                raise WeightsError(
                    f"the weights lack `{name}`, which the model needs for {ours}{did_you_mean(name, tensors)}"
                )
            used.add(name)
            parts.append(tensors.get(name))
        try:
            state[ours] = take.fold(*parts)
            if not all(map(alike, take.parts(state[ours]), parts)):
                originals[ours] = [None if part is None else part.float() for part in parts]
        except (RuntimeError, IndexError) as error:
            shapes = ", ".join(
                f"`{n}` {tuple(p.shape)}" for n, p in zip(take.names, parts, strict=True) if p is not None
            )
            raise WeightsError(f"{shapes} cannot become {ours}: {error}") from None
    leftover = sorted(set(tensors) - used)
    if leftover:
        more = f" and {len(leftover) - 5} more" if len(leftover) > 5 else ""
        raise WeightsError(
            f"the weights hold tensors the model has no place for: {one_of(leftover[:5])}{more}; "
            f"does {settings.file} belong to these weights?"
        )
    fill(model, state, table, settings.file)
    ORIGINALS[model] = originals
    return model


def alike(one: Tensor | None, other: Tensor | None) -> bool:
    """Bit for bit, or neither is there."""
    return one is other if one is None or other is None else torch.equal(one, other.to(one.dtype))


def family_state_dict(model: Model, settings: Settings) -> dict[str, Tensor]:
    """The weights under the names of their family's file, which with these settings gives this model again.

    Of a model that was loaded and not changed since, every tensor is the file's own, bit for bit.
    """
    family = FAMILIES[settings.need("model_type")](settings)
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    bare = isinstance(model.head, NoHead)
    tensors: dict[str, Tensor] = {}
    for ours, take in family.weights(model.config, settings).items():
        if ours not in own:
            continue  # of a head that the folder did not hold
        parts = ORIGINALS.get(model, {}).get(ours)
        if parts is None or not torch.equal(take.fold(*parts).to(own[ours]), own[ours]):
            parts = take.parts(own[ours].detach())
        prefix = "" if bare or ours.startswith("head.") else family.prefix
        for name, part in zip(take.names, parts, strict=True):
            if part is not None:
                tensors[prefix + name.removesuffix("?")] = part.contiguous()
    if not model.config.tied and "head.weight" in own:
        tensors[family.head] = own["head.weight"].detach()
    return tensors


def settle_names(family: Family, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """One name per tensor: the family's prefix off, old spellings mended, repeats and constants set aside."""
    settled: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        name = name.removeprefix(family.prefix)
        for old, new in family.rename:
            name = re.sub(old, new, name)
        if not re.fullmatch(family.constant, name):
            settled[name] = tensor
    aside = [name for name in settled if re.fullmatch(family.other_head, name)]
    if aside:
        warnings.warn(f"weights of a head that is not loaded are set aside: {one_of(sorted(aside))}", stacklevel=5)
    for name in aside:
        del settled[name]
    for first, *others in family.same:
        present = [name for name in (first, *others) if name in settled]
        values = [settled.pop(name) for name in present]
        for name, value in zip(present[1:], values[1:], strict=True):
            if not torch.equal(values[0], value):
                raise WeightsError(f"`{present[0]}` and `{name}` should be one tensor but differ")
        if values:
            settled[first] = values[0]
    return settled


def fill(model: Model, state: dict[str, Tensor], table: dict[str, Any], file: str = "config.json") -> None:
    """Copy the weights in, after checking that each fits and none of the model's own is left out."""
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    for name, tensor in state.items():
        if name not in own:
            raise WeightsError(f"the settings give the model no `{name}`, though the weights have one")
        if own[name].shape != tensor.shape:
            source = ", ".join(table[name].names) if name in table else "head"
            raise WeightsError(
                f"`{source}` gives {name} the shape {tuple(tensor.shape)} but {file} makes it "
                f"{tuple(own[name].shape)}; does {file} belong to these weights?"
            )
    missing = sorted(set(own) - set(state))
    assert not missing, f"the family's table leaves {missing} unset"
    with torch.no_grad():
        for name, tensor in state.items():
            own[name].copy_(tensor)


FINE_TUNED = ("bart", "t5", "pegasus")  # they write what they were trained to write


def is_multilingual(folder: Path) -> bool:
    """Whether a folder holds a published translator that needs the language of its source."""
    return (read_json(folder / "config.json") or {}).get("model_type") in MULTILINGUAL


def load_published(
    folder: Path, source: str | None = None, to: str | None = None
) -> tuple[EncoderDecoder, PairTokenizer]:
    """The model and the tokenizer of a Hugging Face folder that translates."""
    settings = read_config(folder)
    kind = settings.values.get("model_type")
    if kind not in ("marian", *MULTILINGUAL, *FINE_TUNED):
        what = f"holds a model of type {kind!r}" if kind else "is not a trained model"
        raise WeightsError(
            f"{folder} {what}; `glassformer train` makes a translator, and of Hugging Face folders those of Marian, "
            f"M2M100, NLLB and mBART are read too, and of BART, T5 and Pegasus, which have to be taught"
        )
    if source is not None and kind not in MULTILINGUAL:
        raise InputError(f"{folder} translates from one language only; source={source!r} cannot be chosen")
    tokenizer, model = load_tokenizer(folder, settings, source, to), load_model(folder)
    assert isinstance(model, EncoderDecoder)
    if kind == "marian" and model.head.bias is not None and model.config.pad_id is not None:
        with torch.no_grad():  # padding is this family's start token and never meant as output
            model.head.bias[model.config.pad_id] = -1e9
    if isinstance(tokenizer, MultilingualTokenizer) and tokenizer.start is not None:
        model.config = replace(model.config, start_id=tokenizer.start)
    return model, tokenizer


def load_tokenizer(
    folder: Path, settings: Settings, source: str | None = None, to: str | None = None
) -> MarianTokenizer | MultilingualTokenizer | FastTokenizer:
    """The tokenizer of a Hugging Face folder, whose ids the model has places for."""
    kind = settings.need("model_type")
    config = FAMILIES[kind](settings).config(settings, True)  # its ids are those of an untied head as well
    if kind == "marian":
        return MarianTokenizer.load(folder, config.encoder.vocab_size, config.vocab_size, config.src_vocab_size is None)
    if kind in MULTILINGUAL:
        return MultilingualTokenizer.load(folder, settings, config.vocab_size, source, to)
    return FastTokenizer.load(folder, config.vocab_size)
