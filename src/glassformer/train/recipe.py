"""A recipe: everything a training run depends on, as one TOML file.

    [data]       where the sentence pairs come from, and which are left out
    [tokenizer]  how they are cut into pieces
    [model]      any of ModelConfig's settings but the vocabulary's
    [train]      how long, how fast, how often
    [score]      how a translation is judged
    [about]      what the model is for: its languages, what its sentences are about, some to try

Relative paths in a recipe of your own start at the recipe's folder; in the built-in ones at the current folder.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
import types
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from glassformer.errors import ConfigError, did_you_mean, one_of
from glassformer.model import ModelConfig
from glassformer.text import END, PAD, START, About, Corpus, FilterOptions, Tokenizer, TokenizerOptions

OF_THE_VOCABULARY = ("vocab_size", "src_vocab_size", "pad_id", "start_id", "end_id")
# A model draws its weights by train.seed unless it is given a seed of its own.
MODEL_DEFAULTS = {
    f.name: f.default for f in dataclasses.fields(ModelConfig) if f.name not in (*OF_THE_VOCABULARY, "seed")
}


@dataclass(frozen=True)
class Data:
    train: tuple[Corpus, ...]
    valid: tuple[Corpus, ...] = ()
    test: tuple[Corpus, ...] = ()
    root: str = ""  # the folder that relative paths start at
    target: str | None = None  # the language of the built-in corpus: de, fr, es or zh
    max_tokens: int = 256
    max_ratio: float = 3.0

    @property
    def filter(self) -> FilterOptions:
        return FilterOptions(max_tokens=self.max_tokens, max_ratio=self.max_ratio)


@dataclass(frozen=True)
class Train:
    steps: int = 10_000
    batch_tokens: int | Literal["auto"] = 4096
    shapes: int = 10
    accumulate: int = 1
    seed: int = 0

    lr: float = 1e-3
    schedule: Literal["inverse_sqrt", "linear", "cosine", "constant"] = "inverse_sqrt"
    warmup_steps: int = 1000
    weight_decay: float = 0.0
    clip: float = 1.0
    label_smoothing: float = 0.1
    r_drop: float = 0.0

    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    compile: bool = False
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


@dataclass(frozen=True)
class Score:
    tokenize: str = "13a"
    lowercase: bool = False
    beam: int = 1
    length_penalty: float = 1.0
    samples: int = 12


@dataclass(frozen=True)
class Recipe:
    data: Data
    tokenizer: TokenizerOptions = field(default_factory=TokenizerOptions)
    model: dict[str, Any] = field(default_factory=dict)
    train: Train = field(default_factory=Train)
    score: Score = field(default_factory=Score)
    about: About = field(default_factory=About)

    def model_config(self, tokenizer: Tokenizer) -> ModelConfig:
        """The model's configuration, once the vocabulary is known."""
        vocabulary: dict[str, Any] = {"vocab_size": tokenizer.tgt_size, "pad_id": PAD, "start_id": START, "end_id": END}
        if not tokenizer.joint:
            vocabulary["src_vocab_size"] = tokenizer.src_size
        seed = {"seed": self.train.seed}
        return ModelConfig.from_dict(seed | self.model | vocabulary)

    def to_dict(self) -> dict[str, Any]:
        """Every value but None, which TOML does not know: a default that changes later changes no run begun before."""

        def plain(value: Any) -> Any:
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                return plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
            if isinstance(value, dict):
                return {name: plain(item) for name, item in value.items() if item is not None}
            if isinstance(value, tuple):
                return [plain(item) for item in value]
            return str(value) if isinstance(value, Path) else value

        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def built_in() -> dict[str, Path]:
    """The recipes that come with the package, by name."""
    folder = Path(str(resources.files("glassformer") / "recipes"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_recipe(name: str, changes: tuple[str, ...] = ()) -> Recipe:
    """A built-in recipe by name or any by its path, with `--set` changes such as "train.steps=60" applied."""
    here = Path()
    if name in built_in():
        path = built_in()[name]
    else:
        path = Path(name)
        here = path.parent
        if not path.is_file():
            known = built_in()
            raise ConfigError(
                f"no recipe `{name}`: neither a file nor one of {one_of(known)}{did_you_mean(name, known)}"
            )
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    for change in changes:
        apply(values, change)
    return parse(values, here)


def apply(values: dict[str, Any], change: str) -> None:
    """One `--set section.key=value`; the value reads as TOML, or as a plain string where it is not."""
    key, equals, text = change.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {change!r} is not of the form section.key=value, such as train.steps=60")
    *sections, last = key.strip().split(".")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    table = values
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {change!r}: `{section}` is a value, not a section")
    table[last] = value


def parse(values: dict[str, Any], here: Path = Path()) -> Recipe:
    sections = [f.name for f in dataclasses.fields(Recipe)]
    for name in values:
        if name not in sections:
            keys = [f"train.{f.name}" for f in dataclasses.fields(Train) if f.name == name]
            near = f"; did you mean `{keys[0]}`?" if keys else did_you_mean(name, sections)
            raise ConfigError(f"unknown section `{name}` in the recipe; sections are {one_of(sections)}{near}")
    for name in ("data", "model"):
        if not isinstance(values.get(name, {}), dict):
            raise ConfigError(f"`{name}` must be a section, not {values[name]!r}")
    data = dict(values.get("data", {}))
    root = here / str(data.get("root", ""))
    for split in ("train", "valid", "test"):
        tables = data.get(split, [])
        tables = tables if isinstance(tables, list) else [tables]
        data[split] = tuple(corpus(table, root, data.get("target"), f"data.{split}") for table in tables)
    if not data["train"]:
        raise ConfigError("the recipe has no [[data.train]]: name at least one corpus to train on")
    recipe = Recipe(
        data=read(Data, data, "data"),
        tokenizer=read(TokenizerOptions, values.get("tokenizer", {}), "tokenizer"),
        model=MODEL_DEFAULTS | values.get("model", {}),
        train=read(Train, values.get("train", {}), "train"),
        score=read(Score, values.get("score", {}), "score"),
        about=read(About, card(values.get("about", {}), data), "about"),
    )
    check(recipe)
    return recipe


def card(table: Any, data: dict[str, Any]) -> Any:
    """The section [about], its list as a tuple; the built-in corpus is translated into the language it is asked for."""
    if not isinstance(table, dict):
        return table
    examples = table.get("examples")
    if isinstance(examples, list) and all(isinstance(one, str) for one in examples):
        table = table | {"examples": tuple(examples)}
    return table | ({"target": data["target"]} if data.get("target") else {})


def corpus(table: Any, root: Path, target: Any, where: str) -> Corpus:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table such as {{ src = 'train.en', tgt = 'train.de' }}, not {table!r}")
    if target is not None and "builtin" in table:
        table = {"target": target, **table}
    paths = {
        key: str((root / str(value)).absolute())
        for key, value in table.items()
        if key in ("src", "tgt", "tsv", "jsonl")
    }
    made: Corpus = read(Corpus, table | paths, where)
    return made


def check(recipe: Recipe) -> None:
    train = recipe.train
    for name in ("steps", "accumulate", "log_every", "valid_every", "save_every", "keep_last", "average", "shapes"):
        if getattr(train, name) < 1:
            raise ConfigError(f"train.{name} = {getattr(train, name)}: it must be at least 1")
    if train.batch_tokens != "auto" and train.batch_tokens < 1:
        raise ConfigError(f"train.batch_tokens = {train.batch_tokens}: it must be at least 1")
    for name in ("warmup_steps", "patience", "seed", "weight_decay", "r_drop", "clip"):
        if getattr(train, name) < 0:
            raise ConfigError(f"train.{name} = {getattr(train, name)}: it cannot be negative")
    for name in ("label_smoothing", "ema"):
        if not 0 <= getattr(train, name) < 1:
            raise ConfigError(f"train.{name} = {getattr(train, name)}: it lies in 0 <= x < 1")
    for name in ("lr", "weight_decay", "r_drop", "clip"):
        if not math.isfinite(getattr(train, name)):
            raise ConfigError(f"train.{name} = {getattr(train, name)}: it must be a finite number")
    if train.seed >= 1 << 63:
        raise ConfigError(f"train.seed = {train.seed}: it must be below 2**63")
    if train.lr <= 0:
        raise ConfigError(f"train.lr = {train.lr}: it must be above 0")
    if train.average > 1 and train.keep_last < train.average:
        raise ConfigError(
            f"train.average = {train.average} needs as many checkpoints; "
            f"train.keep_last = {train.keep_last} keeps fewer: set train.keep_last = {train.average}"
        )
    if not recipe.data.valid and (train.patience or train.ship == "best"):
        raise ConfigError("train.patience and train.ship = 'best' need [[data.valid]] to judge by")
    for name in recipe.model:
        own = [f.name for f in dataclasses.fields(ModelConfig)]
        if name in OF_THE_VOCABULARY:
            raise ConfigError(f"model.{name} follows from the tokenizer; set tokenizer.vocab_size instead")
        if name not in own:
            raise ConfigError(f"unknown key `model.{name}` in the recipe{did_you_mean(name, own)}")
    ModelConfig.from_dict({"vocab_size": 1000, **recipe.model})


def read(cls: Any, table: Any, where: str) -> Any:
    """A dataclass from a TOML table; an unknown key or a wrong type is named."""
    if not isinstance(table, dict):
        raise ConfigError(f"`{where}` must be a section, not {table!r}")
    hints = get_type_hints(cls)
    for key, value in table.items():
        if key not in hints:
            raise ConfigError(f"unknown key `{where}.{key}` in the recipe{did_you_mean(key, hints)}")
        if not fits(value, hints[key]):
            raise ConfigError(f"{where}.{key} = {value!r} must be {spoken(hints[key])}")
    return cls(**{key: float(value) if hints[key] is float else value for key, value in table.items()})


def fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


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


def to_toml(values: dict[str, Any]) -> str:
    """Sections of plain values as TOML, enough for what a recipe holds."""

    def literal(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's too
        if isinstance(value, list):
            return f"[{', '.join(map(literal, value))}]"
        return repr(value)

    lines: list[str] = []
    for section, table in values.items():
        tables = {k: v for k, v in table.items() if isinstance(v, list) and v and isinstance(v[0], dict)}
        plain = {k: v for k, v in table.items() if k not in tables and v != []}
        lines += [f"[{section}]", *(f"{key} = {literal(value)}" for key, value in plain.items()), ""]
        for key, items in tables.items():
            for item in items:
                lines += [f"[[{section}.{key}]]", *(f"{k} = {literal(v)}" for k, v in item.items()), ""]
    return "\n".join(lines)
