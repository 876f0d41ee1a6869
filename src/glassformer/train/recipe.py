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
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassformer.common.errors import ConfigError, DataError, did_you_mean, one_of, why
from glassformer.common.files import to_toml
from glassformer.data import END, PAD, START, About, BatchOptions, Corpus, Tokenizer, TokenizerOptions
from glassformer.data.labelled import LabelledTokenizer
from glassformer.data.readers import missing_file_message
from glassformer.model import ModelConfig
from glassformer.train.objective import OBJECTIVES, Objective
from glassformer.train.options import LARGEST, LEAST, MOST, Data, Score, Train, check_number, read_section
from glassformer.train.start import base_settings, resolve_base
from glassformer.weights.pretrained.fine_tuning import PublishedTokenizer

FORMAT_VERSION = 1
CORPUS_KEYS = {
    "pairs": "its files as src and tgt, or tsv",
    "plain texts": "text = 'FILE', or only = 'src' for that side of the pairs",
    "labelled texts": "a tsv of text and label",
    "images": "images = 'FILE.npz'",
}
VOCABULARY_SETTINGS = ("vocab_size", "src_vocab_size", "pad_id", "start_id", "end_id")
# A model draws its weights by train.seed unless it is given a seed of its own.
MODEL_DEFAULTS = {
    f.name: f.default for f in dataclasses.fields(ModelConfig) if f.name not in (*VOCABULARY_SETTINGS, "seed")
}


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
        if isinstance(tokenizer, LabelledTokenizer):
            own, texts = tokenizer.settings(self.model), tokenizer.texts
        if isinstance(texts, PublishedTokenizer):
            own |= texts.sizes
        if own:
            return ModelConfig.from_dict({"seed": self.train.seed} | self.model | own)
        return self.sized_config(tokenizer.tgt_size, None if tokenizer.joint else tokenizer.src_size)

    def sized_config(self, size: int, src_size: int | None) -> ModelConfig:
        """The same for a vocabulary of `size`, and a source's own of `src_size`."""
        vocabulary = {"vocab_size": size, "pad_id": PAD, "start_id": START, "end_id": END}
        own = {} if src_size is None else {"src_vocab_size": src_size}
        return ModelConfig.from_dict({"seed": self.train.seed} | self.model | vocabulary | own)

    @property
    def special_pieces(self) -> list[str]:
        """Pieces of the vocabulary that no text yields, which the objective needs."""
        return self.objective.pieces(self.train, self.data.max_tokens)

    @property
    def row_width(self) -> int:
        """The width of packed rows: for plain texts, the longest text with its special tokens."""
        return self.data.max_tokens + self.objective.margin if self.objective.monolingual else BatchOptions.width

    def check_files(self) -> None:
        """Every file of the corpora is there, those too that are read only at the end."""
        where = f"`{self.data.root}` (data.root)" if self.data.root else "the recipe's folder"
        other = f"relative paths start at {where}; where the files are elsewhere: --set data.root=FOLDER"
        for corpus in (*self.data.train, *self.data.valid, *self.data.test):
            for file in corpus.files:
                if not file.exists():
                    raise DataError(missing_file_message(file, other))

    def least_config(self) -> ModelConfig:
        """The model's configuration with a small vocabulary, to be checked before its own is known."""
        return ModelConfig.from_dict(self.model | {"vocab_size": 1000, "patch_size": None})

    def to_dict(self) -> dict[str, Any]:
        """Every value but None, which TOML does not know: a default that changes later changes no run begun before."""

        def plain(value: Any) -> Any:
            return list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value

        def table(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
            return {name.rstrip("_"): plain(value) for name, value in items if value is not None}

        return dataclasses.asdict(self, dict_factory=table) | {"model": table(self.model.items())}


def recipe_text(recipe: Recipe) -> str:
    """A recipe as a file that a run keeps."""
    return f"format_version = {FORMAT_VERSION}\n\n{to_toml(recipe.to_dict())}"


def built_in() -> dict[str, Path]:
    """The recipes that come with the package, by name."""
    return {path.stem: path for path in sorted(Path(__file__).with_name("recipes").glob("*.toml"))}


def read_toml(path: Path) -> dict[str, Any]:
    """What a recipe says. With `base`, the name of a built-in one, it has the values of that one but for its own; its
    own corpora of a split take the place of all the other's."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {why(error)}") from None
    except (ValueError, RecursionError) as error:  # TOML, UTF-8, or a number of thousands of digits
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    if "base" not in values:
        return values
    base, known = str(values.pop("base")), built_in()
    if base not in known:
        raise ConfigError(
            f"no recipe `{base}`, the base of {path}: it is one of {one_of(known)}{did_you_mean(base, known)}"
        )
    inherited = read_toml(known[base])
    sections = {
        name: inherited[name] | own for name, own in values.items() if isinstance(own, dict) and name in inherited
    }
    return inherited | values | sections


def read_recipe(name: str, changes: tuple[str, ...] = ()) -> Recipe:
    """A built-in recipe by name or any by its path, with `--set` changes such as "train.steps=60" applied."""
    known = built_in()
    path = known.get(name, Path(name))
    if not path.is_file():
        raise ConfigError(f"no recipe `{name}`: neither a file nor one of {one_of(known)}{did_you_mean(name, known)}")
    values = read_toml(path)
    for change in changes:
        set_value(values, change)
    return parse(values, Path() if name in known else path.parent)


def set_value(values: dict[str, Any], change: str) -> None:
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


def parse(values: dict[str, Any], here: Path = Path()) -> Recipe:
    values = dict(values)
    version = values.pop("format_version", 1)
    if type(version) is not int or version < 1:
        raise ConfigError(f"format_version = {version!r:.40} of the recipe is no version; {FORMAT_VERSION} is today's")
    if version > FORMAT_VERSION:
        raise ConfigError(
            f"the recipe is of format version {version}; this glassformer reads versions up to {FORMAT_VERSION}: "
            f"update it (pip install --upgrade glassformer), or take a recipe of the glassformer you have"
        )

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
        data[split] = tuple(read_corpus(table, root, data, f"data.{split}") for table in tables)
    if not data["train"]:
        raise ConfigError("the recipe has no [[data.train]]: name at least one corpus to train on")
    train = read_section(Train, values.get("train", {}), "train")
    if train.start:
        train = dataclasses.replace(train, start=resolve_base(train.start, here))
    apart = {"tied": False} if OBJECTIVES[train.objective].labelled else {}  # labels have no embedding to be tied to
    recipe = Recipe(
        data=read_section(Data, data, "data"),
        tokenizer=read_section(TokenizerOptions, values.get("tokenizer", {}), "tokenizer"),
        model=MODEL_DEFAULTS | base_settings(train, VOCABULARY_SETTINGS) | apart | values.get("model", {}),
        train=train,
        score=read_section(Score, values.get("score", {}), "score"),
        about=read_section(About, values.get("about", {}), "about"),
    )
    if recipe.data.target:
        recipe = dataclasses.replace(recipe, about=dataclasses.replace(recipe.about, target=recipe.data.target))
    check_recipe(recipe)
    return recipe


def read_corpus(table: Any, root: Path, data: dict[str, Any], where: str) -> Corpus:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table such as {{ src = 'train.en', tgt = 'train.de' }}, not {table!r}")
    table = {"skip_bad": data.get("skip_bad", False), **table}
    if data.get("target") is not None and "builtin" in table:
        table = {"target": data["target"], **table}
    table = {"from_" if key == "from" else key: value for key, value in table.items()}  # a word Python keeps for itself
    paths = {
        key: str((root / str(value)).absolute())
        for key, value in table.items()
        if key in ("src", "tgt", "text", "tsv", "jsonl", "images")
    }
    return read_section(Corpus, table | paths, where)


def check_recipe(recipe: Recipe) -> None:
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
    if not recipe.data.valid and train.keeps_best:
        raise ConfigError("train.patience and train.ship = 'best' need [[data.valid]] to judge by")
    check_objective(recipe)
    check_languages(recipe)
    for name in recipe.model:
        own = [f.name for f in dataclasses.fields(ModelConfig)]
        if name in VOCABULARY_SETTINGS:
            raise ConfigError(f"model.{name} follows from the tokenizer; set tokenizer.vocab_size instead")
        if name not in own:
            raise ConfigError(f"unknown key `model.{name}` in the recipe{did_you_mean(name, own)}")
    recipe.least_config()
    patch = recipe.model["patch_size"]
    if patch is not None:  # the size of the images is known later
        fitting = patch if type(patch) is int and 1 <= patch <= 4096 else 1
        ModelConfig(vocab_size=1000, patch_size=patch, image_size=fitting, tied=False)


def check_objective(recipe: Recipe) -> None:
    """The corpora hold what the objective learns from, and the options fit it."""
    name = recipe.train.objective
    for split in ("train", "valid", "test"):
        for corpus in getattr(recipe.data, split):
            wants = recipe.objective.content
            if corpus.content != wants.replace("labelled texts", "pairs"):
                raise ConfigError(
                    f"data.{split}: {corpus.name} has {corpus.content}, and train.objective = '{name}' learns from "
                    f"{wants}: give {CORPUS_KEYS[wants]}"
                )
            if recipe.objective.labelled and (corpus.to is not None or corpus.protect):
                raise ConfigError(f"data.{split}: `to` and `protect` are for translations, not objective = '{name}'")
    if name != "translate" and recipe.train.metric == "bleu":
        raise ConfigError(f"train.metric = 'bleu' is for translations; train.objective = '{name}' has metric = 'loss'")
    if recipe.objective.content == "images" and not recipe.model["patch_size"]:
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
