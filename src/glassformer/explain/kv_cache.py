"""Decoding with a key/value cache and without one: what the cache holds at every step, what it saves, whether it
changes anything; and a model that decodes without it.

A cache keeps what a token's layers have computed, which holds only as long as no token sees a later one. Without the
causal mask every new token changes all before it, so a changed model has to compute them again.

Shapes: L tokens read so far, S source, T target, P prompt, K beams, D model width, d head width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from glassformer.model import Cache, DecoderOnly, EncoderDecoder, EncoderOnly, Model
from glassformer.model.config import ModelConfig

ROUNDING = 1e-4  # of the largest logit: more than single precision can come to by another order of its sums


def is_causal(model: Model) -> bool:
    """Whether no token sees a later one: then one pass over the output shows what every step saw, and a cache holds."""
    return isinstance(model, EncoderOnly) or model.decoder.causal


@torch.no_grad()
def cache_steps(
    model: Model, memory: Tensor | None, mask: Tensor, tokens: list[int], prompt: int, logits: Tensor
) -> dict[str, Any] | None:
    """Read the output again token by token with a cache, and compare with the `logits` (steps, V) of the run.

    `tokens`: all that the decoder reads, the first `prompt` of them at once. `used`: whether the run used a cache.
    `equal`: up to rounding, the cache makes no difference.
    """
    if isinstance(model, EncoderOnly):
        return None
    ids = torch.tensor([tokens], device=mask.device)
    cache = Cache(len(model.decoder.blocks), ids.shape[1])
    config, apart = model.config.decoder, 0.0
    rows = []
    for step, end in enumerate(range(prompt, ids.shape[1] + 1)):
        fresh = ids[:, cache.length : end]
        if isinstance(model, EncoderDecoder):
            assert memory is not None
            cached = model.decode(fresh, memory, mask, cache)
        else:
            cached = model(fresh, mask if step == 0 else None, cache)
        apart = max(apart, float((cached[0, -1].float().cpu() - logits[step]).abs().max()))
        cross = [0 if layer.cross is None else layer.cross[0].shape[2] for layer in cache.layers]
        source = max(cross, default=0)
        sizes = {"step": step, "self": [cache.length] * len(cache.layers), "cross": cross}
        saved = multiply_adds(config, end, fresh.shape[1], source, first=step == 0)
        rows.append(sizes | {"with": saved, "without": multiply_adds(config, end, end, source, first=True)})
    equal = apart <= ROUNDING * max(1.0, float(logits.abs().max()))
    return {"steps": rows, "max_difference": apart, "equal": equal, "used": is_causal(model)}


def multiply_adds(config: ModelConfig, keys: int, queries: int, source: int, first: bool) -> int:
    """Of one decoder step that reads `queries` new tokens beside `keys - queries` known ones.

    `first`: the source's keys and values are projected too. The logits are counted for the newest token only, which
    is all that a step needs. Additions of biases and residuals, norms and softmax are left out.
    """
    wide = config.heads * config.d_head
    narrow = (config.kv_heads or config.heads) * config.d_head
    D = config.d_model
    layer = queries * (D * (wide + 2 * narrow) + wide * D)  # W_Q, W_K, W_V, W_O
    layer += 2 * wide * queries * keys  # Q K^T, A V
    layer += queries * D * config.d_ff * (3 if config.gated else 2)
    if source:
        layer += queries * 2 * D * wide + 2 * wide * queries * source
        layer += 2 * source * D * narrow if first else 0
    return config.layers * layer + D * config.vocab_size


class TokenCache(Cache):
    """Holds the tokens themselves, so that every step can compute all of them again."""

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
        self, ids: Tensor, mask: Tensor | None = None, cache: Cache | None = None, places: Tensor | None = None
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


def without_cache(model: EncoderDecoder | DecoderOnly) -> EncoderDecoder | DecoderOnly:
    """The model with the same parts that decodes without a cache."""
    return UncachedEncoderDecoder(model) if isinstance(model, EncoderDecoder) else UncachedDecoderOnly(model)
