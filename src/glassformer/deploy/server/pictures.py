"""Images as the page sends them: their pixels, one byte for each channel of each, row by row."""

from __future__ import annotations

import base64
import binascii
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.common.errors import DataError
from glassformer.data.readers import digits
from glassformer.deploy.server.errors import Refused
from glassformer.pipelines.box import Example
from glassformer.pipelines.images import Sight

MARK = "pixels:"  # before the bytes, which are in base64


def pixels(text: str, sight: Sight) -> NDArray[Any]:
    """The image (N, N, C) that a text tells."""
    shape = (sight.size, sight.size, sight.channels)
    try:
        data = base64.b64decode(text.removeprefix(MARK), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not text.startswith(MARK) or len(data) != np.prod(shape):
        hint = f"send {np.prod(shape):,} bytes, in base64 after {MARK!r}: rows, pixels, channels {shape}"
        raise Refused(422, "image", "the text tells no image of this model's size", hint)
    return np.frombuffer(data, np.uint8).reshape(shape)


def written(image: NDArray[np.uint8]) -> str:
    """An image (N, N, C) as a text."""
    return MARK + base64.b64encode(np.ascontiguousarray(image).tobytes()).decode()


def of_recipe(folder: Path) -> list[Example]:
    """Images to try on a model whose recipe learns from the digits: one of each, none that it has learnt from."""
    try:
        data: Any = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8")).get("data", {})
        if not any(corpus.get("builtin") == "digits" for corpus in data["train"]):
            return []
        images, labels = digits("test")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, DataError):
        return []  # a page works without
    first = {label: image for image, label in zip(reversed(images), reversed(labels), strict=True)}
    return [Example(written(first[label].transpose(1, 2, 0)), label, label) for label in sorted(first)]
