"""A small set of batch shapes that fits the lengths of a corpus with little padding.

The pairs lie in a plane, source length by target length. Starting from one rectangle around all of them, the cut that
saves the most positions (padding and unfilled rows counted) is made again and again, until there are as many
rectangles as wanted or no cut helps. Each rectangle is a shape: as wide as its longest source and longest target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int32]
Box = tuple[int, int, int, int]  # half-open: source low, source high, target low, target high, in steps of the grid


@dataclass(frozen=True)
class Shape:
    """The static shape of a batch, and the pairs it is for: source in (src_low, src], target in (tgt_low, tgt]."""

    rows: int
    src: int
    tgt: int
    src_low: int
    src_high: int
    tgt_low: int
    tgt_high: int

    @property
    def cells(self) -> int:
        return self.rows * (self.src + self.tgt)


def plan_shapes(
    src: Lengths,
    tgt: Lengths,
    *,
    tokens: int,
    limit: int,
    multiple: int = 8,
    divisor: int = 1,
    weights: NDArray[np.float64] | None = None,
) -> tuple[Shape, ...]:
    """At most `limit` shapes for pairs of these lengths (target with its start or end id)."""
    edges = _edges(max(int(src.max()), int(tgt.max())), multiple)
    grid = _grid(src, tgt, edges, weights)
    planner = _Planner(grid, edges, tokens, divisor)
    boxes: list[Box] = [(0, len(edges), 0, len(edges))]
    while len(boxes) < limit:
        cuts = [(saving, place, halves) for place, box in enumerate(boxes) for saving, halves in planner.best_cut(box)]
        if not cuts:
            break
        _, place, halves = max(cuts, key=lambda cut: cut[0])
        boxes[place : place + 1] = halves
    return tuple(sorted((planner.shape(box) for box in boxes), key=lambda shape: (shape.tgt, shape.src)))


def assign(shapes: tuple[Shape, ...], src: Lengths, tgt: Lengths) -> NDArray[np.uint8]:
    """Which shape each pair belongs to."""
    table = np.zeros((int(src.max()) + 1, int(tgt.max()) + 1), dtype=np.uint8)
    for number, shape in enumerate(shapes):
        table[shape.src_low + 1 : shape.src_high + 1, shape.tgt_low + 1 : shape.tgt_high + 1] = number
    bucket: NDArray[np.uint8] = table[src, tgt]
    return bucket


def _edges(longest: int, multiple: int) -> NDArray[np.int64]:
    """The widths a batch may have."""
    fine = max(1, multiple // 4)
    small = np.arange(fine, 4 * multiple, fine)
    large = np.arange(4 * multiple, longest + multiple, multiple)
    edges = np.concatenate([small, large])
    return edges[: int(np.searchsorted(edges, longest)) + 1]


def _grid(
    src: Lengths, tgt: Lengths, edges: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """How many pairs there are at each (source edge, target edge)."""
    step = np.searchsorted(edges, np.arange(edges[-1] + 1)).astype(np.int32)  # length -> edge
    size = len(edges)
    cell = step[src]
    cell *= size
    cell += step[tgt]
    return np.bincount(cell, weights, minlength=size * size).reshape(size, size).astype(np.float64)


class _Planner:
    def __init__(self, grid: NDArray[np.float64], edges: NDArray[np.int64], tokens: int, divisor: int) -> None:
        self.grid = grid
        self.edges = edges
        self.tokens = tokens
        self.divisor = divisor

    def best_cut(self, box: Box) -> list[tuple[float, list[Box]]]:
        """The cut of `box` that saves the most, with what it saves; nothing when no cut saves any."""
        a, b, c, d = box
        halves = [[(a, cut, c, d), (cut, b, c, d)] for cut in range(a + 1, b)]
        halves += [[(a, b, c, cut), (a, b, cut, d)] for cut in range(c + 1, d)]
        whole = self.cost(box)
        savings = [(whole - self.cost(first) - self.cost(second), [first, second]) for first, second in halves]
        best = max(savings, key=lambda saving: saving[0], default=(0.0, []))
        return [best] if best[0] > 0 else []

    def cost(self, box: Box) -> float:
        """The positions of all batches of this box; infinite for an empty one, which must not become a shape."""
        pairs = self._pairs(box)
        if not pairs:
            return math.inf
        shape = self.shape(box)
        return math.ceil(pairs / shape.rows) * shape.cells

    def shape(self, box: Box) -> Shape:
        a, b, c, d = box
        inside = self.grid[a:b, c:d]
        src = int(self.edges[a + int(np.flatnonzero(inside.any(axis=1))[-1])])
        tgt = int(self.edges[c + int(np.flatnonzero(inside.any(axis=0))[-1])])
        low = lambda step: int(self.edges[step - 1]) if step else 0  # noqa: E731
        return Shape(self._rows(max(src, tgt), self._pairs(box)), src, tgt, low(a), low(b), low(c), low(d))

    def _pairs(self, box: Box) -> float:
        a, b, c, d = box
        return float(self.grid[a:b, c:d].sum())

    def _rows(self, width: int, pairs: float) -> int:
        """As many rows as the budget allows, and no more than there are pairs for; a multiple of 8 where it can be."""
        unit = math.lcm(8, self.divisor)
        budget = self.tokens // width
        if budget < unit:
            unit = self.divisor
        allowed = max(budget // unit * unit, unit)
        needed = math.ceil(pairs / unit) * unit
        return min(allowed, needed)
