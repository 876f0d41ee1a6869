"""A small set of batch shapes that fits the lengths of a corpus with little padding.

A pair goes to the smallest shape that holds it. Pairs too few to fill another batch of their shape are moved to a
larger one where that costs less than a batch with empty rows. The shapes are found by search: add the one that saves
the most positions, then nudge each width as long as that saves more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int32]
Widths = tuple[int, int]  # of a shape, as positions in the list of allowed widths: source, target

QUANTILES = 12  # widths of either side tried for a new shape
SWEEPS = 20
NUDGES = ((-1, 0), (1, 0), (0, -1), (0, 1), (-2, 0), (2, 0), (0, -2), (0, 2), (-1, -1), (1, 1))


@dataclass(frozen=True)
class Shape:
    """The static shape of a batch: B rows, S source positions, T target positions."""

    rows: int
    src: int
    tgt: int

    @property
    def width(self) -> int:
        return self.src + self.tgt

    @property
    def cells(self) -> int:
        return self.rows * self.width

    def holds(self, other: Shape) -> bool:
        return self.src >= other.src and self.tgt >= other.tgt


def plan_shapes(
    src: Lengths,
    tgt: Lengths,
    *,
    tokens: int,
    limit: int = 10,
    multiple: int = 8,
    divisor: int = 1,
    weights: NDArray[np.float64] | None = None,
) -> tuple[Shape, ...]:
    """At most `limit` shapes, smallest first, for pairs of these lengths (target with its start or end id).

    `weights` says how many times each pair counts.
    """
    search = _Search(src, tgt, _edges(max(int(src.max()), int(tgt.max())), multiple), tokens, divisor, weights)
    chosen = [search.top]
    cost = search.cost(chosen)
    while len(chosen) < limit:
        cost_with, added = min((search.cost([*chosen, widths]), widths) for widths in search.candidates)
        if cost_with >= cost:
            break
        cost, chosen = search.nudge(cost_with, [*chosen, added], sweeps=1)
    return tuple(search.settle(search.nudge(cost, chosen, SWEEPS)[1])[0])


def assign(shapes: Sequence[Shape], src: Lengths, tgt: Lengths) -> NDArray[np.uint8]:
    """The smallest shape that holds each pair. `shapes` are ordered smallest first."""
    table = np.zeros((shapes[-1].src + 1, shapes[-1].tgt + 1), dtype=np.uint8)
    for number in reversed(range(len(shapes))):
        table[: shapes[number].src + 1, : shapes[number].tgt + 1] = number
    bucket: NDArray[np.uint8] = table[src, tgt]
    return bucket


def moves(shapes: Sequence[Shape], counts: Sequence[float]) -> list[tuple[int, int, float]]:
    """(from, to, how many pairs): what is left over in one shape and cheaper in a larger one, in order."""
    counts = list(counts)
    found = []
    for number, shape in enumerate(shapes):
        over = counts[number] % shape.rows
        larger = next((n for n in range(number + 1, len(shapes)) if shapes[n].holds(shape)), None)
        if over and larger is not None and over * shapes[larger].width < shape.cells:
            found.append((number, larger, over))
            counts[number] -= over
            counts[larger] += over
    return found


def _edges(longest: int, multiple: int) -> NDArray[np.int64]:
    """The widths a batch may have: any short one, then multiples, ever further apart."""
    edges = list(range(1, min(longest, 4 * multiple) + 1))
    while edges[-1] < longest:
        step = max(1, edges[-1] // 16 // multiple) * multiple
        edges.append((edges[-1] // multiple) * multiple + step)
    return np.array(edges)


class _Search:
    """The pairs as a table of counts over allowed widths, and what a set of shapes costs for them."""

    def __init__(
        self,
        src: Lengths,
        tgt: Lengths,
        edges: NDArray[np.int64],
        tokens: int,
        divisor: int,
        weights: NDArray[np.float64] | None,
    ) -> None:
        self.edges, self.tokens, self.divisor = edges, tokens, divisor
        step = np.searchsorted(edges, np.arange(edges[-1] + 1)).astype(np.int32)  # length -> edge
        cell = step[src]
        cell *= len(edges)
        cell += step[tgt]
        count = np.bincount(cell, weights, minlength=len(edges) ** 2)
        occupied = np.flatnonzero(count)
        self.count = count[occupied].astype(np.float64)
        self.src, self.tgt = np.divmod(occupied, len(edges))
        self.top = (int(self.src.max()), int(self.tgt.max()))
        self.candidates = sorted((s, t) for s in self._quantiles(self.src) for t in self._quantiles(self.tgt))

    def _quantiles(self, values: NDArray[np.int64]) -> set[int]:
        """Widths that part the pairs into shares of about the same size."""
        running = np.cumsum(np.bincount(values, self.count))
        return set(np.searchsorted(running, running[-1] * np.arange(1, QUANTILES + 1) / QUANTILES).tolist())

    def cost(self, chosen: list[Widths]) -> float:
        """The positions, padding included, of all batches of an epoch."""
        shapes, counts = self.settle(chosen)
        return sum(math.ceil(count / shape.rows) * shape.cells for count, shape in zip(counts, shapes, strict=True))

    def settle(self, chosen: list[Widths]) -> tuple[list[Shape], list[float]]:
        """The shapes, smallest first, and how many pairs each has once the leftovers have moved."""
        sizes = sorted(
            {(int(self.edges[s]), int(self.edges[t])) for s, t in chosen}, key=lambda size: (sum(size), size)
        )
        shapes = [Shape(self._rows(max(size)), *size) for size in sizes]
        src, tgt = self.edges[self.src], self.edges[self.tgt]
        bucket = np.full(len(src), len(shapes) - 1)
        for number in reversed(range(len(shapes))):
            bucket[(src <= shapes[number].src) & (tgt <= shapes[number].tgt)] = number
        counts: list[float] = np.bincount(bucket, self.count, minlength=len(shapes)).tolist()
        for number, larger, over in moves(shapes, counts):
            counts[number] -= over
            counts[larger] += over
        # The largest shape keeps its leftovers; its pairs are spread evenly over as few batches as they need.
        last = shapes[-1]
        even = math.ceil(counts[-1] / math.ceil(counts[-1] / last.rows))
        shapes[-1] = Shape(min(last.rows, self._round_up(even, last.rows)), last.src, last.tgt)
        return shapes, counts

    def nudge(self, cost: float, chosen: list[Widths], sweeps: int) -> tuple[float, list[Widths]]:
        """Widen and narrow single shapes while that helps. The first, which holds every pair, stays."""
        for _ in range(sweeps):
            before = cost
            for place in range(1, len(chosen)):
                for by_src, by_tgt in NUDGES:
                    src, tgt = chosen[place][0] + by_src, chosen[place][1] + by_tgt
                    if not (0 <= src <= self.top[0] and 0 <= tgt <= self.top[1]):
                        continue
                    other = [*chosen[:place], (src, tgt), *chosen[place + 1 :]]
                    if (other_cost := self.cost(other)) < cost:
                        cost, chosen = other_cost, other
            if cost == before:
                break
        return cost, chosen

    def _rows(self, width: int) -> int:
        """As many rows as the budget allows, a multiple of 8 where that can be."""
        budget = self.tokens // width
        unit = self._unit(budget)
        return max(budget // unit * unit, unit)

    def _round_up(self, rows: int, limit: int) -> int:
        unit = self._unit(limit)
        return math.ceil(rows / unit) * unit

    def _unit(self, rows: int) -> int:
        unit = math.lcm(8, self.divisor)
        return unit if rows >= unit else self.divisor
