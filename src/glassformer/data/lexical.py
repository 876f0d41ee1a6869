"""Which words translate which (IBM model 1, learned from a sample), and how well the words of a pair fit together.

The score of a pair is the mean, over the known words of both sides, of log p(word | other side) / p(word): about 0
for sentences that have nothing to do with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Words = Sequence[str]
Array = NDArray[Any]

CELLS = 20_000_000  # pairs of words in the same pair of sentences: what training looks at
LEAST_PAIRS = 2_000  # fewer teach nothing
ROUNDS = 4
WORDS = 1 << 16  # of each side
LONGEST = 40  # words of a side that are looked at
SLOTS = 22  # bits: the table holds one entry in each slot, the likelier of two
LEAST = 0.01  # probability that is kept
KNOWN = 3  # words a side needs for a score
TRUST = 0.9  # in the table; the rest falls to how common the word is
MOST = 4.0  # what one word may add


@dataclass(frozen=True)
class Cells:
    """Every pairing of a word of the source with one of the target, in all pairs of sentences, flat."""

    ids: tuple[Array, Array]  # the words of all sentences, end to end
    lengths: tuple[Array, Array]
    places: tuple[Array, Array]  # of each pairing: the places of its two words in `ids`

    @property
    def keys(self) -> Array:
        source, target = (ids[places] for ids, places in zip(self.ids, self.places, strict=True))
        return cast(Array, source << np.uint32(16) | target)


def pair_words(ids: tuple[list[list[int]], list[list[int]]]) -> Cells:
    flat = [np.fromiter(chain.from_iterable(side), np.uint32) for side in ids]
    sources, targets = (np.array([len(sentence) for sentence in side], np.int32) for side in ids)
    counts = sources * targets
    number = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    inside = np.arange(len(number), dtype=np.int32) - np.repeat(np.cumsum(counts) - counts, counts).astype(np.int32)
    row = inside // targets[number]
    starts = [(np.cumsum(lengths) - lengths).astype(np.int32) for lengths in (sources, targets)]
    places = (starts[0][number] + row, starts[1][number] + inside - row * targets[number])
    return Cells((flat[0], flat[1]), (sources, targets), places)


@dataclass(frozen=True)
class LexicalModel:
    vocabularies: Sequence[dict[str, int]]
    frequencies: Sequence[Array]
    keys: Array  # of a slot: source word and target word
    probabilities: Sequence[Array]  # of the source word given the target word, and the other way

    def score(self, pairs: Sequence[Sequence[Words]]) -> Array:
        """A score for each pair; not a number where too few words are known."""
        parts = [self._score(pairs[start : start + 2000]) for start in range(0, len(pairs), 2000)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _score(self, pairs: Sequence[Sequence[Words]]) -> Array:
        cells = pair_words(known_ids(pairs, self.vocabularies))
        keys = cells.keys
        slots = slots_of(keys)
        there = self.keys[slots] == keys
        total = np.zeros(len(pairs))
        for side in (0, 1):
            ids, frequencies, lengths = cells.ids[side], self.frequencies[side], cells.lengths[side]
            found = np.where(there, self.probabilities[side][slots], 0)
            sums = np.bincount(cells.places[side], found, len(ids))
            others = np.repeat(np.maximum(cells.lengths[1 - side], 1), lengths)
            gain = np.log(TRUST * sums / others / frequencies[ids] + 1 - TRUST)
            sentence = np.repeat(np.arange(len(pairs)), lengths)
            total += np.bincount(sentence, np.minimum(gain, MOST), len(pairs)) / np.maximum(lengths, 1)
        return np.where(np.minimum(*cells.lengths) >= KNOWN, total / 2, np.nan)


def known_ids(pairs: Sequence[Sequence[Words]], vocabularies: Sequence[dict[str, int]]) -> Any:
    return tuple(
        [[known[word] for word in pair[side][:LONGEST] if word in known] for pair in pairs]
        for side, known in enumerate(vocabularies)
    )


def slots_of(keys: Array) -> Array:
    return cast(Array, (keys * np.uint32(2654435761)) >> np.uint32(32 - SLOTS))


def learn(pairs: Sequence[Sequence[Words]]) -> LexicalModel | None:
    """A model of as many of the pairs as are needed; none where they are too few."""
    if len(pairs) < LEAST_PAIRS:
        return None
    sizes = np.cumsum([min(len(a), LONGEST) * min(len(b), LONGEST) for a, b in pairs])
    pairs = pairs[: int(np.searchsorted(sizes, CELLS)) + 1]
    counts = [Counter(chain.from_iterable(pair[side] for pair in pairs)) for side in (0, 1)]
    common = [[(w, n) for w, n in count.most_common(WORDS) if n > 1] for count in counts]
    vocabularies = [{word: number for number, (word, _) in enumerate(side)} for side in common]
    frequencies = [np.array([n for _, n in side], float) for side in common]
    cells = pair_words(known_ids(pairs, vocabularies))
    keys, entry = np.unique(cells.keys, return_inverse=True)
    if not len(keys):
        return None
    given = (keys & np.uint32(0xFFFF), keys >> np.uint32(16))
    tables = list[Array]()
    for side in (0, 1):
        table: Array = np.ones(len(keys))
        for _ in range(ROUNDS):
            shares = table[entry]
            shares /= np.bincount(cells.places[side], shares)[cells.places[side]]
            table = np.bincount(entry, shares)
            table = table / np.bincount(given[side], table)[given[side]]
        tables.append(table)
    best = np.maximum(*tables)
    order = np.argsort(best, kind="stable")  # of two entries in one slot the later one, the likelier, remains
    order = order[best[order] > LEAST]
    slots = slots_of(keys[order])
    held = np.full(1 << SLOTS, 0xFFFFFFFF, np.uint32)
    held[slots] = keys[order]
    packed = [np.zeros(1 << SLOTS, np.float32) for _ in tables]
    for column, table in zip(packed, tables, strict=True):
        column[slots] = table[order]
    return LexicalModel(vocabularies, [n / n.sum() for n in frequencies], held, packed)
