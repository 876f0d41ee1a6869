"""GPT-2: a decoder alone, Pre-LN, learned positions; its matrices are stored transposed, q, k and v in one."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from glassformer.model import DecoderOnly, ModelConfig
from glassformer.weights.pretrained.family import Family, Names, Settings, Take, Weights, pairs

NAMES: Names = {
    "d_model": "n_embd",
    "heads": "n_head",
    "d_ff": ("n_inner", None),
    "layers": "n_layer",
    "norm_eps": ("layer_norm_epsilon", 1e-5),
    "activation": ("activation_function", "gelu_new"),
    "max_length": ("n_positions", 1024),
    "dropout": ("resid_pdrop", 0.1),
    "attention_dropout": ("attn_pdrop", 0.1),
}


def config(settings: Settings, tied: bool) -> ModelConfig:
    settings.only("add_cross_attention", False)
    own = settings.read(NAMES)
    return ModelConfig(
        **settings.ids(settings.need("vocab_size"), "bos_token_id"),
        **own | {"d_ff": own["d_ff"] or 4 * own["d_model"]},
        norm="pre",
        positions="learned",
        embedding_scale=False,
        tied=tied,
        activation_dropout=0.0,
    )


def weights(config: ModelConfig, settings: Settings) -> Weights:
    def query_scale(layer: int) -> float:
        """What two rarely used settings do to the scores, which W_Q carries here."""
        scale = 1.0 if settings.get("scale_attn_weights", True) else math.sqrt(config.d_head)
        return scale / (layer + 1) if settings.get("scale_attn_by_inverse_layer_idx", False) else scale

    table = pairs({"decoder.norm": "ln_f"}) | {
        "decoder.embedding.tokens.weight": Take(("wte.weight",)),
        "decoder.embedding.positions.table": Take(("wpe.weight",)),
    }
    for i in range(config.layers):
        ours, theirs = f"decoder.blocks.{i}", f"h.{i}"
        for name, source, scale in (
            ("self_attention.projection", "attn.c_attn", query_scale(i)),
            ("self_attention.output", "attn.c_proj", 1.0),
            ("feed_forward.up", "mlp.c_fc", 1.0),
            ("feed_forward.down", "mlp.c_proj", 1.0),
            ("self_attention_residual.norm", "ln_1", 1.0),
            ("feed_forward_residual.norm", "ln_2", 1.0),
        ):
            for part in ("weight", "bias"):
                table[f"{ours}.{name}.{part}"] = turned(f"{theirs}.{source}.{part}", config.d_model, scale)
    return table


def turned(name: str, rows: int, scale: float) -> Take:
    """A matrix transposed, or a vector as it is, with its first rows, those of W_Q, scaled."""

    def transposed(t: Tensor) -> Tensor:
        return t.T if t.dim() == 2 else t

    return Take(
        (name,), lambda t: scaled(transposed(t), rows, scale), lambda t: (transposed(scaled(t, rows, 1 / scale)),)
    )


def scaled(t: Tensor, rows: int, by: float) -> Tensor:
    if by == 1.0:
        return t
    t = t.float()  # half a float has no digits to spare
    return torch.cat((t[:rows] * by, t[rows:]))


FAMILY = Family(
    model=DecoderOnly,
    config=config,
    weights=weights,
    prefix="transformer.",
    embedding="wte.weight",
    head="lm_head.weight",
    constant=r"h\.\d+\.attn\.(bias|masked_bias)",
)
