"""The key-value cache: what a decoder need not compute twice.

The caller owns the cache and passes it in, so that two requests can share one model. Self-attention keeps the keys and
values of all tokens so far, in memory reserved on first use; cross-attention keeps those of the source.

Beams of a sentence share one memory. Each step stores the new keys of all of them side by side, and `visible` says
which entries are a beam's own past. When beams trade places only that table changes; keys and values never move.

Shapes: B sentences, K beams, H key/value heads, T new tokens, E entries so far, d head width.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.common.arguments import checked
from glassformer.common.errors import InputError

# softmax(q k^T scale + bias) v of q (B, H, T, d), k and v (B, H, E, d), bias, scale; nothing where that is not its task
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, float], Tensor | None]


class Admitted(NamedTuple):
    """What attention needs to know of the tokens just admitted, and of all entries with them."""

    queries: Tensor  # (T) positions of the new tokens
    keys: Tensor  # (E) positions of all entries
    positions: Tensor  # (T), or (B K, T) where padding has pushed the beginning of some text
    visible: Tensor | None  # (B, 1, K, E), where some entry must not be seen


class LayerCache:
    """One block's share: self-attention grows, cross-attention stays."""

    def __init__(self, cache: Cache) -> None:
        self._cache = weakref.ref(cache)  # no circle: what it holds is freed when it is let go
        self.k: Tensor | None = None  # (B, H, max_entries, d)
        self.v: Tensor | None = None
        self.cross: tuple[Tensor, Tensor] | None = None  # (B, H, S, d) twice
        self.cell: Tensor | None = None  # (B, K, D): what a recurrence keeps in their place

    @property
    def cache(self) -> Cache:
        cache = self._cache()
        assert cache is not None
        return cache

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new keys and values (B K, H, T, d) where the cache says; return all up to now."""
        if self.k is None or self.v is None:
            shape = (k.shape[0], k.shape[1], self.cache.max_entries, k.shape[3])
            self.k, self.v = k.new_empty(shape), v.new_empty(shape)  # nothing is read before it is stored
        beams = k.shape[0] // self.k.shape[0]
        if beams > 1:  # (B K, H, 1, d) -> (B, H, K, d)
            k, v = (x.view(-1, beams, x.shape[1], x.shape[3]).transpose(1, 2) for x in (k, v))
        return self.cache.store(self.k, k), self.cache.store(self.v, v)  # (B, H, E, d)


@checked
class Cache:
    """A decoder's memory of the tokens it has seen: one `LayerCache` per block and what they share.

    `capacity` counts tokens of a row. With several `beams`, the first call reads one prompt per sentence; from the
    second on there are K rows per sentence, one token at a time. A stack has its tokens `check`ed and admitted, each of
    its layers has their keys and values `store`d among the `max_entries` reserved.
    """

    def __init__(self, layers: int, capacity: int, beams: int = 1) -> None:
        if capacity < 1:
            raise InputError(f"a cache for {capacity} tokens holds nothing; give the longest output to be decoded")
        self.capacity, self.beams = capacity, beams
        self.length = self.prompt = 0  # tokens so far, and those that the beams of a sentence have in common
        self.batch: int | None = None  # sentences
        self.place = slice(0, 0)  # of the newest entries
        self.visible: Tensor | None = None  # (B, K, E)
        self.padded = False
        self.attend: Attend | None = None  # an owner may know a faster way to attend to what it holds
        self.layers = [LayerCache(self) for _ in range(layers)]

    @property
    def max_entries(self) -> int:
        return self.prompt + (self.capacity - self.prompt) * self.beams

    def check(self, ids: Tensor, layers: int) -> None:
        rows, new = ids.shape
        if len(self.layers) != layers:
            raise InputError(f"the cache was made for {len(self.layers)} layers but the model has {layers}")
        if self.batch is not None and rows != self.batch * self.beams:
            raise InputError(f"the cache holds a batch of {self.batch * self.beams} sequences but {rows} were given")
        if self.beams > 1 and self.batch is not None and new > 1:
            raise InputError(f"beams take one token at a time; {new} were given to each")
        if self.length + new > self.capacity:
            raise InputError(
                f"the cache holds {self.length} of at most {self.capacity} tokens; {new} more do not fit: "
                f"make it with a capacity of {self.length + new} or more"
            )

    def admit(self, ids: Tensor, mask: Tensor | None) -> Admitted:
        """Make place for new tokens, `mask` telling those that are real."""
        rows, new = ids.shape
        if self.batch is None:
            self.batch, self.prompt = rows, new
        beams = rows // self.batch if self.batch else 1
        start = self.place.stop
        self.length += new
        self.place = slice(start, start + new * beams)
        keys = torch.arange(self.place.stop, device=ids.device)
        if beams > 1:
            keys = torch.where(keys < self.prompt, keys, self.prompt + (keys - self.prompt) // beams)
        queries = torch.arange(self.length - new, self.length, device=ids.device)
        self.padded = self.padded or mask is not None
        if self.padded or beams > 1:
            past = ids.new_ones((self.batch, 1, start), dtype=torch.bool) if self.visible is None else self.visible
            if beams > 1:  # each beam sees its own newest token
                newest = torch.eye(beams, dtype=torch.bool, device=ids.device).expand(self.batch, beams, beams)
            else:
                newest = (torch.ones_like(ids, dtype=torch.bool) if mask is None else mask).unsqueeze(1)
            self.visible = torch.cat((past.expand(-1, beams, -1), newest), dim=2)
        positions = queries
        if self.padded and self.visible is not None:  # a text starts at its first real token
            first = self.visible[:, 0].int().argmax(1, keepdim=True).repeat_interleave(beams, 0)
            positions = (queries - first).clamp_min(0)
        return Admitted(queries, keys, positions, None if self.visible is None else self.visible.unsqueeze(1))

    def store(self, entries: Tensor, new: Tensor) -> Tensor:
        entries[:, :, self.place] = new
        return entries[:, :, : self.place.stop]

    def follow(self, origin: Tensor) -> None:
        """Let beam i of each sentence continue from what was beam `origin[:, i]`."""
        self.visible = trade_places(self.visible, origin)
        for layer in self.layers:
            layer.cell = trade_places(layer.cell, origin)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only."""
        self.batch = sentences.shape[0]
        self.visible = None if self.visible is None else self.visible.index_select(0, sentences)
        for layer in self.layers:
            own = layer.k, layer.v, layer.cell
            layer.k, layer.v, layer.cell = (one if one is None else one.index_select(0, sentences) for one in own)
            if layer.cross is not None:
                layer.cross = layer.cross[0].index_select(0, sentences), layer.cross[1].index_select(0, sentences)


def trade_places(beams: Tensor | None, origin: Tensor) -> Tensor | None:
    """Of each sentence's beams (B, K, ...), those that `origin` (B, K) names; one row is still that of all."""
    if beams is None or beams.shape[1] == 1:
        return beams
    return beams.gather(1, origin.unsqueeze(2).expand(-1, -1, beams.shape[2]))
