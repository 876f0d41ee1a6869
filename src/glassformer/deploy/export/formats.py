"""The formats that a model can leave in: a module each, and the libraries that it cannot do without.

A module holds `FORMAT`, a `Format`; it is imported when it is asked for, and only once its libraries are there.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from glassformer.common.errors import ConfigError, GlassformerError, did_you_mean, one_of

if TYPE_CHECKING:
    from glassformer.deploy.export.format import Format


class Entry(NamedTuple):
    module: str
    libraries: tuple[str, ...]  # as they are imported; the extra `export` installs them all
    says: str


FORMATS = {
    "ctranslate2": Entry(
        "glassformer.deploy.export.ctranslate2",
        ("ctranslate2",),
        "a folder for ctranslate2.Translator, fast on any processor",
    ),
    "huggingface": Entry(
        "glassformer.deploy.export.huggingface",
        ("transformers",),
        "a folder that transformers loads, as one of its families",
    ),
    "onnx": Entry(
        "glassformer.deploy.export.onnx",
        ("onnx", "onnxscript", "onnxruntime"),
        "an encoder and a decoder step for onnxruntime, and a program that runs them",
    ),
    "page": Entry(
        "glassformer.deploy.export.page",
        ("onnx", "onnxscript", "onnxruntime"),
        "a page that needs no server: the model runs in the browser, every value to be seen",
    ),
}


def format_named(name: str) -> Format:
    """The format of that name, ready to write."""
    if name not in FORMATS:
        raise ConfigError(f"to={name!r:.40}: there is no such format{did_you_mean(name, FORMATS)}; {one_of(FORMATS)}")
    entry = FORMATS[name]
    missing = [library for library in entry.libraries if find_spec(library) is None]
    if missing:
        raise GlassformerError(
            f"an export to {name} is checked by running it, which needs {one_of(missing)}: "
            f"pip install 'glassformer[export]'"
        )
    found: Format = importlib.import_module(entry.module).FORMAT
    return found
