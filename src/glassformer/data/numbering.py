"""What a published model reads of a store: its ids, behind our own four, which stand for its padding, start and end;
and its shades of pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.data.vocabulary import SPECIALS


@dataclass(frozen=True)
class Numbering:
    """The model's padding, start and end, which may be one id; every other is stored `offset` higher."""

    pad: int
    start: int
    end: int
    offset: int = len(SPECIALS)

    def __call__(self, stored: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids that the model knows."""
        marks = np.array([self.pad, self.start, self.end, self.pad])
        return np.where(stored < self.offset, marks[np.minimum(stored, self.offset - 1)], stored - self.offset)


@dataclass(frozen=True)
class Shades:
    """Of each channel, the mean that is taken off, and the spread that the rest is divided by."""

    mean: tuple[float, ...]
    spread: tuple[float, ...]
    offset: int = 0  # pixels are stored as they are

    def __call__(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Images (B, C, N, N), whose pixels are shares of the brightest."""
        mean, spread = (np.array(each, np.float32).reshape(1, -1, 1, 1) for each in (self.mean, self.spread))
        return (pixels - mean) / spread


Reading = Numbering | Shades
