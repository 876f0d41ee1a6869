"""What is exported: a model with its tokenizer and metadata, and the sentences that the export is checked with."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import torch

from glassformer.common.errors import DataError, GlassformerError, InputError
from glassformer.data import About, PairTokenizer, read_pairs
from glassformer.data.readers import read_lines
from glassformer.model import DecoderOnly, Model
from glassformer.pipelines import box
from glassformer.pipelines.translator import Translator
from glassformer.train.evaluation.references import in_language
from glassformer.train.folder import saved_recipe
from glassformer.weights import bundle
from glassformer.weights.hub import locate
from glassformer.weights.pretrained import load_model

SENTENCES = 200  # of a sample, by default
PAIRS_READ = 20  # for each sentence of a sample
MAX_RANDOM = 24  # tokens of a random source
SEED = 17

Ids = list[int]


@dataclass(frozen=True)
class LoadedModel:
    """A plain float32 model on the CPU, with its tokenizer if it has one."""

    model: Model
    tokenizer: PairTokenizer | None = None
    name: str = "model"
    folder: Path | None = None  # from which it was loaded
    about: About = field(default_factory=About)
    stored: str = "float32"  # how its weights are stored there, or are to be
    language: str | None = None  # to translate into, of a model of several
    family: str | None = None  # of Hugging Face, to be written as


def load_for_export(model: Model | Translator | str | Path, language: str | None = None) -> LoadedModel:
    """A bundle, a translator of the box, a Hugging Face folder or a name of the hub; or a model in memory."""
    if isinstance(model, Translator):
        translator = model if language is None else model.toward(language)
        return LoadedModel(
            plain(translator.model), translator.tokenizer, about=translator.about, language=translator.to
        )
    if isinstance(model, Model):
        if language is not None:
            raise InputError(f"language={language!r} is for a translator; a model alone has no tokenizer to choose by")
        return LoadedModel(plain(model))
    if not isinstance(model, str | Path):
        raise InputError(
            f"a {type(model).__name__} cannot be exported; give a folder, a name of the box, a Translator or a model"
        )
    name = Path(model).name
    if not os.path.lexists(model) and (way := box.directions().get(str(model))) is not None:
        folder, language = box.folder(way.model), language or way.to
    else:
        folder = locate(model)
    is_bundle = bundle.is_bundle(folder)
    if not is_bundle and (folder / "config.json").is_file() and not (folder / "source.spm").is_file():
        return LoadedModel(plain(load_model(folder)), None, name, folder)
    stored = "int8" if is_bundle and bundle.read_config(folder).weights != "float32" else "float32"
    translator = Translator.load(folder, to=language)
    return LoadedModel(
        plain(translator.model), translator.tokenizer, name, folder, translator.about, stored, translator.to
    )


def plain(model: Model) -> Model:
    return model.to(device=torch.device("cpu"), dtype=torch.float32).eval()


@dataclass(frozen=True)
class Sample:
    """Sources: the ids of `texts`, followed by random ones if there are too few texts."""

    ids: list[Ids]
    texts: list[str]
    origin: str

    def __len__(self) -> int:
        return len(self.ids)


def choose_sample(loaded: LoadedModel, file: Path | None = None, count: int | None = None) -> Sample:
    """At most `count` sentences of a file, of the test or validation text of the model's recipe, or of the examples
    that come with the model; if these are too few and there is no file, random tokens."""
    if loaded.model.config.patch_size is not None:
        return Sample([], [], "random images")
    wanted = SENTENCES if count is None else count
    if file is not None and loaded.tokenizer is None:
        raise DataError(f"check={file}: the model has no tokenizer to read it with; leave it out to use random tokens")
    if file is None:
        texts, origin = own_texts(loaded, wanted)
    else:
        texts, origin = spread(list(read_lines(file)), count), str(file)
    tokens = [] if loaded.tokenizer is None else loaded.tokenizer.encode_source(texts)
    longest = loaded.model.config.max_length  # we cut a longer text, another system may not
    encoded = [(text, ids) for text, ids in zip(texts, tokens, strict=True) if text.strip() and 0 < len(ids) <= longest]
    if file is not None and not encoded:
        raise DataError(f"check={file} holds no sentence that the model translates as a whole; give another")
    rest = 0 if file is not None else max(0, wanted - len(encoded))
    parts = [f"{len(encoded)} of {origin}"] * bool(encoded) + [f"{rest} of random tokens"] * bool(rest)
    ids = [ids for _, ids in encoded] + random_ids(loaded, rest)
    return Sample(ids, [text for text, _ in encoded], ", ".join(parts))


def own_texts(loaded: LoadedModel, count: int) -> tuple[list[str], str]:
    if loaded.tokenizer is None:
        return [], ""
    for split in ("test", "valid"):
        if texts := recipe_texts(loaded, split, count):
            return texts, f"the model's {split} text"
    examples = list(loaded.about.examples)
    direction = f"{loaded.about.source}-{loaded.about.target}"
    if direction in box.directions():
        examples += [example.text for example in box.examples(direction)]
    return list(dict.fromkeys(examples))[:count], "the model's examples"


def recipe_texts(loaded: LoadedModel, split: str, count: int) -> list[str]:
    """Sources from the beginning of a split of the recipe; none if its files are not here."""
    if loaded.folder is None or not bundle.is_bundle(loaded.folder) or not (loaded.folder / "recipe.toml").is_file():
        return []
    try:
        corpora = in_language(getattr(saved_recipe(loaded.folder).data, split), "to", loaded.language)
        pairs = chain.from_iterable(map(read_pairs, corpora))
        return spread([source for source, _ in islice(pairs, PAIRS_READ * count)], count)
    except (GlassformerError, OSError):
        return []


def spread(texts: list[str], count: int | None) -> list[str]:
    """`count` different texts in their order, from the whole list."""
    texts = list(dict.fromkeys(texts))
    return texts if count is None else texts[:: max(1, len(texts) // count)][:count]


def random_ids(loaded: LoadedModel, count: int) -> list[Ids]:
    """Sequences of all lengths up to `MAX_RANDOM`, the same each time, without start, end and padding tokens."""
    config, generator = loaded.model.config, torch.Generator().manual_seed(SEED)
    size = config.vocab_size if isinstance(loaded.model, DecoderOnly) else config.encoder.vocab_size
    special = {config.pad_id, config.start_id, config.end_id}
    tokens = torch.tensor([id for id in range(size) if id not in special] or [0])
    longest = max(1, min(MAX_RANDOM, config.max_length // 2))
    lengths = (1 + i % longest for i in range(count))
    return [tokens[torch.randint(len(tokens), (length,), generator=generator)].tolist() for length in lengths]
