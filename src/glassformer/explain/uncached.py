"""Decoding that reads the whole target anew at every step.

A cache keeps what a token's layers have computed, which holds only as long as no token sees a later one. Without the
causal mask every new token changes all before it, so a changed model has to compute them again.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glassformer.model import Cache, DecoderOnly, EncoderDecoder


class TokenCache(Cache):
    """Holds the tokens themselves."""

    def __init__(self, capacity: int, beams: int) -> None:
        super().__init__(0, capacity, beams)
        self.ids: Tensor | None = None  # (B, L), or (B K, L) from the second step on
        self.real: Tensor | None = None  # (1, P): the prompt's mask; one sentence is traced at a time

    def extend(self, ids: Tensor) -> Tensor:
        """All tokens so far."""
        if self.ids is not None:
            before = self.ids.repeat_interleave(ids.shape[0] // self.ids.shape[0], 0)
            ids = torch.cat((before, ids), dim=1)
        self.ids = ids
        return ids

    def follow(self, origin: Tensor) -> None:
        if self.ids is not None and self.ids.shape[0] == origin.numel():
            first = torch.arange(origin.shape[0], device=origin.device).unsqueeze(1) * self.beams
            self.ids = self.ids[(first + origin).flatten()]

    def keep(self, sentences: Tensor) -> None:
        if self.ids is not None:
            self.ids = self.ids.unflatten(0, (-1, self.beams))[sentences].flatten(0, 1)


class Uncached(nn.Module):
    """A model's own parts, its decoder reading all tokens at every step."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        nn.Module.__init__(self)
        self.config = model.config
        for name, part in model.named_children():
            self.add_module(name, part)

    def new_cache(self, capacity: int, beams: int = 1) -> Cache:
        return TokenCache(capacity, beams)


class UncachedEncoderDecoder(Uncached, EncoderDecoder):
    def decode(self, tgt: Tensor, memory: Tensor, src_mask: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        if isinstance(cache, TokenCache):
            tgt, cache = cache.extend(tgt), None
        return super().decode(tgt, memory, src_mask, cache)


class UncachedDecoderOnly(Uncached, DecoderOnly):
    def forward(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        places: Tensor | None = None,
    ) -> Tensor:
        if isinstance(cache, TokenCache):
            prompt = mask if mask is not None else cache.real
            ids = cache.extend(ids)
            if prompt is not None:
                cache.real = prompt
                written = prompt.new_ones(ids.shape[0], ids.shape[1] - prompt.shape[1])
                mask = torch.cat((prompt.expand(ids.shape[0], -1), written), dim=1)
            cache = None
        return super().forward(ids, mask, cache, places)


def uncached(model: EncoderDecoder | DecoderOnly) -> EncoderDecoder | DecoderOnly:
    """The model with the same parts that decodes without a cache."""
    return UncachedEncoderDecoder(model) if isinstance(model, EncoderDecoder) else UncachedDecoderOnly(model)
