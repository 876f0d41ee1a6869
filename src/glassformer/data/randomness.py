"""Random numbers that depend on nothing but what they are for, whatever numpy's version.

Each is the splitmix64 mix of its position, started at a mix of what it is for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20  # numbers made together, which bounds the memory

Numbers = NDArray[np.uint64]


def random_numbers(seed: int, epoch: int, use: int, count: int) -> Numbers:
    """`count` random 64-bit numbers."""
    start = _seed_state(seed, epoch, use)
    numbers = np.empty(count, np.uint64)
    for first in range(0, count, BLOCK):
        block = numbers[first : first + BLOCK]
        places: Numbers = np.arange(first, first + len(block), dtype=np.uint64)
        block[:] = _splitmix64(start + places)
    return numbers


def uniform(seed: int, epoch: int, use: int, rows: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each of `width` places in each of `rows`; each row number has values of its own."""
    first = _splitmix64(_seed_state(seed, epoch, use) ^ rows.astype(np.uint64))[:, None]
    places: Numbers = np.arange(width, dtype=np.uint64)
    return (_splitmix64(first + places) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _seed_state(*parts: int) -> Numbers:
    start: Numbers = np.zeros(1, np.uint64)
    for part in parts:
        start = _splitmix64(start ^ np.uint64(part % 2**64))
    return start


def _splitmix64(state: Numbers) -> Numbers:
    """The splitmix64 generator's step and output function; arrays wrap around silently, as it wants."""
    state = (state + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
