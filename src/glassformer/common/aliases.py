"""Earlier places of modules, each good for one version more: an import of one warns, and gives what is there now."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

ALIASES = {
    "glassformer.adapter": "glassformer.weights.lora",
    "glassformer.box": "glassformer.pipelines.box",
    "glassformer.bulk": "glassformer.deploy.bulk",
    "glassformer.bundle": "glassformer.weights.bundle",
    "glassformer.cache": "glassformer.model.cache",
    "glassformer.device": "glassformer.common.device",
    "glassformer.documents": "glassformer.pipelines.documents",
    "glassformer.errors": "glassformer.common.errors",
    "glassformer.evaluation": "glassformer.train.evaluation.evaluate",
    "glassformer.files": "glassformer.common.files",
    "glassformer.hub": "glassformer.weights.hub",
    "glassformer.judged": "glassformer.train.evaluation.references",
    "glassformer.measures": "glassformer.train.evaluation.metrics",
    "glassformer.polyglot": "glassformer.pipelines.polyglot",
    "glassformer.pretrained": "glassformer.weights.pretrained",
    "glassformer.recipes": "glassformer.train.recipe",
    "glassformer.references": "glassformer.train.evaluation.references",
    "glassformer.report": "glassformer.common.report",
    "glassformer.scores": "glassformer.train.evaluation.metrics",
    "glassformer.serve": "glassformer.deploy.server",
    "glassformer.stored": "glassformer.weights.quantized",
    "glassformer.text": "glassformer.data",
    "glassformer.text.chance": "glassformer.data.randomness",
    "glassformer.text.known": "glassformer.data.exact_source",
    "glassformer.text.packing": "glassformer.data.batch",
    "glassformer.text.pictures": "glassformer.data.readers",
    "glassformer.text.strings": "glassformer.common.strings",
    "glassformer.texts": "glassformer.pipelines.text",
    "glassformer.train.loss": "glassformer.model.loss",
    "glassformer.train.schedule": "glassformer.train.tuning",
    "glassformer.translation": "glassformer.pipelines.translator",
    "glassformer.translator": "glassformer.pipelines.translator",
    "glassformer.use": "glassformer.pipelines",
}


class AliasFinder(MetaPathFinder, Loader):
    """Finds a module at its earlier name: the very module, and those within a folder likewise."""

    def __init__(self) -> None:
        self.specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if self.place(name) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        place = self.place(spec.name)
        assert place is not None
        warnings.warn(f"{spec.name} is {place} now; the old name ends with the next version", FutureWarning, 2)
        module = importlib.import_module(place)
        self.specs[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.specs[module.__name__]  # its own again, after the import system has set the alias's

    @staticmethod
    def place(name: str) -> str | None:
        room, _, rest = name, "", ""
        while room not in ALIASES:
            room, _, last = room.rpartition(".")
            if not room:
                return None
            rest = f".{last}{rest}"
        return ALIASES[room] + rest


def install() -> None:
    sys.meta_path.insert(0, AliasFinder())  # first: else a file within an aliased folder would be loaded a second time
