"""Batches of one shape without padding to speak of: pairs side by side in rows, each seeing only itself.

Which pair a position belongs to is told by where it stands in its text: with every 0 another begins. The first text of
a source row is translated by the first of the target row, and so on.

Shapes: B rows, W positions of a row, on either side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from glassformer.data.shapes import Batch, BatchOptions, Shape
from glassformer.data.store import Store
from glassformer.data.vocabulary import END, PAD, START

LOOK = 24  # pairs that are tried where a row is nearly full

Lengths = NDArray[np.int64]


def packed_shape(longest: int, options: BatchOptions, lone: bool = False) -> Shape:
    """The one shape of all batches; that of `lone` texts has no source."""
    width = max(min(eights(options.width), options.tokens), eights(longest))
    rows = max(1, options.tokens // width // options.divisor) * options.divisor
    return Shape(rows, 0 if lone else width, width)


def uneven_shape(src: NDArray[np.int32], tgt: NDArray[np.int32], options: BatchOptions) -> Shape:
    """The same, of sides that are always as much longer or shorter than each other, as noise makes them."""
    sides, most = (src, tgt), max(src.sum(), tgt.sum())
    whole = packed_shape(max(int(src.max()), int(tgt.max())), options)
    widths = (max(eights(int(side.max())), eights(math.ceil(whole.tgt * side.sum() / most))) for side in sides)
    return Shape(whole.rows, *widths)


def eights(width: int) -> int:
    return -(-width // 8) * 8


def fill_rows(src: Lengths, tgt: Lengths, shape: Shape) -> Lengths:
    """Where each row begins, for pairs of these lengths in this order, and the end: a row takes what still fits."""
    ends = [np.concatenate(([0], np.cumsum(side))) for side in (src, tgt)]
    widths = (shape.src, shape.tgt)
    starts = [0]
    while starts[-1] < len(src):
        first = starts[-1]
        fits = [
            int(np.searchsorted(side, side[first] + width, "right")) - 1
            for side, width in zip(ends, widths, strict=True)
        ]
        starts.append(min(fits))
    return np.array(starts, dtype=np.int64)


def tighten(src: Sequence[int], tgt: Sequence[int], shape: Shape) -> NDArray[np.int64]:
    """The order of pairs of these lengths in which rows are full: where the next does not fit, one of those that follow
    may. The first to wait is the first in the next row, so that none waits long."""
    sizes = list(zip(src, tgt, strict=True))
    coming, waiting, order = iter(range(len(sizes))), list[int](), list[int]()
    waiting.extend(islice(coming, LOOK))
    while waiting:
        left, below, place = shape.src, shape.tgt, 0
        while place < len(waiting):
            one, other = sizes[waiting[place]]
            if one > left or other > below:
                place += 1
                continue
            left, below = left - one, below - other
            order.append(waiting.pop(place))
            waiting.extend(islice(coming, 1))
    return np.array(order, dtype=np.int64)


class PackedPlan:
    """The batches of one epoch; `plan[i]` makes any of them without those before it."""

    def __init__(self, store: Store, shape: Shape, order: NDArray[np.int32], tight: bool = False) -> None:
        src, tgt = store.lengths()
        if tight:
            order = order[tighten(src[order].tolist(), (tgt[order] + 1).tolist(), shape)]
        self._store, self._shape, self._order = store, shape, order
        self._lengths = {"src": src[order].astype(np.int64), "tgt": tgt[order].astype(np.int64) + 1}
        self._rows = fill_rows(self._lengths["src"], self._lengths["tgt"], shape)

    def __len__(self) -> int:
        return -(-(len(self._rows) - 1) // self._shape.rows)

    def __iter__(self) -> Iterator[Batch]:
        return (self[index] for index in range(len(self)))

    def shape(self, index: int) -> Shape:
        return self._shape

    def pairs(self, index: int) -> NDArray[np.int32]:
        """The numbers of the pairs in batch `index`."""
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of an epoch of {len(self)}")
        first, last = self._span(index)
        return self._order[self._rows[first] : self._rows[last]]

    def __getitem__(self, index: int) -> Batch:
        pairs = self.pairs(index)
        src, src_places, _ = self._laid_out("src", index)
        labels, tgt_places, cells = self._laid_out("tgt", index)
        tgt_in = np.full_like(labels, PAD)
        tgt_in[:, 1:] = labels[:, :-1]
        starts = np.flatnonzero(tgt_places.flat[cells] == 0)  # each target's first cell, counted along `cells`
        tgt_in.flat[cells[starts]] = START
        labels.flat[cells[np.append(starts[1:], len(cells)) - 1]] = END
        own, numbering = src != PAD, self._store.numbering
        return Batch(src, own, tgt_in, labels, len(cells), len(pairs), src_places, tgt_places, numbering)

    def _span(self, index: int) -> tuple[int, int]:
        first = index * self._shape.rows
        return first, min(first + self._shape.rows, len(self._rows) - 1)

    def _laid_out(self, side: str, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Ids (B, W), each one's place in its text (B, W), and the cells that are in use, in order."""
        first, last = self._span(index)
        begin, end = self._rows[first], self._rows[last]
        lengths = self._lengths[side][begin:end]
        ends = np.cumsum(lengths)
        row = np.repeat(np.arange(last - first), np.diff(self._rows[first : last + 1]))  # of each pair
        row_begins = np.concatenate(([0], ends))[self._rows[first:last] - begin]  # tokens before each row
        column = ends - lengths - row_begins[row]  # where each pair starts in its row
        place = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)  # of each token in its text
        wide = self._shape.src if side == "src" else self._shape.tgt
        cells = np.repeat(row * wide + column, lengths) + place
        ids = np.full((self._shape.rows, wide), PAD, dtype=np.int64)
        positions = np.zeros_like(ids)
        positions.flat[cells] = place
        gather = self._store.gather_src if side == "src" else self._store.gather_tgt
        found = np.empty(len(cells), dtype=np.int64)
        # Texts that are about as long together: one long one would make room for itself beside thousands of short ones.
        kinds = np.frexp(lengths)[1]
        for some in (np.flatnonzero(kinds == kind) for kind in np.unique(kinds)):
            width = int(lengths[some].max())
            texts, _ = gather(self._order[begin:end][some], width)
            own = np.arange(width) < lengths[some][:, None]
            found[((ends - lengths)[some][:, None] + np.arange(width))[own]] = texts[own]
        ids.flat[cells] = found
        return ids, positions, cells

    @property
    def padding_share(self) -> float:
        """The part of all positions, source and target, that is padding."""
        cells = len(self) * self._shape.cells
        return 1.0 - float(sum(side.sum() for side in self._lengths.values())) / cells if cells else 0.0
