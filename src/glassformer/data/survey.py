"""What a corpus is like before anything is made of it: sizes, lengths, oddities, overlap between splits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

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
    counts = {"pairs": 0, "empty": 0, "outliers": 0, "characters": 0}
    longest, longest_at = 0, 0
    sources: list[NDArray[np.uint64]] = []
    whole: list[NDArray[np.uint64]] = []
    for corpus in corpora:
        pairs = read_pairs(corpus)
        while chunk := list(islice(pairs, CHUNK)):
            if corpus.monolingual:  # a text is its own partner
                chunk = [(text, text) for _, text in chunk]
            lengths = np.array([(len(a), len(b)) for a, b in chunk])
            shorter, longer = lengths.min(1), lengths.max(1)
            if longer.max() > longest:
                longest, longest_at = int(longer.max()), counts["pairs"] + int(longer.argmax()) + 1
            counts["pairs"] += len(chunk)
            counts["empty"] += sum(not a.strip() or not b.strip() for a, b in chunk)
            counts["outliers"] += int(((shorter > 0) & (longer > RATIO * shorter + SLACK)).sum())
            counts["characters"] += int(lengths.sum())
            sources.append(_hashes((source, "") for source, _ in chunk))
            whole.append(_hashes(chunk))
            if progress is not None:
                progress(counts["pairs"])
    return Survey(
        pairs=counts["pairs"],
        empty=counts["empty"],
        mean_length=counts["characters"] / 2 / counts["pairs"],
        longest=longest,
        longest_at=longest_at,
        outliers=counts["outliers"],
        repeated=counts["pairs"] - len(np.unique(np.concatenate(whole))),
        hashes=np.unique(np.concatenate(sources)),
    )


def _hashes(pairs: Iterable[Pair]) -> NDArray[np.uint64]:
    """A hash of eight bytes for each text, so that ten million of them fit into memory."""

    def digest(pair: Pair) -> int:
        text = "\t".join(pair).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

    return np.fromiter(map(digest, pairs), np.uint64)
