"""What the cache holds at every step, what it spares, and whether it changes anything.

Shapes: L tokens read so far, S source, T target, D model width, d head width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from glassformer.explain.writing import Written, one_pass
from glassformer.model import Cache, EncoderDecoder, EncoderOnly, Model
from glassformer.model.config import ModelConfig

ROUNDING = 1e-4  # of the largest logit: more than single precision can come to by another order of its sums


@torch.no_grad()
def cache_view(
    model: Model, memory: Tensor | None, mask: Tensor, written: Written, logits: Tensor
) -> dict[str, Any] | None:
    """Read the output again token by token with a cache, and compare with the `logits` (steps, V) it was written from.

    `used`: whether it was written with a cache. `equal`: up to rounding, the cache makes no difference.
    """
    if isinstance(model, EncoderOnly):
        return None
    ids = torch.tensor([written.reads], device=mask.device)
    cache = Cache(len(model.decoder.blocks), ids.shape[1])
    config, begin, apart = model.config.decoder, len(written.prompt), 0.0
    rows = []
    for step, end in enumerate(range(begin, ids.shape[1] + 1)):
        fresh = ids[:, cache.length : end]
        if isinstance(model, EncoderDecoder):
            assert memory is not None
            cached = model.decode(fresh, memory, mask, cache)
        else:
            cached = model(fresh, mask if step == 0 else None, cache)
        apart = max(apart, float((cached[0, -1].float().cpu() - logits[step]).abs().max()))
        cross = [0 if layer.cross is None else layer.cross[0].shape[2] for layer in cache.layers]
        source = max(cross, default=0)
        rows.append(
            {
                "step": step,
                "self": [cache.length] * len(cache.layers),
                "cross": cross,
                "with": multiply_adds(config, end, fresh.shape[1], source, first=step == 0),
                "without": multiply_adds(config, end, end, source, first=True),
            }
        )
    equal = apart <= ROUNDING * max(1.0, float(logits.abs().max()))
    return {"steps": rows, "max_difference": apart, "equal": equal, "used": one_pass(model)}


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
