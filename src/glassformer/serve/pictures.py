"""Images as the page sends them: their pixels, one byte for each channel of each, row by row."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.serve.errors import Refused
from glassformer.use.images import Sight

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
