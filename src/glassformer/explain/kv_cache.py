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
    config, difference = model.config.decoder, 0.0
    rows = []
    for step, end in enumerate(range(prompt, ids.shape[1] + 1)):
        new = ids[:, cache.length : end]
        if isinstance(model, EncoderDecoder):
            assert memory is not None
            cached = model.decode(new, memory, mask, cache)
        else:
            cached = model(new, mask if step == 0 else None, cache)
        difference = max(difference, float((cached[0, -1].float().cpu() - logits[step]).abs().max()))
        cross = [0 if layer.cross is None else layer.cross[0].shape[2] for layer in cache.layers]
        source = max(cross, default=0)
        sizes = {"step": step, "self": [cache.length] * len(cache.layers), "cross": cross}
        saved = multiply_adds(config, end, new.shape[1], source, first=step == 0)
        rows.append(sizes | {"with": saved, "without": multiply_adds(config, end, end, source, first=True)})
    equal = difference <= ROUNDING * max(1.0, float(logits.abs().max()))
    return {"steps": rows, "max_difference": difference, "equal": equal, "used": is_causal(model)}


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

    def __init__(self, capacity: int, beams: int = 1) -> None:
        super().__init__(0, capacity, beams)
        self.ids: Tensor | None = None  # (B, L), or (B K, L) from the second step on
        self.real: Tensor | None = None  # (1, P): the prompt's mask; one sentence is traced at a time

    def extend(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """All tokens so far, and their mask."""
        if self.ids is not None:
            before = self.ids.repeat_interleave(ids.shape[0] // self.ids.shape[0], 0)
            ids = torch.cat((before, ids), dim=1)
        self.ids, self.real = ids, self.real if mask is None else mask
        if self.real is None:
            return ids, None
        written = self.real.new_ones(ids.shape[0], ids.shape[1] - self.real.shape[1])
        return ids, torch.cat((self.real.expand(ids.shape[0], -1), written), dim=1)

    def follow(self, origin: Tensor) -> None:
        if self.ids is not None and self.ids.shape[0] == origin.numel():
            first = torch.arange(origin.shape[0], device=origin.device).unsqueeze(1) * self.beams
            self.ids = self.ids[(first + origin).flatten()]

    def keep(self, sentences: Tensor) -> None:
        if self.ids is not None:
            self.ids = self.ids.unflatten(0, (-1, self.beams))[sentences].flatten(0, 1)


def disable_cache(model: EncoderDecoder | DecoderOnly) -> None:
    """From now on, the decoder of a private copy reads all tokens at every step."""
    model.new_cache = TokenCache  # type: ignore[method-assign]
    model.decoder.register_forward_pre_hook(read_all_tokens, with_kwargs=True)


def read_all_tokens(_stack: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A hook that gives a stack all tokens so far in the place of the new ones and a cache."""
    call = stack_arguments(args, kwargs)
    if isinstance(call["cache"], TokenCache):
        ids, mask = call["cache"].extend(call["ids"], call["mask"])
        call |= {"ids": ids, "mask": mask, "cache": None}
    return (), call


def stack_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Stack.forward` by name."""
    names = ("ids", "mask", "memory", "memory_mask", "cache")
    return dict.fromkeys(names) | dict(zip(names, args, strict=False)) | kwargs
