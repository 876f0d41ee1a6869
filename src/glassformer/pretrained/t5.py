"""T5, v1.0 and v1.1: Pre-LN with RMSNorm, no biases, distance buckets shared by a stack's layers.

T5 leaves out the 1/sqrt(d) of attention. Where it scales the decoder's output by 1/sqrt(D), the last norm carries
that factor here.
"""

from __future__ import annotations

from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.pretrained.family import Family, Names, Settings, Take, Weights

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


def config(settings: Settings, tied: bool) -> ModelConfig:
    vocab, own = settings.need("vocab_size"), settings.read(NAMES)
    gate, _, activation = str(settings.get("feed_forward_proj", "relu")).rpartition("-")
    # "gated-gelu" has always meant the tanh form; a plain "gelu" the exact one.
    act = "gelu_new" if (gate, activation) == ("gated", "gelu") else activation
    pad = settings.token("pad_token_id", vocab)
    start = settings.token("decoder_start_token_id", vocab)
    return ModelConfig(
        vocab_size=vocab,
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
        pad_id=pad,
        start_id=pad if start is None else start,
        end_id=settings.token("eos_token_id", vocab),
    )


def weights(config: ModelConfig, settings: Settings) -> Weights:
    table: Weights = {"encoder.embedding.tokens.weight": Take(("shared.weight",))}
    for side, count, sublayers in (
        ("encoder", config.layers, (("self_attention", "SelfAttention"),)),
        (
            "decoder",
            config.decoder.layers,
            (("self_attention", "SelfAttention"), ("cross_attention", "EncDecAttention")),
        ),
    ):
        first = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        table[f"{side}.distance.table"] = Take((first,))
        table[f"{side}.norm.weight"] = Take((f"{side}.final_layer_norm.weight",))
        for i in range(count):
            ours, theirs = f"{side}.blocks.{i}", f"{side}.block.{i}.layer"
            for place, (name, module) in enumerate(sublayers):
                source = f"{theirs}.{place}.{module}"
                qkv = tuple(f"{source}.{part}.weight" for part in "qkv")
                table[f"{ours}.{name}.projection.weight"] = Take(qkv)
                table[f"{ours}.{name}.output.weight"] = Take((f"{source}.o.weight",))
                table[f"{ours}.{name}_residual.norm.weight"] = Take((f"{theirs}.{place}.layer_norm.weight",))
            last = f"{theirs}.{len(sublayers)}"
            up = ("wi_0", "wi_1") if config.gated else ("wi",)
            table[f"{ours}.feed_forward.up.weight"] = Take(tuple(f"{last}.DenseReluDense.{w}.weight" for w in up))
            table[f"{ours}.feed_forward.down.weight"] = Take((f"{last}.DenseReluDense.wo.weight",))
            table[f"{ours}.feed_forward_residual.norm.weight"] = Take((f"{last}.layer_norm.weight",))
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
