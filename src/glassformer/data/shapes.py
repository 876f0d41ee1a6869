"""A small set of batch shapes that fits the lengths of a corpus with little padding.

A pair goes to the smallest shape that holds it. The rows of a shape spread its pairs evenly over as few batches as the
budget allows, and a few pairs that would need a step of their own move to a larger shape. The search adds the shape
that saves the most, then nudges each width as long as that saves more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glassformer.common.errors import ConfigError
from glassformer.data.vocabulary import InputMap

Lengths = NDArray[np.int32]
Widths = tuple[int, int]  # of a shape, as positions in the list of allowed widths: source, target

QUANTILES = 12  # widths of either side tried for a new shape
SWEEPS = 20
MULTIPLE = 8  # of rows, and of widths above four times this
EVEN = 8192  # a budget from which widths are even: it is a GPU's, and its matrix units pay for odd ones
STEP = 1 / 8  # what a step costs before its first position, as a part of the budget: the optimizer's work, mostly
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


@dataclass(frozen=True)
class BatchOptions:
    """How pairs are put together."""

    tokens: int = 4096  # rows times the wider side of a batch, padding included
    seed: int = 0
    shapes: int = 10  # at most this many different (B, S, T)
    pack: bool = False  # several pairs in a row, each seeing only itself: one shape, little padding
    width: int = 256  # of such a row; a corpus with longer texts has wider ones

    def __post_init__(self) -> None:
        for name in ("tokens", "shapes", "width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"batch.{name} {getattr(self, name)} must be at least 1")
        if self.shapes > 255:
            raise ConfigError(f"batch.shapes {self.shapes} must be at most 255; 10 are usually enough")
        if self.seed < 0:
            raise ConfigError(f"batch.seed {self.seed} must not be negative")


@dataclass(frozen=True)
class Batch:
    """One step's data. Unless rows hold several pairs, those beyond `pairs` are empty: padding only, and no labels."""

    src: NDArray[np.int64]  # (B, S)
    src_mask: NDArray[np.bool_]  # (B, S), True = real token
    tgt_in: NDArray[np.int64]  # (B, T), the start id and then the target
    labels: NDArray[np.int64]  # (B, T), the target and then the end id
    tokens: int  # labels that are not padding
    pairs: int  # how many sentence pairs
    src_places: NDArray[np.int64] | None = None  # (B, S), each token's place in its text, where rows hold several
    tgt_places: NDArray[np.int64] | None = None  # (B, T)
    input_map: InputMap | None = None  # to the ids of a model that has others


def plan_shapes(
    src: Lengths,
    tgt: Lengths,
    *,
    tokens: int,
    limit: int = 10,
    weights: NDArray[np.float64] | None = None,
) -> tuple[Shape, ...]:
    """At most `limit` shapes, smallest first, for pairs of these lengths (target with its start or end id).

    `weights` says how many times each pair counts.
    """
    edges = _edges(max(int(src.max()), int(tgt.max())), 2 if tokens >= EVEN else 1)
    search = _Search(src, tgt, edges, tokens, weights)
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


def move_leftovers(shapes: Sequence[Shape], counts: list[float]) -> list[tuple[int, int, float]]:
    """(from, to, how many pairs): what is left over in one shape and cheaper in a larger one, in order; `counts` are
    afterwards as these moves leave them."""
    found = []
    for number, shape in enumerate(shapes):
        over = counts[number] % shape.rows
        larger = next_larger(shapes, number)
        if over and larger is not None and over * shapes[larger].width < shape.cells:
            found.append((number, larger, over))
            counts[number] -= over
            counts[larger] += over
    return found


def next_larger(shapes: Sequence[Shape], number: int) -> int | None:
    """The smallest shape that holds all pairs of another."""
    own, larger = shapes[number], range(number + 1, len(shapes))
    return next((n for n in larger if shapes[n].src >= own.src and shapes[n].tgt >= own.tgt), None)


def _edges(longest: int, grain: int) -> NDArray[np.int64]:
    """The widths a batch may have: any short one or every other, then multiples of 8, ever further apart."""
    edges = list(range(grain, max(grain, min(longest, 4 * MULTIPLE)) + grain, grain))
    while edges[-1] < longest:
        step = max(1, edges[-1] // 16 // MULTIPLE) * MULTIPLE
        edges.append((edges[-1] // MULTIPLE) * MULTIPLE + step)
    return np.array(edges)


class _Search:
    """The pairs as a table of counts over allowed widths, and what a set of shapes costs for them."""

    def __init__(
        self,
        src: Lengths,
        tgt: Lengths,
        edges: NDArray[np.int64],
        tokens: int,
        weights: NDArray[np.float64] | None,
    ) -> None:
        self.edges, self.tokens, self.step = edges, tokens, tokens * STEP
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
        """The positions, padding included, of all batches of an epoch, and what its steps cost besides."""
        shapes, counts = self.settle(chosen)
        return sum(
            math.ceil(count / shape.rows) * (shape.cells + self.step)
            for count, shape in zip(counts, shapes, strict=True)
        )

    def settle(self, chosen: list[Widths]) -> tuple[list[Shape], list[float]]:
        """The shapes, smallest first, and how many pairs each has once the leftovers have moved."""
        sizes = {(int(self.edges[s]), int(self.edges[t])) for s, t in chosen}
        shapes = [Shape(self._rows(max(size)), *size) for size in sorted(sizes, key=lambda size: (sum(size), size))]
        src, tgt = self.edges[self.src], self.edges[self.tgt]
        bucket = np.full(len(src), len(shapes) - 1)
        for number in reversed(range(len(shapes))):
            bucket[(src <= shapes[number].src) & (tgt <= shapes[number].tgt)] = number
        counts: list[float] = np.bincount(bucket, self.count, minlength=len(shapes)).tolist()
        shapes = self._even(shapes, counts)
        move_leftovers(shapes, counts)
        return shapes, counts

    def _even(self, shapes: list[Shape], counts: list[float]) -> list[Shape]:
        """The shapes with rows that leave no batch half empty, and full ones where the leftovers had better move."""
        counts, even = list(counts), list(shapes)
        for number, shape in enumerate(shapes):
            over, larger = counts[number] % shape.rows, next_larger(shapes, number)
            if larger is not None and over * shapes[larger].width < min(shape.cells, over * shape.width + self.step):
                counts[number] -= over
                counts[larger] += over
            elif counts[number]:
                rows = math.ceil(counts[number] / math.ceil(counts[number] / shape.rows))
                if shape.rows >= MULTIPLE:
                    rows = math.ceil(rows / MULTIPLE) * MULTIPLE
                even[number] = Shape(min(shape.rows, rows), shape.src, shape.tgt)
        return even

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
        return budget // MULTIPLE * MULTIPLE if budget >= MULTIPLE else max(1, budget)
