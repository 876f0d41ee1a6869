"""Earlier places of modules, each good for one version more: an import of one warns, and gives what is there now."""

from __future__ import annotations

import importlib
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
    "glassformer.model.activation": "glassformer.model.layer",
    "glassformer.model.mask": "glassformer.model.attention",
    "glassformer.model.position": "glassformer.model.embedding",
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
    """Finds a module at its earlier name, after every other finder has failed to."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        earlier, _, rest = name, "", ""
        while earlier not in ALIASES:
            earlier, _, last = earlier.rpartition(".")
            if not earlier:
                return None
            rest = f".{last}{rest}"
        # A folder, so that its files are asked for here too; of no place, so that no other finder finds them twice.
        return ModuleSpec(name, self, origin=ALIASES[earlier] + rest, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        """The alias has everything that the module has; it is not the module itself."""
        assert module.__spec__ is not None
        place = str(module.__spec__.origin)
        warnings.warn(f"{module.__name__} is {place} now; the old name ends with the next version", FutureWarning, 2)
        now = importlib.import_module(place)
        vars(module).update({name: value for name, value in vars(now).items() if not name.startswith("__")})
        module.__getattr__ = lambda name: getattr(now, name)  # type: ignore[method-assign]  # what comes later
