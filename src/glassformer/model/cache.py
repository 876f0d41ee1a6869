"""What a decoder need not compute twice.

The caller owns the cache and hands it in, so that two requests can share one model. Self-attention keeps the keys and
values of every token so far, in memory reserved on first use; cross-attention keeps those of the source,
projected once.

Shapes: B batch, H key/value heads, T new tokens, S source, L tokens so far, C capacity, d head width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.errors import InputError


class LayerCache:
    """One block's share: self-attention grows, cross-attention stays."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.k: Tensor | None = None  # (B, H, C, d)
        self.v: Tensor | None = None
        self.cross: tuple[Tensor, Tensor] | None = None  # (B, H, S, d) twice

    def append(self, k: Tensor, v: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Store the new keys and values at `start`; return all up to now."""
        if self.k is None or self.v is None:
            shape = (k.shape[0], k.shape[1], self.capacity, k.shape[3])
            self.k, self.v = k.new_zeros(shape), v.new_zeros(shape)
        end = start + k.shape[2]
        self.k[:, :, start:end] = k
        self.v[:, :, start:end] = v
        return self.k[:, :, :end], self.v[:, :, :end]  # (B, H, L, d)


class Cache:
    """A decoder's memory of the tokens it has seen: one `LayerCache` per block and the length they share."""

    def __init__(self, layers: int, capacity: int) -> None:
        if capacity < 1:
            raise InputError(f"a cache for {capacity} tokens holds nothing; give the longest output to be decoded")
        self.capacity = capacity
        self.length = 0
        self.layers = [LayerCache(capacity) for _ in range(layers)]
        self.batch: int | None = None
        self.mask: Tensor | None = None  # (B, L), when some token so far is padding

    def check(self, ids: Tensor, layers: int) -> None:
        if len(self.layers) != layers:
            raise InputError(f"the cache was made for {len(self.layers)} layers but the model has {layers}")
        if self.batch not in (None, ids.shape[0]):
            raise InputError(f"the cache holds a batch of {self.batch} sequences but {ids.shape[0]} were given")
        if self.length + ids.shape[1] > self.capacity:
            raise InputError(
                f"the cache holds {self.length} of at most {self.capacity} tokens; {ids.shape[1]} more do not fit: "
                f"make it with a capacity of {self.length + ids.shape[1]} or more"
            )

    def remember(self, ids: Tensor, mask: Tensor | None) -> Tensor | None:
        """Take note of the new tokens' padding; return the mask of all tokens so far, those included."""
        self.batch = ids.shape[0]
        if mask is None and self.mask is None:
            return None
        before = self.mask if self.mask is not None else ids.new_ones(self.batch, self.length, dtype=torch.bool)
        new = mask if mask is not None else torch.ones_like(ids, dtype=torch.bool)
        self.mask = torch.cat((before, new), dim=1)
        return self.mask

    def reorder(self, rows: Tensor, sources: Tensor | None = None) -> None:
        """Let row i continue from what was row `rows[i]`, as beam search asks.

        The rows of a source share its cross-attention, which moves only when `sources` says which of them stay.
        """
        self.batch = rows.shape[0]
        if self.mask is not None:
            self.mask = self.mask.index_select(0, rows)
        for layer in self.layers:
            if layer.k is not None and layer.v is not None:
                layer.k, layer.v = layer.k.index_select(0, rows), layer.v.index_select(0, rows)
            if layer.cross is not None and sources is not None:
                k, v = layer.cross
                layer.cross = (k.index_select(0, sources), v.index_select(0, sources))
