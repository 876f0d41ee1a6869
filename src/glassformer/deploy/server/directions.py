"""The served directions: those of one model, of several models, or of the whole box.

A model is loaded when one of its directions is first needed, and stays loaded.
"""

from __future__ import annotations

import itertools
import os
import threading
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from glassformer.common.errors import ConfigError, DataError, one_of
from glassformer.data import About, Tokenizer
from glassformer.data.readers import digits
from glassformer.decode.precision import Precision
from glassformer.deploy.server.errors import RequestError
from glassformer.deploy.server.requests import encode_image
from glassformer.explain.weights import Weights
from glassformer.pipelines import Classifier, MaskFiller, TextGenerator, box, load_pipeline
from glassformer.pipelines.box import Example
from glassformer.pipelines.translator import Translator
from glassformer.weights.bundle import is_bundle
from glassformer.weights.hub import model_name

Pipeline = TextGenerator | MaskFiller | Classifier
Model = Translator | Pipeline
DEFAULT_EXAMPLES = ("Hello, world!",)


class Direction(NamedTuple):
    """A direction's name, its model's name, and its languages; an unknown language is empty."""

    name: str
    model: str
    source: str
    target: str


class ModelLoader:
    """A named model, loaded when it is first needed."""

    def __init__(self, name: str, load: Callable[[], Model]) -> None:
        self.name, self._load = name, load
        self._model: Model | None = None
        self._lock = threading.Lock()

    @property
    def model(self) -> Model:
        with self._lock:
            self._model = self._model or self._load()
            return self._model

    @cached_property
    def weights(self) -> Weights:
        return Weights.of(self.model.model)

    @cached_property
    def blob(self) -> bytes:
        """The bytes of the weights."""
        return self.weights.blob()


@dataclass(frozen=True)
class ServedDirection:
    """A loaded model in one direction."""

    direction: Direction
    loader: ModelLoader
    model: Model
    examples: Sequence[Example]

    @property
    def translator(self) -> Translator:
        """The model, if it translates."""
        if not isinstance(self.model, Translator):
            raise RequestError(422, "refused", f"{self.loader.name} does not translate", "ask /api/trace")
        return self.model


class Directions:
    """All served directions; a page opens on `first`. With `images`, the model reads images instead of text."""

    def __init__(
        self,
        loaders: Sequence[ModelLoader],
        directions: Sequence[Direction],
        examples: Mapping[str, Sequence[Example]],
        first: str,
        images: bool = False,
    ) -> None:
        self.loaders = {one.name: one for one in loaders}
        self.by_name = {one.name: one for one in directions}
        self.examples, self.first, self.images = examples, first, images
        self._loaded: dict[str, ServedDirection] = {}

    def get(self, name: str | None = None) -> ServedDirection:
        """A direction by its name, or the first; loads its model if necessary."""
        found = self.by_name.get(self.first if name is None else name)
        if found is None:
            hint = f"there are {', '.join(self.by_name)}"
            raise RequestError(422, "direction", f"no direction is called {name!r:.60}", hint)
        if found.name not in self._loaded:
            loader = self.loaders[found.model]
            model = loader.model
            if isinstance(model, Translator) and model.to is not None:
                model = model.toward(found.target)
            self._loaded[found.name] = ServedDirection(found, loader, model, self.examples.get(found.name, ()))
        return self._loaded[found.name]


def translator_directions(
    translator: Translator, name: str, examples: Sequence[str] = (), first: str | None = None
) -> Directions:
    """The directions of a loaded model. The first is the one that it is loaded in, and that `examples` are for; a page
    opens on the direction into `first`."""
    tokenizer, card = translator.tokenizer, translator.about
    tags = tokenizer.tags if isinstance(tokenizer, Tokenizer) and translator.to else ()
    cards = [card, *(card.toward(tag, tags) for tag in tags if tag != translator.to)]
    known = [Direction("-".join(filter(None, (one.source, one.target))), name, one.source, one.target) for one in cards]
    opened = next((one for one in known if one.target == first), known[0])
    tried = {known[0].name: [Example(text) for text in examples]}
    return Directions([ModelLoader(name, lambda: translator)], known, tried, opened.name)


def reader_directions(reader: Pipeline, name: str, examples: Sequence[Example] = ()) -> Directions:
    """The only direction of a model that does not translate."""
    only = Direction(name, name, "", "")
    images = isinstance(reader, Classifier) and reader.reads_images
    return Directions([ModelLoader(name, lambda: reader)], [only], {name: examples}, name, images)


def load_directions(
    folders: Sequence[Path],
    device: str,
    to: str | None = None,
    precision: Precision = "fp32",
    source: str | None = None,
) -> Directions:
    """The directions of several models, of folders and of the box, in this order. Where two models translate between
    the same languages, the first one answers."""
    found = [folder_directions(folders[0], device, to, precision, source)]
    found += [folder_directions(folder, device, None, precision) for folder in folders[1:]]
    return found[0] if len(found) == 1 else merge_directions(found)


def merge_directions(several: Sequence[Directions]) -> Directions:
    """All directions in one object. A name that occurs again gets a number."""
    loaders, known = dict[str, ModelLoader](), dict[str, Direction]()
    examples: dict[str, Sequence[Example]] = {}
    for one in several:
        renamed = {}
        for loader in one.loaders.values():
            renamed[loader.name] = loader.name = free_name(loader.name, loaders)
            loaders[loader.name] = loader
        for direction in one.by_name.values():
            name = free_name(direction.name or renamed[direction.model], known)
            known[name] = direction._replace(name=name, model=renamed[direction.model])
            examples[name] = one.examples.get(direction.name, ())
    first = next(name for name, one in zip(known, several[0].by_name, strict=False) if one == several[0].first)
    return Directions(list(loaders.values()), list(known.values()), examples, first)


def free_name(name: str, used: Collection[str]) -> str:
    """The name, with the first number that makes it unique if it is in use."""
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one not in used)


def folder_directions(
    folder: Path, device: str, to: str | None = None, precision: Precision = "fp32", source: str | None = None
) -> Directions:
    """The directions of a model in a folder, or of the box if there is no such folder; a page opens on the direction
    into `to`. A published model of many languages has the one direction from `source` into `to`."""
    if (reader := load_pipeline(folder, device)) is not None:
        images = isinstance(reader, Classifier) and reader.reads_images
        tried = recipe_images(folder) if images else [Example(text) for text in reader.about.examples]
        return reader_directions(reader, model_name(folder), tried)
    if not os.path.lexists(folder) and str(folder) in box.directions():
        model = box.directions()[str(folder)].model
        into = {way.to: name for name, way in box.directions().items() if way.model == model}
        if source is not None:
            raise ConfigError(f"source={source} is known of {folder}; leave it out")
        if to is not None and to not in into:
            raise ConfigError(f"{model} translates into {one_of(list(into))}, not into `{to}`")
        return box_directions(device, str(folder) if to is None else into[to], [model], precision)
    loaded_to = default_target(folder) if is_bundle(folder) else to
    translator = Translator.load(folder, device, precision, to=loaded_to, source=source)
    if to is not None:
        translator.toward(to)  # raises an error for a language that the model does not know
    return translator_directions(translator, model_name(folder), translator.about.examples or DEFAULT_EXAMPLES, to)


def default_target(folder: Path) -> str | None:
    """The target of the model's card if it can be chosen, or else the first choice; None if there is no choice."""
    tags, recipe = Tokenizer.load(folder).tags, folder / "recipe.toml"
    card = About.of_recipe(recipe.read_text(encoding="utf-8", errors="replace")) if recipe.is_file() else About()
    return card.target if card.target in tags else next(iter(tags), None)


def box_directions(
    device: str, first: str, models: Sequence[str] = tuple(box.MODELS), precision: Precision = "fp32"
) -> Directions:
    """The directions of the box's models that are installed."""
    installed = [name for name in models if box.is_there(name)]
    box.folder(box.directions()[first].model)  # raises an error if it is missing
    known = [
        Direction(name, way.model, *name.split("-")) for name, way in box.directions().items() if way.model in installed
    ]
    loaders = [
        ModelLoader(name, partial(Translator.load, box.folder(name), device, precision, to=box.MODELS[name][1]))
        for name in installed
    ]
    return Directions(loaders, known, {one.name: box.examples(one.name) for one in known}, first)


def recipe_images(folder: Path) -> list[Example]:
    """One test image of each label, for a model whose recipe trains on the built-in digits."""
    try:
        data: Any = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8")).get("data", {})
        if not any(corpus.get("builtin") == "digits" for corpus in data["train"]):
            return []
        images, labels = digits("test")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, DataError):
        return []  # the page works without examples
    first = {label: image for image, label in zip(reversed(images), reversed(labels), strict=True)}
    return [Example(encode_image(first[label].transpose(1, 2, 0)), label, label) for label in sorted(first)]
