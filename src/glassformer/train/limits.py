"""What the values of a recipe may be, all in one place, so that a mistake is told before any work is done."""

from __future__ import annotations

import dataclasses
import math
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from glassformer.common.errors import ConfigError, did_you_mean, one_of
from glassformer.model import ModelConfig

if TYPE_CHECKING:
    from glassformer.train.recipe import Recipe

GIVE = {
    "pairs": "its files as src and tgt, or tsv",
    "plain texts": "text = 'FILE', or only = 'src' for that side of the pairs",
    "labelled texts": "a tsv of text and label",
    "images": "images = 'FILE.npz'",
}
OF_THE_VOCABULARY = ("vocab_size", "src_vocab_size", "pad_id", "start_id", "end_id")

LEAST = {
    "data": {"max_tokens": 1, "max_ratio": 1},
    "train": dict.fromkeys(("steps", "batch_tokens", "shapes", "accumulate", "keep_last", "average"), 1)
    | dict.fromkeys(("log_every", "valid_every", "save_every"), 1)
    | dict.fromkeys(("seed", "warmup_steps", "patience", "weight_decay", "r_drop", "clip", "lora_rank"), 0),
    "score": {"beam": 1, "samples": 0},
}
MOST = {"shapes": 255, "beam": 1000, "seed": 2**63 - 1}
LARGEST = 2**31  # of every other whole number: larger ones overflow somewhere


def check(recipe: Recipe) -> None:
    for section in ("data", "train", "score"):
        for name, value in vars(getattr(recipe, section)).items():
            if type(value) in (int, float):
                check_number(f"{section}.{name}", value, LEAST[section].get(name), MOST.get(name, LARGEST))
    train = recipe.train
    for name in ("label_smoothing", "ema"):
        if not 0 <= getattr(train, name) < 1:
            raise ConfigError(f"train.{name} = {getattr(train, name)}: it lies in 0 <= x < 1")
    for name in ("lr", "lora_alpha", "layer_decay"):
        if getattr(train, name) <= 0:
            raise ConfigError(f"train.{name} = {getattr(train, name)}: it must be above 0")
    if train.layer_decay > 1:
        raise ConfigError(f"train.layer_decay = {train.layer_decay}: the rate falls by it, so it is at most 1")
    if train.lora_rank and not train.lora_on:
        raise ConfigError("train.lora_on = []: name the layers that an adapter is put on, such as '*attention.*'")
    if train.lora_rank and (train.freeze or not train.start):
        raise ConfigError(
            f"train.lora_rank = {train.lora_rank}: all of the model is frozen then; leave train.freeze out"
            if train.start
            else f"train.lora_rank = {train.lora_rank} needs a trained model to add to: set train.start"
        )
    if not 0 < train.noise_share < 1:
        raise ConfigError(f"train.noise_share = {train.noise_share}: it lies in 0 < x < 1")
    if train.noise_span < 1:
        raise ConfigError(f"train.noise_span = {train.noise_span}: a hidden run has one token at least, on average")
    if train.batch_tokens != "auto" and train.accumulate > train.batch_tokens:
        raise ConfigError(
            f"train.accumulate = {train.accumulate}: a batch of train.batch_tokens = {train.batch_tokens} "
            f"cannot be taken in more portions than it has tokens"
        )
    if train.average > 1 and train.keep_last < train.average:
        raise ConfigError(
            f"train.average = {train.average} needs as many checkpoints; "
            f"train.keep_last = {train.keep_last} keeps fewer: set train.keep_last = {train.average}"
        )
    if not recipe.data.valid and (train.patience or train.ship == "best"):
        raise ConfigError("train.patience and train.ship = 'best' need [[data.valid]] to judge by")
    check_objective(recipe)
    check_languages(recipe)
    for name in recipe.model:
        own = [f.name for f in dataclasses.fields(ModelConfig)]
        if name in OF_THE_VOCABULARY:
            raise ConfigError(f"model.{name} follows from the tokenizer; set tokenizer.vocab_size instead")
        if name not in own:
            raise ConfigError(f"unknown key `model.{name}` in the recipe{did_you_mean(name, own)}")
    recipe.least_config()
    patch = recipe.model["patch_size"]
    if patch is not None:  # the size of the images is known later
        fitting = patch if type(patch) is int and 1 <= patch <= 4096 else 1
        ModelConfig(vocab_size=1000, patch_size=patch, image_size=fitting, tied=False)


def check_objective(recipe: Recipe) -> None:
    """An objective finds the texts that it is made of, and is asked for no score that it cannot have."""
    name = recipe.train.objective
    for split in ("train", "valid", "test"):
        for corpus in getattr(recipe.data, split):
            wants = recipe.objective.made_of
            if corpus.made_of != wants.replace("labelled texts", "pairs"):
                raise ConfigError(
                    f"data.{split}: {corpus.name} has {corpus.made_of}, and train.objective = '{name}' learns from "
                    f"{wants}: give {GIVE[wants]}"
                )
            if recipe.objective.labelled and (corpus.to is not None or corpus.protect):
                raise ConfigError(f"data.{split}: `to` and `protect` are for translations, not objective = '{name}'")
    if name != "translate" and recipe.train.metric == "bleu":
        raise ConfigError(f"train.metric = 'bleu' is for translations; train.objective = '{name}' has metric = 'loss'")
    if recipe.objective.made_of == "images" and not recipe.model["patch_size"]:
        raise ConfigError(
            "model.patch_size is not set: give the side of the squares that an image is cut into, such as 2"
        )
    if recipe.objective.labelled and (recipe.train.pack or recipe.train.batch_tokens == "auto"):
        key = "pack = true" if recipe.train.pack else "batch_tokens = 'auto'"
        raise ConfigError(f"train.{key} is not for objective = '{name}', which has one label a row; leave it out")
    if name != "translate" and not recipe.tokenizer.joint:
        raise ConfigError(f"train.objective = '{name}' has one vocabulary: leave out tokenizer.joint = false")


def check_languages(recipe: Recipe) -> None:
    """Where one corpus names its language, all do; and what is judged is among what is learnt."""
    languages = {corpus.to for corpus in recipe.data.train}
    named = sorted(language for language in languages if language is not None)
    if named and None in languages:
        raise ConfigError("some corpora of data.train have `to`, others have not; give each the language of its target")
    for split in ("valid", "test"):
        for corpus in getattr(recipe.data, split):
            if corpus.to not in languages:
                known = f"learns {one_of(named)}" if named else "names no language"
                raise ConfigError(f"data.{split}: a corpus has to = {corpus.to!r}, but data.train {known}")
    if any(corpus.protect for corpus in recipe.data.train) and not recipe.tokenizer.placeholders:
        raise ConfigError("`protect` on a corpus needs pieces for what is hidden: set tokenizer.placeholders = 10")


def check_number(key: str, value: float, least: int | None, most: int) -> None:
    unlimited = key == "data.max_ratio" and value == math.inf
    if isinstance(value, float) and not math.isfinite(value) and not unlimited:
        raise ConfigError(f"{key} = {value}: it must be a finite number")
    if least is not None and value < least:
        raise ConfigError(f"{key} = {value}: " + ("it must be at least 1" if least else "it cannot be negative"))
    if isinstance(value, int) and value > most:
        raise ConfigError(f"{key} = {short(value)}: it must be at most {most:,}")


def read(cls: Any, table: Any, where: str) -> Any:
    """A dataclass from a TOML table; an unknown key or a wrong type is named."""
    if not isinstance(table, dict):
        raise ConfigError(f"`{where}` must be a section, not {table!r}")
    hints = get_type_hints(cls)
    table = {key: texts(value) if hints.get(key) == tuple[str, ...] else value for key, value in table.items()}
    for key, value in table.items():
        if key not in hints:
            raise ConfigError(
                f"unknown key `{where}.{key}` in the recipe{did_you_mean(key, [name.rstrip('_') for name in hints])}"
            )
        if not fits(value, hints[key]):
            near = did_you_mean(value, map(str, get_args(hints[key]))) if isinstance(value, str) else ""
            raise ConfigError(f"{where}.{key} = {short(value)} must be {spoken(hints[key])}{near}")
    return cls(**{key: float(value) if hints[key] is float else value for key, value in table.items()})


def texts(value: Any) -> Any:
    """A list of texts as a tuple; what is none stays, to be refused."""
    return tuple(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value


def fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple)
    if hint is float:
        return type(value) is float or (type(value) is int and abs(value) < 10**308)
    return type(value) is hint


def short(value: Any) -> str:
    """A value in a message; a long one is cut."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text):,} characters)"


def spoken(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Literal:
        return f"one of {one_of(map(str, get_args(hint)))}"
    if origin in (Union, types.UnionType):
        return " or ".join(spoken(option) for option in get_args(hint) if option not in (type(None), Path))
    if hint == tuple[str, ...]:
        return "a list of texts in quotes"
    names = {int: "a whole number", float: "a number", str: "a text in quotes", bool: "true or false"}
    return names.get(hint, "a list")
