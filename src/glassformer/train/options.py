"""The sections of a recipe: dataclasses of options, read from TOML tables, and the limits of their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from glassformer.common.arguments import describe, kinds_of
from glassformer.common.errors import ConfigError, did_you_mean
from glassformer.data import Corpus, FilterOptions

ObjectiveName = Literal["translate", "language", "masked", "denoise", "classify", "image"]
# The names sacrebleu knows. Some of its tokenizers need a package or a download of their own.
Tokenize = Literal[
    "13a", "zh", "char", "intl", "none", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K"
]

LEAST = {
    "data": {"max_tokens": 1, "max_ratio": 1, "max_unknown": 0},
    "train": dict.fromkeys(("steps", "batch_tokens", "shapes", "accumulate", "keep_last", "average"), 1)
    | dict.fromkeys(("log_every", "valid_every", "save_every"), 1)
    | dict.fromkeys(("seed", "warmup_steps", "patience", "weight_decay", "r_drop", "clip", "lora_rank"), 0)
    | {"noise_span": 1},
    "score": {"beam": 1, "samples": 0},
}
MOST = {"shapes": 255, "beam": 1000, "seed": 2**63 - 1}
Section = TypeVar("Section")
LARGEST = 2**31  # of every other whole number: larger ones overflow somewhere
NAMES: dict[Any, str] = {int: "a whole number", float: "a number", str: "a text in quotes", bool: "true or false"}
NAMES |= {tuple[str, ...]: "a list of texts in quotes", Path: "a path"}


@dataclass(frozen=True)
class Data:
    train: tuple[Corpus, ...]
    valid: tuple[Corpus, ...] = ()
    test: tuple[Corpus, ...] = ()
    root: str = ""  # the folder that relative paths start at
    target: str | None = None  # the language of the built-in corpus: de, fr, es or zh
    skip_bad: bool = False  # of every corpus that does not say
    max_tokens: int = 256
    max_ratio: float = 3.0
    max_unknown: float = 0.1  # the share of tokens, of sources or targets, that may be in no vocabulary

    @property
    def filter(self) -> FilterOptions:
        return FilterOptions(max_tokens=self.max_tokens, max_ratio=self.max_ratio)


@dataclass(frozen=True)
class Train:
    objective: ObjectiveName = "translate"
    start: str = ""  # a trained model to go on from: its shape, its vocabulary and its weights
    noise: Literal["spans", "infill"] = "spans"  # of `denoise`
    noise_share: float = 0.15  # of a text's tokens that are hidden, of `masked` and `denoise`
    noise_span: float = 3.0  # tokens of a hidden run, on average, of `denoise`
    steps: int = 10_000
    batch_tokens: int | Literal["auto"] = 4096
    shapes: int = 10
    pack: bool = False
    accumulate: int = 1
    seed: int = 0

    lr: float = 1e-3
    schedule: Literal["inverse_sqrt", "linear", "cosine", "constant"] = "inverse_sqrt"
    warmup_steps: int = 1000
    weight_decay: float = 0.0
    clip: float = 1.0
    label_smoothing: float = 0.1
    r_drop: float = 0.0

    freeze: tuple[str, ...] = ()  # names of weights that do not learn, such as "encoder.*"
    layer_decay: float = 1.0  # of the rate, with each layer away from the head
    lora_rank: int = 0  # of the matrices that learn in place of the model's own
    lora_alpha: float = 16.0
    lora_on: tuple[str, ...] = ("*attention.*",)  # names of the layers that get one

    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    compile: bool | Literal["auto"] = False
    cuda_graphs: bool = True
    parallel: Literal["ddp", "fsdp"] = "ddp"

    ema: float = 0.0
    average: int = 1
    ship: Literal["last", "best"] = "last"

    log_every: int = 50
    valid_every: int = 500
    save_every: int = 500
    keep_last: int = 2
    metric: Literal["loss", "bleu"] = "loss"
    patience: int = 0
    tensorboard: bool = False

    @property
    def keeps_best(self) -> bool:
        """Whether the weights of the best validation are kept and shipped: always with `patience`."""
        return self.ship == "best" or self.patience > 0


@dataclass(frozen=True)
class Score:
    tokenize: Tokenize = "13a"
    lowercase: bool = False
    beam: int = 1
    length_penalty: float = 1.0
    samples: int = 12


def read_section(cls: type[Section], table: Any, where: str) -> Section:
    """A dataclass from a TOML table; an unknown key or a wrong type is named."""
    if not isinstance(table, dict):
        raise ConfigError(f"`{where}` must be a section, not {table!r}")
    hints = get_type_hints(cls)
    for key, value in table.items():
        if key not in hints:
            near = did_you_mean(key, [name.rstrip("_") for name in hints])
            raise ConfigError(f"unknown key `{where}.{key}` in the recipe{near}")
        if not matches(value, hints[key]):
            near = did_you_mean(value, map(str, get_args(hints[key]))) if isinstance(value, str) else ""
            raise ConfigError(f"{where}.{key} = {shorten(value)} must be {describe(hints[key], NAMES)}{near}")
    kinds: dict[Any, Callable[[Any], Any]] = {float: float, tuple[str, ...]: tuple}
    return cls(**{key: kinds[hints[key]](value) if hints[key] in kinds else value for key, value in table.items()})


def matches(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if len(kinds := kinds_of(hint)) > 1:
        return any(matches(value, kind) for kind in kinds)
    if hint == tuple[str, ...]:
        return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    if hint is float:
        return type(value) is float or (type(value) is int and abs(value) < 10**308)
    return type(value) is (get_origin(hint) or hint)


def shorten(value: Any) -> str:
    """A value in a message; a long one is cut."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text):,} characters)"


def check_number(key: str, value: float, least: int | None, most: int) -> None:
    unlimited = key == "data.max_ratio" and value == math.inf
    if isinstance(value, float) and not math.isfinite(value) and not unlimited:
        raise ConfigError(f"{key} = {value}: it must be a finite number")
    if least is not None and value < least:
        raise ConfigError(f"{key} = {value}: " + ("it must be at least 1" if least else "it cannot be negative"))
    if isinstance(value, int) and value > most:
        raise ConfigError(f"{key} = {shorten(value)}: it must be at most {most:,}")
