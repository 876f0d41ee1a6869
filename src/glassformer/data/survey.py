"""What a corpus is like before anything is made of it: sizes, lengths, oddities, overlap between splits."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Corpus, Pair
from glassformer.data.readers import read_pairs

CHUNK = 50_000
RATIO = 3.0  # one side more than this many times as long as the other, and SLACK characters more, is an oddity
SLACK = 30


@dataclass(frozen=True)
class Survey:
    """One split. Lengths are in characters."""

    pairs: int
    empty: int
    mean_length: float
    longest: int
    longest_at: int  # the number of the pair, counted from 1
    outliers: int
    repeated: int  # pairs that occur in the split more than once
    hashes: NDArray[np.uint64]  # of the different sources, for comparison with other splits

    def shared(self, other: Survey) -> int:
        """How many different sources are in both."""
        return len(np.intersect1d(self.hashes, other.hashes, assume_unique=True))


def survey(corpora: Sequence[Corpus], progress: Callable[[int], None] | None = None) -> Survey:
    lengths, sources, whole, empty = array("i"), array("Q"), array("Q"), 0
    for number, (source, target) in enumerate(chain.from_iterable(map(_texts, corpora)), 1):
        lengths.extend((len(source), len(target)))
        sources.append(_hash(source))
        whole.append(_hash(f"{source}\t{target}"))
        empty += not source.strip() or not target.strip()
        if progress is not None and number % CHUNK == 0:
            progress(number)
    sides = np.array(lengths).reshape(-1, 2)
    shorter, longer = sides.min(1), sides.max(1)
    return Survey(
        pairs=len(sides),
        empty=empty,
        mean_length=float(sides.mean()),
        longest=int(longer.max()),
        longest_at=int(longer.argmax()) + 1,
        outliers=int(((shorter > 0) & (longer > RATIO * shorter + SLACK)).sum()),
        repeated=len(sides) - len(np.unique(whole)),
        hashes=np.unique(sources),
    )


def _texts(corpus: Corpus) -> Iterator[Pair]:
    """Its pairs; a text without a partner is its own."""
    return ((text, text) for _, text in read_pairs(corpus)) if corpus.monolingual else read_pairs(corpus)


def _hash(text: str) -> int:
    """A hash of eight bytes, so that ten million of them fit into memory."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
