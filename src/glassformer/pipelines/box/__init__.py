"""The translators that come with glassformer: what they are called, and where they lie.

Each is a bundle that goes both ways, in a folder of its name beside this file, with its card in README.md.
`examples.toml` holds what the page offers to try.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from glassformer.common.errors import WeightsError, one_of

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples.toml"
MODELS = {"en-de": ("en", "de"), "en-zh": ("en", "zh")}
PIVOT = "en"  # between two languages that no model joins
LANGUAGES = tuple(dict.fromkeys(language for pair in MODELS.values() for language in pair))


class Direction(NamedTuple):
    """A model, and the language that it is to translate into."""

    model: str
    to: str


class Example(NamedTuple):
    """A sentence to try; its kind, and what to look at in it, in English and in Chinese."""

    text: str
    label: str = ""
    label_zh: str = ""
    look: str = ""
    look_zh: str = ""


def directions() -> dict[str, Direction]:
    """What can be asked for by name, each way of each model: `de-en` is `en-de` the other way."""
    pairs = [(name, pair) for name, (a, b) in MODELS.items() for pair in ((a, b), (b, a))]
    return {f"{source}-{target}": Direction(name, target) for name, (source, target) in pairs}


def route(source: str, target: str) -> list[Direction]:
    """The models from one language to another: one, or two by way of a third."""
    known = directions()
    direct = known.get(f"{source}-{target}")
    return [direct] if direct else [known[f"{source}-{PIVOT}"], known[f"{PIVOT}-{target}"]]


def is_there(model: str) -> bool:
    return (HERE / model / "model.safetensors").is_file()


def folder(model: str) -> Path:
    """Where a model lies."""
    if not is_there(model):
        others = [name for name in MODELS if is_there(name)]
        rest = f"there is {one_of(others)}; " if others else ""
        raise WeightsError(
            f"this copy of glassformer comes without the translator `{model}` ({HERE / model} holds no model); {rest}"
            f"install a wheel, which has it, or name a model of your own: glassformer translate MODEL ..."
        )
    return HERE / model


def examples(direction: str) -> list[Example]:
    """What to try of a direction, such as `de-en`."""
    return [Example(**one) for one in tomllib.loads(EXAMPLES.read_text(encoding="utf-8"))[direction]]
