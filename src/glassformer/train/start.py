"""Going on from a trained model: its shape, its vocabulary and its weights, and training with other data or rates."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from glassformer import bundle
from glassformer.errors import ConfigError
from glassformer.model import Model
from glassformer.text import Tokenizer

# Settings that no weight depends on: a recipe may give its own.
FREE = ("dropout", "attention_dropout", "activation_dropout", "seed")
# Settings of a head of labels, which is made anew where the model to go on from has another.
OF_THE_HEAD = ("labels", "tied", "output_transform", "output_bias")


def settings(start: str, without: Collection[str]) -> dict[str, Any]:
    """The settings of the model to go on from. A run that is continued keeps them itself, and needs it no more."""
    if not start or not bundle.is_bundle(start):
        return {}
    config = bundle.read_config(Path(start))[0].to_dict()
    return {name: value for name, value in config.items() if name not in (*without, "seed") and value is not None}


def known_sizes(start: str) -> tuple[int, int | None] | None:
    """How many pieces its vocabulary has, and the source's own where it has one; None where there is no such model."""
    if not start:
        return None
    config = bundle.read_config(Path(start))[0]
    return config.vocab_size, config.src_vocab_size


def known_vocabulary(start: str, languages: Collection[str]) -> Tokenizer:
    """The vocabulary of the model to go on from, which must know the languages that are to be translated into."""
    if not bundle.is_bundle(start):
        raise ConfigError(f"train.start = {start} is not a trained model; name a folder that glassformer train made")
    tokenizer = Tokenizer.load(start)
    for language in languages:
        tokenizer.toward(language)  # says which it knows
    return tokenizer


def take_weights(model: Model, start: str) -> str:
    """Give the model the weights of the one to go on from, and say what was done; what it is made of must be the same.

    A head of labels is new where shapes differ: then the other's is left, and this one begins at random.
    """
    begun = bundle.load(start).model
    if type(begun) is not type(model):
        raise ConfigError(f"train.start = {start} {bundle.use_of(begun)}; this recipe trains another kind of model")
    ours, theirs = model.config.to_dict(), begun.config.to_dict()
    new_head = model.config.labels and any(ours[name] != theirs[name] for name in OF_THE_HEAD)
    for name, value in theirs.items():
        if name not in FREE and ours[name] != value and not (new_head and name in OF_THE_HEAD):
            raise ConfigError(
                f"model.{name} = {ours[name]!r}, but the model to go on from has {value!r} (train.start = {start}); "
                f"leave model.{name} out of the recipe, or train from nothing"
            )
    if not new_head:
        model.load_state_dict(begun.state_dict())
        return f"going on from {start}"
    kept = {name: tensor for name, tensor in begun.state_dict().items() if not name.startswith("head.")}
    model.load_state_dict(kept | {f"head.{name}": tensor for name, tensor in model.head.state_dict().items()})
    fresh = ", ".join(f"head.{name} {tuple(p.shape)}" for name, p in model.head.named_parameters())
    return f"going on from {start} with a new head, at random: {fresh}; its own is left behind"
