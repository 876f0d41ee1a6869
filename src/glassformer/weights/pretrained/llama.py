"""Llama, and Mistral and Qwen2 after it: a decoder alone, Pre-LN with RMSNorm, rotary positions, SwiGLU, grouped heads.

A rotation turns value i of a head together with value i + d/2 in these files, and neighbours in our parts: W_Q and W_K
have their rows put in that order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from glassformer.common.errors import WeightsError, one_of
from glassformer.model import DecoderOnly, ModelConfig
from glassformer.weights.pretrained.family import Family, Names, Parts, Settings, Take, Weights, layers

NAMES: Names = {
    "d_model": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": ("num_key_value_heads", None),
    "head_width": ("head_dim", None),
    "d_ff": "intermediate_size",
    "layers": "num_hidden_layers",
    "norm_eps": ("rms_norm_eps", 1e-6),
    "activation": ("hidden_act", "silu"),
    "max_length": ("max_position_embeddings", 2048),
    "attention_dropout": ("attention_dropout", 0.0),
}
LAYER = {
    "self_attention.output": ("self_attn.o_proj",),
    "self_attention_residual.norm": ("input_layernorm",),
    "feed_forward.up": ("mlp.gate_proj", "mlp.up_proj"),
    "feed_forward.down": ("mlp.down_proj",),
    "feed_forward_residual.norm": ("post_attention_layernorm",),
}


def config(settings: Settings, tied: bool) -> ModelConfig:
    for name in ("attention_bias", "mlp_bias"):
        settings.only(name, False)
    own = settings.read(NAMES)
    return ModelConfig(
        **settings.ids(settings.need("vocab_size"), "bos_token_id"),
        **own | {"kv_heads": own["kv_heads"] or own["heads"]},
        norm="pre",
        norm_type="rms",
        gated=True,
        bias=False,
        positions="rotary",
        **rotation(settings),
        embedding_scale=False,
        tied=tied,
        dropout=0.0,
    )


def rotation(settings: Settings) -> dict[str, Any]:
    """How fast the pairs turn; older files say it in `rope_theta` and `rope_scaling`."""
    rope = Settings(settings.get("rope_parameters", settings.get("rope_scaling", {})))
    rope.only("partial_rotary_factor", 1.0)
    found = {"rotary_base": float(rope.get("rope_theta", settings.get("rope_theta", 10_000.0)))}
    kind, known = rope.get("rope_type", rope.get("type", "default")), ("default", "linear", "llama3")
    if kind not in known:
        raise WeightsError(f"config.json sets the type of rotary positions to {kind!r}; supported are {one_of(known)}")
    if kind != "default":
        found["rotary_factor"] = float(rope.need("factor"))
    if kind == "llama3":
        found["rotary_length"] = rope.need("original_max_position_embeddings")
        found["rotary_low"] = float(rope.need("low_freq_factor"))
        found["rotary_high"] = float(rope.need("high_freq_factor"))
    return found


def mistral_config(settings: Settings, tied: bool) -> ModelConfig:
    return without_window(config(settings, tied), settings.values.get("sliding_window", 4096))


def qwen2_config(settings: Settings, tied: bool) -> ModelConfig:
    window = settings.get("sliding_window", 4096) if settings.get("use_sliding_window", False) else None
    return without_window(replace(config(settings, tied), qkv_bias=True), window)


def without_window(config: ModelConfig, window: int | None) -> ModelConfig:
    """The settings, unless the window that a position sees is less than all positions."""
    if window is not None and window < config.max_length:
        raise WeightsError(
            f"config.json sets `sliding_window` to {window}, less than its {config.max_length} positions: attention "
            f"that sees a window only is not supported; take a version of the model without one"
        )
    return config


def weights(config: ModelConfig, settings: Settings) -> Weights:
    table = layers(config.layers, "decoder.blocks", "layers", LAYER, ("weight",)) | {
        "decoder.embedding.tokens.weight": Take(("embed_tokens.weight",)),
        "decoder.norm.weight": Take(("norm.weight",)),
    }
    for i in range(config.layers):
        for part in ("weight", "bias") if config.qkv_bias else ("weight",):
            names = tuple(f"layers.{i}.self_attn.{name}_proj.{part}" for name in "qkv")
            table[f"decoder.blocks.{i}.self_attention.projection.{part}"] = projection(names, config)
    return table


def projection(names: tuple[str, ...], config: ModelConfig) -> Take:
    d, groups = config.d_head, config.kv_heads or config.heads

    def fold(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.cat((swapped(q, 2, d // 2), swapped(k, 2, d // 2), v))

    def unfold(whole: Tensor) -> Parts:
        q, k, v = whole.split([config.heads * d, groups * d, groups * d])
        return swapped(q, d // 2, 2), swapped(k, d // 2, 2), v

    return Take(names, fold, unfold)


def swapped(t: Tensor, outer: int, inner: int) -> Tensor:
    """The rows of each head, `outer` times `inner` of them, with what counts outside and what inside exchanged."""
    heads: Tensor = t.unflatten(0, (-1, outer, inner))
    return heads.transpose(1, 2).flatten(0, 2)


FAMILY = Family(
    model=DecoderOnly,
    config=config,
    weights=weights,
    prefix="model.",
    embedding="embed_tokens.weight",
    head="lm_head.weight",
    constant=r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq",
)
MISTRAL = replace(FAMILY, config=mistral_config)
QWEN2 = replace(FAMILY, config=qwen2_config)
