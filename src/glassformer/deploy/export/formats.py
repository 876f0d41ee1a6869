"""The export formats: what a format has to do, and the table of those there are."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from glassformer.common.errors import ConfigError, GlassformerError, did_you_mean, one_of

if TYPE_CHECKING:
    from glassformer.deploy.export.inputs import LoadedModel, Sample

Progress = Callable[[str], None]


class CannotExport(GlassformerError):
    """The format cannot express what the model does; nothing was written."""


class CheckFailed(GlassformerError):
    """The exported model does something else than the model; what was written has been deleted."""


class Format(ABC):
    """A target system: `refuse` what it cannot express, `write` the rest, `check` what was written.

    `options` names those that it takes, with the choices of each: `quantization`, how weights are stored, if not as in
    the model's folder; `family`, that of Hugging Face to write the model as, if not the first that can express it.
    """

    name: str
    options: ClassVar[dict[str, tuple[str, ...]]]

    @abstractmethod
    def refuse(self, loaded: LoadedModel) -> None:
        """Raise CannotExport if the format cannot express what the model does, before anything is written."""

    @abstractmethod
    def write(self, loaded: LoadedModel, folder: Path) -> None:
        """Write all files into an existing empty folder."""

    @abstractmethod
    def check(self, loaded: LoadedModel, folder: Path, sample: Sample, progress: Progress) -> dict[str, Any]:
        """Load `folder` in the target system and compare; returns the figures for the report.

        Raises CheckFailed if the two differ: see `glassformer.deploy.export.check`.
        """

    def versions(self) -> dict[str, str]:
        """The versions of the libraries that were used."""
        return {library: version(library) for library in FORMATS[self.name]}


# The libraries of each format, as they are imported; the extra `export` installs them all. A format's module has its
# name and holds `FORMAT`, a `Format`; it is imported on demand, when its libraries are there.
FORMATS = {
    "ctranslate2": ("ctranslate2",),
    "huggingface": ("transformers",),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "page": ("onnx", "onnxscript", "onnxruntime"),
}


def load_format(name: str) -> Format:
    """The format of that name, ready to write."""
    if name not in FORMATS:
        raise ConfigError(f"to={name!r:.40}: there is no such format{did_you_mean(name, FORMATS)}; {one_of(FORMATS)}")
    missing = [library for library in FORMATS[name] if find_spec(library) is None]
    if missing:
        raise GlassformerError(
            f"an export to {name} is checked by running it, which needs {one_of(missing)}: "
            f"pip install 'glassformer[export]'"
        )
    return cast(Format, importlib.import_module(f"glassformer.deploy.export.{name}").FORMAT)
