"""T5, v1.0 and v1.1: Pre-LN with RMSNorm, no biases, distance buckets shared by a stack's layers.

T5 leaves out the 1/sqrt(d) of attention. Where it scales the decoder's output by 1/sqrt(D), the last norm carries
that factor here.
"""

from __future__ import annotations

from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.weights.pretrained.family import Family, Names, Settings, Take, Weights, layers

NAMES: Names = {
    "d_model": "d_model",
    "head_width": "d_kv",
    "heads": "num_heads",
    "d_ff": "d_ff",
    "layers": "num_layers",
    "decoder_layers": ("num_decoder_layers", None),
    "norm_eps": ("layer_norm_epsilon", 1e-6),
    "relative_buckets": ("relative_attention_num_buckets", 32),
    "relative_distance": ("relative_attention_max_distance", 128),
    "dropout": ("dropout_rate", 0.1),
}
ATTENTIONS = (("self_attention", "SelfAttention"), ("cross_attention", "EncDecAttention"))


def config(settings: Settings, tied: bool) -> ModelConfig:
    own = settings.read(NAMES)
    gate, _, activation = str(settings.get("feed_forward_proj", "relu")).rpartition("-")
    # "gated-gelu" has always meant the tanh form; a plain "gelu" the exact one.
    act = "gelu_new" if (gate, activation) == ("gated", "gelu") else activation
    return ModelConfig(
        **settings.ids(settings.need("vocab_size"), "decoder_start_token_id", "pad_token_id"),
        **own | {"decoder_layers": own["decoder_layers"] or own["layers"]},
        score_scale=1.0,
        norm="pre",
        norm_type="rms",
        activation=Settings({"feed_forward_proj": act}).activation("feed_forward_proj", "relu"),
        gated=gate == "gated",
        bias=False,
        positions="relative",
        embedding_scale=False,
        tied=tied,
    )


def weights(config: ModelConfig, settings: Settings) -> Weights:
    table: Weights = {"encoder.embedding.tokens.weight": Take(("shared.weight",))}
    up = ("wi_0", "wi_1") if config.gated else ("wi",)
    for side, count, attentions in (("encoder", config.layers, 1), ("decoder", config.decoder.layers, 2)):
        first = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        table[f"{side}.distance.table"] = Take((first,))
        table[f"{side}.norm.weight"] = Take((f"{side}.final_layer_norm.weight",))
        last = f"layer.{attentions}"
        layer = {
            "feed_forward.up": tuple(f"{last}.DenseReluDense.{name}" for name in up),
            "feed_forward.down": (f"{last}.DenseReluDense.wo",),
            "feed_forward_residual.norm": (f"{last}.layer_norm",),
        }
        for place, (ours, theirs) in enumerate(ATTENTIONS[:attentions]):
            layer[f"{ours}.projection"] = tuple(f"layer.{place}.{theirs}.{part}" for part in "qkv")
            layer[f"{ours}.output"] = (f"layer.{place}.{theirs}.o",)
            layer[f"{ours}_residual.norm"] = (f"layer.{place}.layer_norm",)
        table |= layers(count, f"{side}.blocks", f"{side}.block", layer, ("weight",))
    if settings.get("scale_decoder_outputs", settings.get("tie_word_embeddings", True)):
        final = table["decoder.norm.weight"].names
        table["decoder.norm.weight"] = Take(
            final, lambda t: t.float() * config.d_model**-0.5, lambda t: (t * config.d_model**0.5,)
        )
    return table


FAMILY = Family(
    model=EncoderDecoder,
    config=config,
    weights=weights,
    embedding="shared.weight",
    head="lm_head.weight",
    same=(("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"),),
    # A table that very old files carry and no version of the model reads.
    constant=r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
)
