"""A recipe: everything a training run depends on, as one TOML file.

    [data]       where the sentence pairs, or plain texts, come from, and which are left out
    [tokenizer]  how they are cut into pieces
    [model]      any of ModelConfig's settings but the vocabulary's
    [train]      how long, how fast, how often
    [score]      how a translation is judged
    [about]      what the model is for: its languages, what its sentences are about, some to try

Above them all, `format_version` says which version of this form it is; one that says none is of the first. And
`base = "numerals"` there begins with all that a built-in recipe says: what follows takes the place of its values.
Relative paths in a recipe of your own start at the recipe's folder; in the built-in ones at the current folder.
"""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from glassformer.common.errors import ConfigError, DataError, did_you_mean, one_of
from glassformer.common.files import to_toml as to_toml
from glassformer.data import END, PAD, START, About, BatchOptions, Corpus, FilterOptions, Tokenizer, TokenizerOptions
from glassformer.data.labelled import Labelled
from glassformer.data.lines import missing
from glassformer.model import ModelConfig
from glassformer.train import recipes
from glassformer.train.limits import OF_THE_VOCABULARY, check, read
from glassformer.train.objective import OBJECTIVES, Name, Objective
from glassformer.train.recipes import built_in
from glassformer.train.start import placed, settings
from glassformer.weights.pretrained.start_text import StartText

FORMAT_VERSION = 1
# A model draws its weights by train.seed unless it is given a seed of its own.
MODEL_DEFAULTS = {
    f.name: f.default for f in dataclasses.fields(ModelConfig) if f.name not in (*OF_THE_VOCABULARY, "seed")
}
# The names sacrebleu knows. Some of its tokenizers need a package or a download of their own.
Tokenize = Literal[
    "13a", "zh", "char", "intl", "none", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K"
]


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
    objective: Name = "translate"
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


@dataclass(frozen=True)
class Score:
    tokenize: Tokenize = "13a"
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

    @property
    def objective(self) -> Objective:
        return OBJECTIVES[self.train.objective]

    def model_config(self, tokenizer: Tokenizer) -> ModelConfig:
        """The model's configuration, once the vocabulary is known."""
        own, texts = {}, tokenizer
        if isinstance(tokenizer, Labelled):
            own, texts = tokenizer.settings(self.model), tokenizer.texts
        if isinstance(texts, StartText):
            own |= texts.sizes
        if own:
            return ModelConfig.from_dict({"seed": self.train.seed} | self.model | own)
        return self.sized_config(tokenizer.tgt_size, None if tokenizer.joint else tokenizer.src_size)

    def sized_config(self, size: int, src_size: int | None) -> ModelConfig:
        """The same for a vocabulary of `size`, and a source's own of `src_size`."""
        vocabulary: dict[str, Any] = {"vocab_size": size, "pad_id": PAD, "start_id": START, "end_id": END}
        if src_size is not None:
            vocabulary["src_vocab_size"] = src_size
        seed = {"seed": self.train.seed}
        return ModelConfig.from_dict(seed | self.model | vocabulary)

    @property
    def row_width(self) -> int:
        """Of packed rows: that of the longest text where nothing stands beside it, its context's length."""
        return self.data.max_tokens + self.objective.margin if self.objective.lone else BatchOptions.width

    def check_files(self) -> None:
        """Every file of the corpora is there, those too that are read only at the end."""
        where = f"`{self.data.root}` (data.root)" if self.data.root else "the recipe's folder"
        other = f"relative paths start at {where}; where the files are elsewhere: --set data.root=FOLDER"
        for corpus in (*self.data.train, *self.data.valid, *self.data.test):
            for file in corpus.files:
                if not file.exists():
                    raise DataError(missing(file, other))

    def least_config(self) -> ModelConfig:
        """The model's configuration with a small vocabulary, to be checked before its own is known."""
        return ModelConfig.from_dict(self.model | {"vocab_size": 1000, "patch_size": None})

    def to_dict(self) -> dict[str, Any]:
        """Every value but None, which TOML does not know: a default that changes later changes no run begun before."""

        def plain(value: Any) -> Any:
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                return plain({f.name.rstrip("_"): getattr(value, f.name) for f in dataclasses.fields(value)})
            if isinstance(value, dict):
                return {name: plain(item) for name, item in value.items() if item is not None}
            if isinstance(value, tuple):
                return [plain(item) for item in value]
            return str(value) if isinstance(value, Path) else value

        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def written(recipe: Recipe) -> str:
    """A recipe as a file that a run keeps."""
    return f"format_version = {FORMAT_VERSION}\n\n{to_toml(recipe.to_dict())}"


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
    values = recipes.read(path)
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
        found = tomllib.loads(f"value = {text}")
        value = found["value"] if len(found) == 1 else text
    except (ValueError, RecursionError):
        value = text
    table = values
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {change!r}: `{section}` is a value, not a section")
    table[last] = value


def check_version(values: dict[str, Any]) -> dict[str, Any]:
    """What a recipe says beside its version, if that is one that can be read."""
    version = values.get("format_version", 1)
    if type(version) is not int or version < 1:
        raise ConfigError(f"format_version = {version!r:.40} of the recipe is no version; {FORMAT_VERSION} is today's")
    if version > FORMAT_VERSION:
        raise ConfigError(
            f"the recipe is of format version {version}; this glassformer reads versions up to {FORMAT_VERSION}: "
            f"update it (pip install --upgrade glassformer), or take a recipe of the glassformer you have"
        )
    return {name: value for name, value in values.items() if name != "format_version"}


def parse(values: dict[str, Any], here: Path = Path()) -> Recipe:
    values = check_version(values)
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
    train = read(Train, values.get("train", {}), "train")
    if train.start:
        train = dataclasses.replace(train, start=placed(train.start, here))
    apart = {"tied": False} if OBJECTIVES[train.objective].labelled else {}  # labels have no embedding to be tied to
    recipe = Recipe(
        data=read(Data, data, "data"),
        tokenizer=read(TokenizerOptions, values.get("tokenizer", {}), "tokenizer"),
        model=MODEL_DEFAULTS | settings(train.start, OF_THE_VOCABULARY) | apart | values.get("model", {}),
        train=train,
        score=read(Score, values.get("score", {}), "score"),
        about=read(About, card(values.get("about", {}), data), "about"),
    )
    check(recipe)
    return recipe


def card(table: Any, data: dict[str, Any]) -> Any:
    """The section [about]; the built-in corpus is translated into the language it is asked for."""
    if not isinstance(table, dict):
        return table
    return table | ({"target": data["target"]} if data.get("target") else {})


def corpus(table: Any, root: Path, target: Any, where: str) -> Corpus:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table such as {{ src = 'train.en', tgt = 'train.de' }}, not {table!r}")
    if target is not None and "builtin" in table:
        table = {"target": target, **table}
    table = {"from_" if key == "from" else key: value for key, value in table.items()}  # a word Python keeps for itself
    paths = {
        key: str((root / str(value)).absolute())
        for key, value in table.items()
        if key in ("src", "tgt", "text", "tsv", "jsonl", "images")
    }
    made: Corpus = read(Corpus, table | paths, where)
    return made
