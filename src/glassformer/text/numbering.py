"""A published model's ids in a store: behind our own four, which stand for its padding, start and end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.text.vocabulary import SPECIALS


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
