"""Batches of a few static shapes, in an order that depends on nothing but the seed and the epoch.

Shapes: B rows of a batch, S source width, T target width (one more than the longest target, for start or end).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from glassformer.common.errors import ConfigError
from glassformer.data.randomness import random_numbers
from glassformer.data.shapes import Batch as Batch
from glassformer.data.shapes import BatchOptions as BatchOptions
from glassformer.data.shapes import Shape, assign, move_leftovers, plan_shapes
from glassformer.data.store import Store
from glassformer.data.vocabulary import END, PAD, START


@dataclass(frozen=True)
class EpochPlan:
    """The batches of one epoch; `plan[i]` makes any of them without those before it."""

    _store: Store
    _shapes: tuple[Shape, ...]
    _order: NDArray[np.int32]  # pair numbers, bucket after bucket
    _starts: NDArray[np.int64]  # where each bucket begins in it, and the end
    _batches: NDArray[np.int64]  # (number of batches, 2): bucket, which batch of the bucket
    _real: int  # positions that are not padding

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        return (self[index] for index in range(len(self)))

    def shape(self, index: int) -> Shape:
        return self._shapes[int(self._batches[index, 0])]

    def pairs(self, index: int) -> NDArray[np.int32]:
        """The numbers of the pairs in batch `index`."""
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of an epoch of {len(self)}")
        bucket, place = self._batches[index]
        rows = self._shapes[bucket].rows
        start = self._starts[bucket] + place * rows
        return self._order[start : min(start + rows, self._starts[bucket + 1])]

    def __getitem__(self, index: int) -> Batch:
        pairs, shape = self.pairs(index), self.shape(index)
        rows = np.full(shape.rows, -1, dtype=np.int64)
        rows[: len(pairs)] = pairs
        src, src_lengths = self._store.gather("src", rows, shape.src)  # (B, S)
        labels, lengths = self._store.gather("tgt", rows, shape.tgt)  # (B, T)
        tgt_in = np.full_like(labels, PAD)
        tgt_in[:, 1:] = labels[:, :-1]
        tgt_in[: len(pairs), 0] = START
        labels[np.arange(len(pairs)), lengths[: len(pairs)]] = END
        mask = np.arange(shape.src) < src_lengths[:, None]  # (B, S)
        count, input_map = int(lengths.sum()) + len(pairs), self._store.input_map
        return Batch(src, mask, tgt_in, labels, count, len(pairs), input_map=input_map)

    @property
    def padding_share(self) -> float:
        """The part of all positions, source and target, that is padding."""
        cells: int = sum(self._shapes[bucket].cells for bucket in self._batches[:, 0].tolist())
        return 1.0 - self._real / cells if cells else 0.0


class Batches:
    """A store as batches, epoch after epoch. A position in training is (epoch, index) and nothing else."""

    def __init__(self, store: Store, options: BatchOptions) -> None:
        self.store = store
        self.options = options
        src, tgt = store.lengths()
        tgt += 1
        weights = None if all(weight == 1 for weight in store.weights) else np.array(store.weights)
        pairs = float(weights[store.corpus].sum()) if weights is not None else len(store)
        if not 1 <= pairs < 2**31:
            raise ConfigError(
                f"the weights of the corpora leave {pairs:.3g} pairs an epoch of the {len(store):,}; "
                f"it must be 1 at least, and below {2**31:,}: change each `weight`"
            )
        longest = max(int(src.max()), int(tgt.max()))
        if longest > options.tokens:
            raise ConfigError(
                f"batch.tokens {options.tokens} is smaller than the longest sentence, {longest} tokens; "
                f"raise batch.tokens to at least {longest}, or lower filter.max_tokens"
            )
        self._plan: tuple[int, EpochPlan | PackedPlan] | None = None
        self._tight = store.has_noise or not src.any()  # of plain texts
        if options.pack:
            even = packed_shape(longest, options, monolingual=not src.any())
            self.shapes: tuple[Shape, ...] = (noised_shape(src, tgt, options) if store.has_noise else even,)
            return
        counts = None if weights is None else weights[store.corpus]
        self.shapes = plan_shapes(src, tgt, tokens=options.tokens, limit=options.shapes, weights=counts)
        self._bucket = assign(self.shapes, src, tgt)  # (pairs)
        self._real = src + tgt  # (pairs), positions that are not padding

    def epoch(self, epoch: int) -> EpochPlan | PackedPlan:
        if self._plan is None or self._plan[0] != epoch:
            self._plan = None  # let the old one go before the new one is made
            self._plan = (epoch, self._make(epoch))
        return self._plan[1]

    def _make(self, epoch: int) -> EpochPlan | PackedPlan:
        seed = self.options.seed
        chosen = self._chosen(epoch)  # (n), pair numbers, repeated or left out by weight
        if self.options.pack:
            order = chosen[np.argsort(random_numbers(seed, epoch, 1, len(chosen)), kind="stable")]
            return PackedPlan(self.store.at(epoch), self.shapes[0], order, tight=self._tight)
        buckets = self._bucket[chosen]
        # Sorting by a random key within the bucket shuffles and groups in one go.
        key = random_numbers(seed, epoch, 1, len(chosen)) >> np.uint64(8)
        key |= buckets.astype(np.uint64) << np.uint64(56)
        order = chosen[np.argsort(key, kind="stable")]
        del key
        counts = np.bincount(buckets, minlength=len(self.shapes))
        parts = np.split(order, np.cumsum(counts)[:-1])
        for number, larger, over in move_leftovers(self.shapes, counts.tolist()):
            parts[number], rest = parts[number][: -int(over)], parts[number][-int(over) :]
            parts[larger] = np.concatenate([parts[larger], rest])
        order = np.concatenate(parts)
        starts = np.cumsum([0, *map(len, parts)])
        table = np.array(
            [
                (bucket, place)
                for bucket, part in enumerate(parts)
                for place in range(math.ceil(len(part) / self.shapes[bucket].rows))
            ],
            dtype=np.int64,
        ).reshape(-1, 2)
        table = table[np.argsort(random_numbers(seed, epoch, 2, len(table)), kind="stable")]
        real = int(self._real[order].sum(dtype=np.int64))
        return EpochPlan(self.store.at(epoch), self.shapes, order, starts, table, real)

    def _chosen(self, epoch: int) -> NDArray[np.int32]:
        weights = np.array(self.store.weights)
        everything = np.arange(len(self.store), dtype=np.int32)
        if (weights == 1).all():
            return everything
        whole = np.floor(weights).astype(np.int32)[self.store.corpus]
        chance = ((weights % 1) * 2.0**32).astype(np.uint64)[self.store.corpus]
        times = whole + ((random_numbers(self.options.seed, epoch, 3, len(whole)) >> np.uint64(32)) < chance)
        return np.repeat(everything, times)


LOOKAHEAD = 24  # pairs that are tried where a row is nearly full

Lengths = NDArray[np.int64]


def packed_shape(longest: int, options: BatchOptions, monolingual: bool = False) -> Shape:
    """The one shape of all batches; that of `monolingual` texts has no source."""
    width = max(min(round_up_to_8(options.width), options.tokens), round_up_to_8(longest))
    return Shape(max(1, options.tokens // width), 0 if monolingual else width, width)


def noised_shape(src: NDArray[np.int32], tgt: NDArray[np.int32], options: BatchOptions) -> Shape:
    """The same, of sides that are always as much longer or shorter than each other, as noise makes them."""
    sides, most = (src, tgt), max(src.sum(), tgt.sum())
    whole = packed_shape(max(int(src.max()), int(tgt.max())), options)
    widths = (
        max(round_up_to_8(int(side.max())), round_up_to_8(math.ceil(whole.tgt * side.sum() / most))) for side in sides
    )
    return Shape(whole.rows, *widths)


def round_up_to_8(width: int) -> int:
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


def tight_order(src: Sequence[int], tgt: Sequence[int], shape: Shape) -> NDArray[np.int64]:
    """The order of pairs of these lengths in which rows are full: where the next does not fit, one of those that follow
    may. The first to wait is the first in the next row, so that none waits long."""
    sizes = list(zip(src, tgt, strict=True))
    coming, waiting, order = iter(range(len(sizes))), list[int](), list[int]()
    waiting.extend(islice(coming, LOOKAHEAD))
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
            order = order[tight_order(src[order].tolist(), (tgt[order] + 1).tolist(), shape)]
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
        own, input_map = src != PAD, self._store.input_map
        return Batch(src, own, tgt_in, labels, len(cells), len(pairs), src_places, tgt_places, input_map)

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

        found = np.empty(len(cells), dtype=np.int64)
        # Texts of similar length are gathered together: one long text would pad thousands of short ones.
        kinds = np.frexp(lengths)[1]
        for some in (np.flatnonzero(kinds == kind) for kind in np.unique(kinds)):
            width = int(lengths[some].max())
            texts, _ = self._store.gather(side, self._order[begin:end][some], width)
            own = np.arange(width) < lengths[some][:, None]
            found[((ends - lengths)[some][:, None] + np.arange(width))[own]] = texts[own]
        ids.flat[cells] = found
        return ids, positions, cells

    @property
    def padding_share(self) -> float:
        """The part of all positions, source and target, that is padding."""
        cells = len(self) * self._shape.cells
        return 1.0 - float(sum(side.sum() for side in self._lengths.values())) / cells if cells else 0.0
