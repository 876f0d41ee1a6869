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


def take_weights(model: Model, start: str) -> None:
    """Give the model the weights of the one to go on from; what it is made of must be the same."""
    begun = bundle.load(start).model
    ours, theirs = model.config.to_dict(), begun.config.to_dict()
    for name, value in theirs.items():
        if name not in FREE and ours[name] != value:
            raise ConfigError(
                f"model.{name} = {ours[name]!r}, but the model to go on from has {value!r} (train.start = {start}); "
                f"leave model.{name} out of the recipe, or train from nothing"
            )
    model.load_state_dict(begun.state_dict())
