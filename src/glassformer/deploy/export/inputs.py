"""What is exported: a model with its tokenizer and metadata, and the sentences that the export is checked with."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
from glassformer.weights.bundle import is_bundle
from glassformer.weights.hub import locate
from glassformer.weights.pretrained import load_model


@dataclass(frozen=True)
class LoadedModel:
    """A plain float32 model on the CPU, with its tokenizer where it has one.

    `folder` is the one that it came from, `stored` how its weights lie there; `language` the one it is told to write,
    of a model that knows several.
    """

    model: Model
    tokenizer: PairTokenizer | None = None
    name: str = "model"
    folder: Path | None = None
    about: About = field(default_factory=About)
    stored: bundle.Weights = "float32"
    language: str | None = None


def load_for_export(model: Model | Translator | str | Path, language: str | None = None) -> LoadedModel:
    """A bundle, a translator of the box, a Hugging Face folder or a name of the hub; or what was loaded of one."""
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
    if not bundle.is_bundle(folder) and (folder / "config.json").is_file() and not (folder / "source.spm").is_file():
        return LoadedModel(plain(load_model(folder)), None, name, folder)
    translator = Translator.load(folder, to=language)
    stored = bundle.read_config(folder)[1] if bundle.is_bundle(folder) else "float32"
    return LoadedModel(
        plain(translator.model), translator.tokenizer, name, folder, translator.about, stored, translator.to
    )


def plain(model: Model) -> Model:
    return model.to(device=torch.device("cpu"), dtype=torch.float32).eval()


COUNT = 200  # sentences, where nothing else is asked for
READ = 20  # times as many pairs that are looked through for them
LONGEST = 24  # tokens of a random sequence
SEED = 17

Ids = list[int]


@dataclass(frozen=True)
class Sample:
    """Sources: `texts`, and the ids of all, those of the texts first and then as many random ones as were missing."""

    ids: list[Ids]
    texts: list[str]
    said: str  # where they are from

    def __len__(self) -> int:
        return len(self.ids)


def choose_sample(loaded: LoadedModel, file: Path | None = None, count: int | None = None) -> Sample:
    """At most `count` sentences of a file, of the test or valid text that the model's recipe names, or of the few that
    come with it; where these do not suffice and no file was given, random tokens."""
    if loaded.model.config.patch_size is not None:
        return Sample([], [], "random images")
    wanted = COUNT if count is None else count
    if file is not None and loaded.tokenizer is None:
        raise DataError(f"check={file}: the model has no tokenizer to read it with; leave it out to use random tokens")
    texts, said = own_texts(loaded, wanted) if file is None else (spread(list(read_lines(file)), count), str(file))
    kept = [(text, ids) for text, ids in encoded(loaded, texts) if text.strip() and ids]
    if file is not None and not kept:
        raise DataError(f"check={file} holds no sentence that the model translates as a whole; give another")
    rest = 0 if file is not None else max(0, wanted - len(kept))
    parts = [f"{len(kept)} of {said}"] * bool(kept) + [f"{rest} of random tokens"] * bool(rest)
    return Sample([ids for _, ids in kept] + random_ids(loaded, rest), [text for text, _ in kept], ", ".join(parts))


def own_texts(loaded: LoadedModel, count: int) -> tuple[list[str], str]:
    if loaded.tokenizer is None:
        return [], ""
    for split in ("test", "valid"):
        if found := recipe_texts(loaded, split, count):
            return found, f"the model's {split} text"
    examples = list(loaded.about.examples)
    if (languages := (loaded.about.source, loaded.about.target)) and "-".join(languages) in box.directions():
        examples += [one.text for one in box.examples("-".join(languages))]
    return list(dict.fromkeys(examples))[:count], "the model's examples"


def recipe_texts(loaded: LoadedModel, split: str, count: int) -> list[str]:
    """Sources of a split that the recipe names, spread over its beginning; none where its files are not here."""
    if loaded.folder is None or not is_bundle(loaded.folder) or not (loaded.folder / "recipe.toml").is_file():
        return []
    try:
        corpora = in_language(getattr(saved_recipe(loaded.folder).data, split), "to", loaded.language)
        pairs = chain.from_iterable(map(read_pairs, corpora))
        return spread([source for source, _ in islice(pairs, READ * count)], count)
    except (GlassformerError, OSError):
        return []


def spread(texts: list[str], count: int | None) -> list[str]:
    """So many, in order, from the whole of the list."""
    texts = list(dict.fromkeys(texts))
    return texts if count is None else texts[:: max(1, len(texts) // count)][:count]


def encoded(loaded: LoadedModel, texts: list[str]) -> Iterator[tuple[str, Ids]]:
    """Those that the model reads as a whole; a longer one is cut by us, and not by another."""
    if loaded.tokenizer is None:
        return
    for text, ids in zip(texts, loaded.tokenizer.encode_source(texts), strict=True):
        if len(ids) <= loaded.model.config.max_length:
            yield text, ids


def random_ids(loaded: LoadedModel, count: int) -> list[Ids]:
    """Sequences of every length up to `LONGEST`, the same each time, without the marks of start, end and padding."""
    config, generator = loaded.model.config, torch.Generator().manual_seed(SEED)
    size = config.vocab_size if isinstance(loaded.model, DecoderOnly) else config.encoder.vocab_size
    marks = {config.pad_id, config.start_id, config.end_id}
    pieces = torch.tensor([id for id in range(size) if id not in marks] or [0])
    longest = max(1, min(LONGEST, config.max_length // 2))
    lengths = (1 + i % longest for i in range(count))
    return [pieces[torch.randint(len(pieces), (length,), generator=generator)].tolist() for length in lengths]
