"""Texts with something missing, and what is missing: how a model learns from plain texts alone.

    TokenMasking    some tokens are hidden; the target tells each one in its place              (BERT)
    SpanCorruption  runs of tokens are hidden behind a sentinel each; the target tells them     (T5)
    TextInfilling   runs of tokens, empty ones too, become one gap each, sentences change       (BART)
               places; the target is the text

The lengths of both sides depend on the text's length alone, so that batches can be planned. What is hidden depends on
the seed, the epoch and the text's number alone, so that an interrupted run hides the same.

Shapes: B texts, W tokens of the longest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from glassformer.data.vocabulary import BYTES, END, PAD, SPECIAL, START

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
Uniform = Callable[[int], NDArray[np.float64]]  # the number of a use to (B, W) numbers in [0, 1)

STOPS = tuple(".!?。！？")
HIDDEN, REPLACED = 0.8, 0.1  # of the chosen tokens; the others stay as they are


class Noise(Protocol):
    def lengths(self, lengths: Ids) -> tuple[Ids, Ids]:
        """How long source and target of texts of these lengths are, without a target's start and end."""
        ...

    def __call__(self, texts: Ids, lengths: Ids, chance: Uniform) -> tuple[Ids, Ids]:
        """Source and target of texts (B, W), each padded to some width of its own."""
        ...


def sentinel(number: int) -> str:
    return f"<extra_id_{number}>"


def text_pieces(pieces: dict[int, str]) -> dict[int, str]:
    """The pieces that are learnt from texts: no special ones, and no bytes."""
    return {id: piece for id, piece in pieces.items() if piece not in BYTES and not SPECIAL.fullmatch(piece)}


def sentence_ends(pieces: dict[int, str]) -> Ids:
    """Those that end a sentence."""
    return np.array([id for id, piece in text_pieces(pieces).items() if piece[-1:] in STOPS], dtype=np.int64)


def hidden_count(lengths: Ids, share: float) -> Ids:
    """How many tokens of a text are hidden: one at least."""
    found: Ids = np.maximum(1, np.rint(lengths * share).astype(np.int64))
    return found


def run_count(hidden: Ids, mean: float) -> Ids:
    """How many runs so many hidden tokens make."""
    found: Ids = np.maximum(1, np.rint(hidden / mean).astype(np.int64))
    return found


@dataclass(frozen=True)
class TokenMasking:
    """The source is start, text, end; the target has the chosen tokens, and padding where nothing is asked."""

    mask: int
    others: Ids  # the pieces that a replaced token may become
    share: float = 0.15

    def lengths(self, lengths: Ids) -> tuple[Ids, Ids]:
        return lengths + 2, lengths + 1

    def __call__(self, texts: Ids, lengths: Ids, chance: Uniform) -> tuple[Ids, Ids]:
        chosen = select_lowest(chance(0), length_mask(texts, lengths), hidden_count(lengths, self.share))
        fate, other = chance(1), self.others[(chance(2) * len(self.others)).astype(np.int64)]
        seen = np.where(chosen & (fate < HIDDEN), self.mask, texts)
        seen = np.where(chosen & (fate >= HIDDEN) & (fate < HIDDEN + REPLACED), other, seen)
        asked = np.where(chosen, texts, PAD)
        source = np.full((len(texts), texts.shape[1] + 2), PAD, dtype=np.int64)
        source[:, 0], source[:, 1:-1] = START, seen
        source[np.arange(len(texts)), lengths + 1] = END
        return source, np.pad(asked, ((0, 0), (1, 0)), constant_values=PAD)


@dataclass(frozen=True)
class SpanCorruption:
    sentinels: Ids
    share: float = 0.15
    mean: float = 3.0

    def sizes(self, lengths: Ids) -> tuple[Ids, Ids]:
        """How many tokens are hidden, and in how many runs: one token is left, and one between any two runs."""
        hidden = np.minimum(hidden_count(lengths, self.share), np.maximum(1, lengths - 1))
        return hidden, np.maximum(1, np.minimum(run_count(hidden, self.mean), lengths - hidden))

    def lengths(self, lengths: Ids) -> tuple[Ids, Ids]:
        hidden, spans = self.sizes(lengths)
        return lengths - hidden + spans, hidden + spans

    def __call__(self, texts: Ids, lengths: Ids, chance: Uniform) -> tuple[Ids, Ids]:
        hidden, spans = self.sizes(lengths)
        noise, begins = self.hide(texts, lengths, hidden, spans, chance)
        real = length_mask(texts, lengths)
        marks = self.sentinels[np.maximum(0, np.cumsum(begins, 1) - 1)]  # (B, W)
        source = compact(np.where(begins, marks, texts), real & (begins | ~noise))
        both = np.stack((marks, texts), 2).reshape(len(texts), -1)  # (B, 2 W): a mark before every token
        return source, compact(both, np.stack((begins, noise), 2).reshape(len(texts), -1))

    @staticmethod
    def hide(texts: Ids, lengths: Ids, hidden: Ids, spans: Ids, chance: Uniform) -> tuple[Flags, Flags]:
        """Which tokens are hidden, and where their runs begin: each run lies in a gap of its own between kept tokens,
        before the first of them or behind the last."""
        place = np.arange(texts.shape[1])
        kept = (lengths - hidden)[:, None]
        later = place >= kept  # tokens as they are dealt out: first those that are kept, then those that are hidden
        gaps = select_lowest(chance(0), place <= kept, spans)
        borders = select_lowest(chance(1), (place > kept) & length_mask(texts, lengths), spans - 1)
        run = np.where(later, np.cumsum(borders, 1), np.cumsum(gaps, 1))  # of a kept token, how many lie before it
        key = np.where(length_mask(texts, lengths), 2 * run + later, 2 * texts.shape[1] + 2)
        order = np.argsort(key, 1, kind="stable")
        noise = np.take_along_axis(later & length_mask(texts, lengths), order, 1)
        begins = noise & ~np.pad(noise, ((0, 0), (1, 0)))[:, :-1]
        return noise, begins


@dataclass(frozen=True)
class TextInfilling:
    """A given number of hidden tokens is dealt to a given number of runs as Poisson's law does, given their sum."""

    mask: int
    ends: Ids  # the pieces that end a sentence
    share: float = 0.3
    mean: float = 3.0

    def lengths(self, lengths: Ids) -> tuple[Ids, Ids]:
        hidden = hidden_count(lengths, self.share)
        return lengths - hidden + run_count(hidden, self.mean), lengths

    def __call__(self, texts: Ids, lengths: Ids, chance: Uniform) -> tuple[Ids, Ids]:
        hidden = hidden_count(lengths, self.share)
        spans = run_count(hidden, self.mean)
        shuffled = self.shuffle(texts, lengths, chance)
        place = np.arange(texts.shape[1])
        owner = (chance(1) * spans[:, None]).astype(np.int64)  # the run of each hidden token
        tokens = np.zeros((len(texts), texts.shape[1] + 1), dtype=np.int64)  # hidden by all runs before the n-th
        for run in range(int(spans.max(initial=0))):
            tokens[:, run + 1] = tokens[:, run] + ((owner == run) & (place < hidden[:, None])).sum(1)
        slots = (lengths - hidden + spans)[:, None]
        gap = select_lowest(chance(2), place < slots, spans)
        before: Ids = np.cumsum(gap, 1) - gap  # runs before each slot
        taken = place - before + np.take_along_axis(tokens, before, 1)
        kept = np.take_along_axis(shuffled, np.minimum(taken, texts.shape[1] - 1), 1)
        return np.where(place < slots, np.where(gap, self.mask, kept), PAD), texts

    def shuffle(self, texts: Ids, lengths: Ids, chance: Uniform) -> Ids:
        """The sentences of each text in another order."""
        ended = np.isin(texts, self.ends)
        sentence: Ids = np.cumsum(ended, 1) - ended
        key = np.where(length_mask(texts, lengths), np.take_along_axis(chance(0), sentence, 1), 2.0)
        return np.take_along_axis(texts, np.argsort(key, 1, kind="stable"), 1)


def length_mask(texts: Ids, lengths: Ids) -> Flags:
    found: Flags = np.arange(texts.shape[1]) < lengths[:, None]
    return found


def select_lowest(numbers: NDArray[np.float64], among: Flags, counts: Ids) -> Flags:
    """The places of the `counts` lowest of each row's numbers, of those that are `among` them."""
    order = np.argsort(np.where(among, numbers, 2.0), 1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None], 1)
    found: Flags = among & (rank < counts[:, None])
    return found


def compact(values: Ids, kept: Flags) -> Ids:
    """What is kept of each row, moved to its beginning."""
    moved = np.take_along_axis(np.where(kept, values, PAD), np.argsort(~kept, 1, kind="stable"), 1)
    return moved[:, : int(kept.sum(1).max(initial=0))]
