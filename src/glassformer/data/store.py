"""The corpus as ids on disk, made once and read through memory maps.

A store is a folder: `src.bin` and `tgt.bin` hold all ids end to end, `src.offsets.bin` and `tgt.offsets.bin` where each
sentence starts (and the last one ends), `corpus.bin` which corpus a pair came from, `meta.json` the rest. What is in
memory at any time is one chunk of text while preparing, and a few bytes per pair afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.common.errors import DataError
from glassformer.data.noise import Noise
from glassformer.data.randomness import uniform
from glassformer.data.vocabulary import PAD, InputMap

VERSION = 2
META = "meta.json"
SIDES = ("src", "tgt")
OFFSET = np.dtype("<i8")
NUMBER = np.dtype("<u2")  # of a corpus
NOISE = 16  # the first use of random numbers that is the noise's; batches have those before

Ids = NDArray[np.int64]
Indices = NDArray[np.int64] | NDArray[np.int32] | Sequence[int]


class Store:
    """A prepared corpus. `weights` says how often the pairs of each corpus are seen per epoch."""

    def __init__(
        self, folder: str | Path, weights: Sequence[float] | None = None, input_map: InputMap | None = None
    ) -> None:
        self.folder = Path(folder)
        meta = read_meta(self.folder)
        if meta is None:
            raise DataError(f"{self.folder} is not a prepared corpus of this version; prepare it again")
        self.pairs: int = meta["pairs"]
        self.report: dict[str, int] = meta["report"]

        self._noise: tuple[Noise, int, int] | None = None  # and the seed and the epoch that it is drawn by
        self.input_map = input_map  # to the ids of a model that has others
        self.weights = tuple(weights) if weights is not None else (1.0,) * meta["corpora"]
        assert len(self.weights) == meta["corpora"]
        ids = np.dtype(meta["dtype"])
        # Plain views of the maps: indexing an np.memmap makes a new map object every time.
        self._ids = {side: self._map(f"{side}.bin", ids) for side in SIDES}
        self._offsets = {side: self._map(f"{side}.offsets.bin", OFFSET) for side in SIDES}
        self.corpus = self._map("corpus.bin", NUMBER)
        for side in SIDES:
            offsets = self._offsets[side]
            if len(offsets) != self.pairs + 1 or offsets[-1] != len(self._ids[side]) or len(self.corpus) != self.pairs:
                raise DataError(
                    f"{self.folder}: the {side} files do not fit {META}; delete the folder and prepare again"
                )

    def _map(self, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        try:
            path = self.folder / name
            # Of plain texts, the sources are an empty file, of which there is no map.
            return np.asarray(np.memmap(path, dtype=dtype, mode="r")) if path.stat().st_size else np.empty(0, dtype)
        except (OSError, ValueError) as error:
            raise DataError(
                f"{self.folder / name} cannot be read ({error}); delete the folder and prepare again"
            ) from None

    def __len__(self) -> int:
        return self.pairs

    def with_noise(self, noise: Noise, seed: int, epoch: int = 0) -> Store:
        """The same texts as pairs: the noised text, and what the model must predict."""
        other = copy(self)
        other._noise = (noise, seed, epoch)
        return other

    @property
    def has_noise(self) -> bool:
        return self._noise is not None

    def at(self, epoch: int) -> Store:
        """The store with the noise of an epoch."""
        return self if self._noise is None else self.with_noise(*self._noise[:2], epoch)

    def lengths(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """How many ids each source and each target has, without start and end."""
        src, tgt = (np.diff(self._offsets[side]) for side in SIDES)
        if self._noise is not None:
            src, tgt = self._noise[0].lengths(tgt)
        return src.astype(np.int32), tgt.astype(np.int32)

    def pair(self, index: int) -> tuple[list[int], list[int]]:
        if not 0 <= index < self.pairs:
            raise IndexError(f"pair {index} of a store of {self.pairs}")
        src, tgt = (
            self._ids[side][self._offsets[side][index] : self._offsets[side][index + 1]].tolist() for side in SIDES
        )
        return src, tgt

    def gather(self, side: str, indices: Indices, width: int) -> tuple[Ids, Ids]:
        """The sources ("src") or targets ("tgt") of `indices`, padded: ids (B, width) and lengths (B). A negative index
        is an empty row."""
        if self._noise is None:
            return self._gather(side, indices, width)
        (noise, seed, epoch), place = self._noise, SIDES.index(side)
        rows = np.asarray(indices, dtype=np.int64)
        real = rows[rows >= 0]
        counts = self._offsets["tgt"][real + 1] - self._offsets["tgt"][real]
        texts, _ = self._gather("tgt", real, int(counts.max(initial=1)))
        made = noise(texts, counts, lambda use: uniform(seed, epoch, NOISE + use, real, texts.shape[1]))[place]
        lengths = np.zeros(len(rows), dtype=np.int64)
        lengths[rows >= 0] = noise.lengths(counts)[place]
        out = np.full((len(rows), width), PAD, dtype=np.int64)
        out[np.flatnonzero(rows >= 0), : made.shape[1]] = made[:, :width]
        return out, lengths

    def _gather(self, side: str, indices: Indices, width: int) -> tuple[Ids, Ids]:
        rows = np.asarray(indices, dtype=np.int64)
        real = rows >= 0
        rows = np.where(real, rows, 0)
        offsets = self._offsets[side]
        starts = offsets[rows]  # (B)
        lengths = np.where(real, offsets[rows + 1] - starts, 0)  # (B)
        assert lengths.max(initial=0) <= width
        cells = np.arange(width) < lengths[:, None]  # (B, width)
        out = np.full(cells.shape, PAD, dtype=np.int64)
        # Row after row, the n-th true cell takes the n-th id; each id lies its column behind its row's start.
        ends = np.cumsum(lengths)
        columns = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
        out[cells] = self._ids[side][np.repeat(starts, lengths) + columns]
        return out, lengths


def read_meta(folder: Path) -> dict[str, Any] | None:
    """The store's description, or None where there is no readable store of this version."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return meta if isinstance(meta, dict) and meta.get("version") == VERSION else None
