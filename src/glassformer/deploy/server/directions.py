"""The directions behind one page: those of one model, of several, or of every model in the box.

A model is loaded when one of its directions is first asked for, and stays.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from glassformer.common.errors import ConfigError, one_of
from glassformer.data import About, Tokenizer
from glassformer.decode.precision import Precision
from glassformer.deploy.server.errors import Refused
from glassformer.deploy.server.pictures import of_recipe
from glassformer.explain.weights import Weights
from glassformer.pipelines import Classifier, box
from glassformer.pipelines.box import Example
from glassformer.pipelines.reader import Reader, load_reader
from glassformer.pipelines.translator import Translator
from glassformer.weights.bundle import is_bundle
from glassformer.weights.hub import model_name

Served = Translator | Reader
ANYTHING = ("Hello, world!",)  # to try on a model that names no examples


class Direction(NamedTuple):
    """What can be asked for by `name`, by the name of its model; a language that is not known is empty."""

    name: str
    model: str
    source: str
    target: str


class ServedModel:
    """A model by its name, loaded when it is first needed."""

    def __init__(self, name: str, load: Callable[[], Served]) -> None:
        self.name, self._load = name, load
        self._served: Served | None = None
        self._weights: Weights | None = None
        self._blob: bytes | None = None
        self._lock = threading.RLock()

    @property
    def served(self) -> Served:
        with self._lock:
            self._served = self._served or self._load()
            return self._served

    @property
    def weights(self) -> Weights:
        with self._lock:
            self._weights = self._weights or Weights.of(self.served.model)
            return self._weights

    @property
    def blob(self) -> bytes:
        """Of its weights."""
        with self._lock:
            self._blob = self._blob or self.weights.blob()
            return self._blob


@dataclass(frozen=True)
class Shown:
    """A model in one direction: what a request is answered by."""

    direction: Direction
    model: ServedModel
    served: Served
    examples: Sequence[Example]

    @property
    def translator(self) -> Translator:
        """For whoever wants a translation."""
        if not isinstance(self.served, Translator):
            raise Refused(422, "refused", f"{self.model.name} does not translate", "ask /api/trace")
        return self.served


class Directions:
    """All that a page shows; `first` is what it opens on."""

    def __init__(
        self,
        models: Sequence[ServedModel],
        directions: Sequence[Direction],
        examples: Mapping[str, Sequence[Example]],
        first: str,
        images: bool = False,
    ) -> None:
        self.images = images  # are read, not texts
        self.models = {one.name: one for one in models}
        self.known = {one.name: one for one in directions}
        self.examples, self.first = examples, first
        self._shown: dict[str, Shown] = {}  # once its model has been loaded

    def shown(self, name: str | None = None) -> Shown:
        """A direction by its name, the first where none is given; its model is loaded if it is not yet."""
        found = self.known.get(self.first if name is None else name)
        if found is None:
            raise Refused(
                422, "direction", f"no direction is called {name!r:.60}", f"there are {', '.join(self.known)}"
            )
        if found.name not in self._shown:
            model = self.models[found.model]
            way = model.served
            if isinstance(way, Translator) and way.to is not None:
                way = way.toward(found.target)
            self._shown[found.name] = Shown(found, model, way, self.examples.get(found.name, ()))
        return self._shown[found.name]


def of_translator(
    translator: Translator, name: str, examples: Sequence[str] = (), first: str | None = None
) -> Directions:
    """Those of a model that is loaded, which opens on that into `first`; `examples` are for the one it is loaded in."""
    tokenizer, card = translator.tokenizer, translator.about
    tags = tokenizer.tags if isinstance(tokenizer, Tokenizer) and translator.to else ()
    cards = [card, *(card.toward(tag, tags) for tag in tags if tag != translator.to)]
    known = [Direction("-".join(filter(None, (one.source, one.target))), name, one.source, one.target) for one in cards]
    opened = next((one for one in known if one.target == first), known[0])
    tried = {known[0].name: [Example(text) for text in examples]}
    return Directions([ServedModel(name, lambda: translator)], known, tried, opened.name)


def of_reader(reader: Reader, name: str, examples: Sequence[Example] = ()) -> Directions:
    """That of a model which does not translate: it goes no way but its own."""
    only = Direction(name, name, "", "")
    images = isinstance(reader, Classifier) and reader.reads_images
    return Directions([ServedModel(name, lambda: reader)], [only], {name: examples}, name, images)


def of_several(
    folders: Sequence[Path],
    device: str,
    to: str | None = None,
    precision: Precision = "fp32",
    source: str | None = None,
) -> Directions:
    """Those of several models, of folders and of the box, in the order in which they are named; where two go from one
    language to another, the first is asked for translations."""
    found = [of_folder(folders[0], device, to, precision, source)]
    found += [of_folder(folder, device, None, precision) for folder in folders[1:]]
    return found[0] if len(found) == 1 else joined(found)


def joined(several: Sequence[Directions]) -> Directions:
    """Several as one; what has a name that another has already gets one of its own."""
    models, known = dict[str, ServedModel](), dict[str, Direction]()
    examples: dict[str, Sequence[Example]] = {}
    for one in several:
        names = {}
        for model in one.models.values():
            names[model.name] = model.name = free(model.name, models)
            models[model.name] = model
        for direction in one.known.values():
            name = free(direction.name or names[direction.model], known)
            known[name] = direction._replace(name=name, model=names[direction.model])
            examples[name] = one.examples.get(direction.name, ())
    opened = next(name for name, one in zip(known, several[0].known, strict=False) if one == several[0].first)
    return Directions(list(models.values()), list(known.values()), examples, opened)


def free(name: str, taken: Collection[str]) -> str:
    """The name, or that with the first number that nobody has."""
    others = (f"{name}-{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], others) if one not in taken)


def of_folder(
    folder: Path, device: str, to: str | None = None, precision: Precision = "fp32", source: str | None = None
) -> Directions:
    """Those of a model in a folder, or of the box where there is no such folder; opens on that into `to`. A published
    model of many languages goes from `source` into `to` alone."""
    if (reader := load_reader(folder, device)) is not None:
        images = isinstance(reader, Classifier) and reader.reads_images
        tried = of_recipe(folder) if images else [Example(text) for text in reader.about.examples]
        return of_reader(reader, model_name(folder), tried)
    if not os.path.lexists(folder) and str(folder) in box.directions():
        model = box.directions()[str(folder)].model
        into = {way.to: name for name, way in box.directions().items() if way.model == model}
        if source is not None:
            raise ConfigError(f"source={source} is known of {folder}; leave it out")
        if to is not None and to not in into:
            raise ConfigError(f"{model} translates into {one_of(list(into))}, not into `{to}`")
        return of_box(device, str(folder) if to is None else into[to], [model], precision)
    translator = Translator.load(
        folder, device, precision, to=usual(folder) if is_bundle(folder) else to, source=source
    )
    if to is not None:
        translator.toward(to)  # refused where it is no choice
    return of_translator(translator, model_name(folder), translator.about.examples or ANYTHING, to)


def usual(folder: Path) -> str | None:
    """The language that a model says it is for, of those that it can be told to write; none where it has no choice."""
    if not is_bundle(folder):
        return None
    tags, recipe = Tokenizer.load(folder).tags, folder / "recipe.toml"
    card = About.of_recipe(recipe.read_text(encoding="utf-8", errors="replace")) if recipe.is_file() else About()
    return card.target if card.target in tags else next(iter(tags), None)


def of_box(
    device: str, first: str, models: Sequence[str] = tuple(box.MODELS), precision: Precision = "fp32"
) -> Directions:
    """Those of the box's models that are there."""
    there = [name for name in models if box.is_there(name)]
    box.folder(box.directions()[first].model)  # told at once where it is missing
    known = [
        Direction(name, way.model, *name.split("-")) for name, way in box.directions().items() if way.model in there
    ]
    served = [
        ServedModel(name, partial(Translator.load, box.folder(name), device, precision, to=box.MODELS[name][1]))
        for name in there
    ]
    return Directions(served, known, {one.name: box.examples(one.name) for one in known}, first)
