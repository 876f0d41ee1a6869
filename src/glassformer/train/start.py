"""Going on from a trained model: its shape, its vocabulary and its weights, and training with other data or rates.

It is a bundle, or a published model: a Hugging Face folder, or a name of the hub. What comes of a bundle is a bundle,
what comes of a Hugging Face folder is one of the same family; a head of labels lies beside it, in a folder of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.common.errors import ConfigError
from glassformer.common.files import write_tensors
from glassformer.data import Corpus, Tokenizer
from glassformer.data.labelled import ImageTokenizer, LabelledTokenizer
from glassformer.model import Model
from glassformer.train.objective import OBJECTIVES
from glassformer.train.options import Train
from glassformer.weights import bundle
from glassformer.weights import lora as adapter
from glassformer.weights.hub import hub_name, locate
from glassformer.weights.pretrained import load_model
from glassformer.weights.pretrained.fine_tuning import PublishedImages, PublishedTokenizer, is_published, named_labels
from glassformer.weights.pretrained.loader import NoHead, family_state_dict, read_config
from glassformer.weights.quantized import empty_model, set_weights

# Settings that no weight depends on: a recipe may give its own.
FREE_SETTINGS = ("dropout", "attention_dropout", "activation_dropout", "seed", "start_id")
# Settings of a head of labels, which is initialized again where the base model has another one.
HEAD_SETTINGS = ("labels", "tied", "output_transform", "output_bias")


def resolve_base(start: str, here: Path) -> str:
    """The folder of a model to go on from, from the recipe's own folder on; a name of the hub stays one."""
    folder = (here / start).absolute()
    return start if not folder.exists() and hub_name(start) is not None else str(folder)


@lru_cache(maxsize=1)
def load_base_model(start: str) -> Model | None:
    """The model to go on from; None where there is none."""
    folder = locate(start) if hub_name(start) is not None else Path(start)
    if bundle.is_bundle(folder):
        return bundle.load(folder).model
    return load_model(folder) if is_published(folder) else None


def base_settings(train: Train, without: Collection[str]) -> dict[str, Any]:
    """The settings of the model to go on from, which must be of the objective's kind. A run that is continued keeps
    them itself, and needs it no more."""
    if train.start and bundle.is_bundle(train.start):
        config, _, kind, _ = bundle.read_config(Path(train.start))
        model: Model | None = empty_model(config, kind)
    else:
        model = load_base_model(train.start) if train.start else None
    if model is None:
        return {}
    objective = OBJECTIVES[train.objective]
    images = objective.content == "images"
    if not isinstance(model, objective.model) or images != (model.config.patch_size is not None):
        raise ConfigError(
            f"train.start = {train.start} {bundle.describe_use(model)}; this recipe trains another kind of model: "
            f"train.objective = '{train.objective}' needs {objective.model.__name__}, which reads "
            f"{'images' if images else 'texts'}"
        )
    config = model.config
    return {k: value for k, value in config.to_dict().items() if k not in (*without, "seed") and value is not None}


def base_labels(start: str) -> tuple[str, ...]:
    """The names of the labels that the model to go on from tells apart; none where there is no such head."""
    model = load_base_model(start) if start else None
    if model is None or not (model.config.labels or model.config.patch_size) or isinstance(model.head, NoHead):
        return ()
    folder = locate(start)
    told = bundle.read_config(folder).labels if bundle.is_bundle(folder) else named_labels(folder)
    return adapter.adapter_labels(folder) or told or tuple(map(str, range(len(model.head.weight))))


def load_vocabulary(folder: Path, corpus: Corpus | None = None) -> Tokenizer:
    """The vocabulary that a folder holds, ours or a published model's, which may ask for the languages of a corpus."""
    return PublishedTokenizer(folder, corpus) if is_published(folder) else Tokenizer.load(folder)


def base_vocabulary(start: str, corpora: Sequence[Corpus]) -> Tokenizer:
    """The vocabulary of the model to go on from, which must know the languages of these corpora."""
    if load_base_model(start) is None:
        raise ConfigError(
            f"train.start = {start} is not a trained model; name a folder that glassformer train made, or a Hugging "
            f"Face folder"
        )
    tokenizer = load_vocabulary(locate(start), corpora[0])
    for corpus in corpora:
        tokenizer.for_corpus(corpus)  # says which it knows
    return tokenizer


def copy_base_weights(model: Model, start: str, labels: Sequence[str] = ()) -> str:
    """Give the model the weights of the one to go on from, and say what was done; what it is made of must be the same.

    A head of labels is new where names or shapes differ: then the other's is left, and this one begins at random.
    """
    other, known = load_base_model(start), base_labels(start)
    assert other is not None
    load_base_model.cache_clear()
    headless = isinstance(other.head, NoHead)
    if headless and not model.config.labels:
        raise ConfigError(f"train.start = {start} holds no output head; save it from a class that has one")
    ours, theirs = model.config.to_dict(), other.config.to_dict()
    of_the_head: tuple[str, ...] = HEAD_SETTINGS
    if model.config.patch_size is not None:  # whose vocabulary are the labels
        theirs["labels"], of_the_head = other.config.labels or other.config.vocab_size, (*HEAD_SETTINGS, "vocab_size")
        for name in ("channels", "image_size"):
            if ours[name] != theirs[name]:
                raise ConfigError(
                    f"the images have {name} = {ours[name]}, and the model to go on from reads {name} = {theirs[name]} "
                    f"(train.start = {start}); bring them to that"
                )
    new_head = model.config.labels and (
        headless or known != tuple(labels) or any(ours[name] != theirs[name] for name in of_the_head)
    )
    for name, value in theirs.items():
        if name not in FREE_SETTINGS and ours[name] != value and not (new_head and name in of_the_head):
            raise ConfigError(
                f"model.{name} = {ours[name]!r}, but the model to go on from has {value!r} (train.start = {start}); "
                f"leave model.{name} out of the recipe, or train from nothing"
            )
    if not new_head:
        model.load_state_dict(other.state_dict())
        return f"going on from {start}"
    kept = {name: tensor for name, tensor in other.state_dict().items() if not name.startswith("head.")}
    model.load_state_dict(kept | {f"head.{name}": tensor for name, tensor in model.head.state_dict().items()})
    fresh = ", ".join(f"head.{name} {tuple(p.shape)}" for name, p in model.head.named_parameters())
    left = "" if headless else "; its own is left behind"
    return f"going on from {start} with a new head, at random: {fresh}{left}"


@torch.no_grad()
def save(folder: Path, model: Model, tensors: Mapping[str, Tensor], tokenizer: Tokenizer) -> None:
    """Write what was trained: a bundle, or with a published vocabulary the folder that such a model comes in."""
    labels = tokenizer.label_names
    images = isinstance(tokenizer, ImageTokenizer)
    texts = tokenizer.texts if isinstance(tokenizer, LabelledTokenizer) and not images else tokenizer
    if not isinstance(texts, PublishedTokenizer | PublishedImages):
        bundle.save(folder, model, dict(tensors), None if images else texts, labels=labels)
        return
    whole = empty_model(model.config, type(model))
    set_weights(whole, tensors)
    if labels and not isinstance(texts, PublishedImages):  # no family of texts has a place for such a head
        adapter.save(folder / adapter.HEAD_FOLDER, whole, tensors, 1.0, str(folder), labels)
        whole.add_module("head", NoHead())
    write_tensors(folder / "model.safetensors", family_state_dict(whole, read_config(folder)))
