"""ViT: an encoder, Pre-LN, learned positions; it reads squares of an image, and its labels are the vocabulary.

The logits of the image are those of the first position.
"""

from __future__ import annotations

from torch import Tensor

from glassformer.model import EncoderOnly, ModelConfig
from glassformer.weights.pretrained import bert
from glassformer.weights.pretrained.family import Family, Settings, Take, Weights, layers, pairs

NAMES = bert.SIZES | {
    "qkv_bias": ("qkv_bias", True),
    "channels": ("num_channels", 3),
    "dropout": ("hidden_dropout_prob", 0.0),
    "attention_dropout": ("attention_probs_dropout_prob", 0.0),
}
LAYER = bert.LAYER | {
    "self_attention.projection": tuple(f"attention.attention.{name}" for name in ("query", "key", "value")),
    "self_attention_residual.norm": ("layernorm_before",),
    "feed_forward_residual.norm": ("layernorm_after",),
}


def side(settings: Settings, name: str, default: int) -> int:
    """Of a square that may be given by both its sides."""
    value = settings.get(name, default)
    sides = value if isinstance(value, list) else [value]
    if len(set(sides)) > 1:
        settings.only(name, [sides[0]] * 2)
    return int(sides[0])


def config(settings: Settings, tied: bool) -> ModelConfig:
    image, patch = side(settings, "image_size", 224), side(settings, "patch_size", 16)
    return ModelConfig(
        vocab_size=len(settings.get("id2label", ("no", "yes"))),
        **settings.read(NAMES),
        norm="pre",
        positions="learned",
        max_length=(image // patch) ** 2 + 1,
        image_size=image,
        patch_size=patch,
        embedding_scale=False,
        tied=False,
        output_bias=True,
        activation_dropout=0.0,
        pad_id=None,
        start_id=None,
        end_id=None,
    )


def weights(config: ModelConfig, settings: Settings) -> Weights:
    table = layers(config.layers, "encoder.blocks", "encoder.layer", LAYER)
    if not config.qkv_bias:
        table = {ours: take for ours, take in table.items() if not ours.endswith("projection.bias")}
    patch = config.patch_size or 0
    shape = (config.d_model, config.channels, patch, patch)
    squares, positions = "embeddings.patch_embeddings.projection", "embeddings.position_embeddings"
    own = {
        "first": Take(("embeddings.cls_token",), Tensor.flatten, lambda t: (t.view(1, 1, -1),)),
        "projection.weight": Take((f"{squares}.weight",), lambda t: t.flatten(1), lambda t: (t.view(shape),)),
        "projection.bias": Take((f"{squares}.bias",)),
        "positions.table": Take((positions,), lambda t: t[0], lambda t: (t.unsqueeze(0),)),
    }
    table |= pairs({"encoder.norm": "layernorm"}) | {f"encoder.embedding.{name}": take for name, take in own.items()}
    return table | {"head.bias": Take(("classifier.bias",))}


FAMILY = Family(
    model=EncoderOnly,
    config=config,
    weights=weights,
    prefix="vit.",
    embedding="",  # labels have none
    head="classifier.weight",
    other_head=r"pooler\..*|embeddings\.mask_token",
)
