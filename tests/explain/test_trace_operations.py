"""Every operation in a manifest is true: numpy, given the manifest and its blobs, finds the model's numbers again."""

import math
from typing import get_args

import numpy as np
import pytest
import torch
from arithmetic import Arithmetic, bucket, check, evaluated

import glassformer as gf
from glassformer.explain import formulas
from glassformer.model.config import Activation, NormType
from glassformer.model.layer import ACTIVATIONS
from glassformer.model.norm import NORMS

SMALL = {"vocab_size": 23, "d_model": 16, "heads": 4, "d_ff": 24, "layers": 2, "max_length": 40, "dropout": 0.0}
CONFIGS = {
    "pre": {},
    "post": {"norm": "post", "embedding_norm": True, "activation": "gelu"},
    "rms gated rotary grouped": {
        "norm_type": "rms", "gated": True, "activation": "silu", "positions": "rotary", "kv_heads": 2, "bias": False,
    },
    "slowed rotary, biases of q, k and v": {
        "positions": "rotary", "rotary_factor": 8.0, "rotary_length": 16, "bias": False, "qkv_bias": True,
    },
    "alibi untied": {"positions": "alibi", "tied": False, "output_bias": True, "activation": "gelu_tanh"},
    "relative post rms": {"positions": "relative", "norm": "post", "norm_type": "rms", "score_scale": 1.0},
    "learned unequal stacks": {
        "positions": "learned", "decoder_heads": 2, "decoder_layers": 1, "decoder_d_ff": 30, "src_vocab_size": 19,
        "embedding_scale": False, "kv_heads": 1,
    },
    "wide heads none": {"positions": "none", "head_width": 6, "norm_eps": 0.1},
}  # fmt: skip
SOURCE = [5, 9, 4, 17, 3]


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("padding", [0, 2])
def test_encoder_decoder(name, padding):
    model = gf.EncoderDecoder(gf.ModelConfig(**SMALL | CONFIGS[name]))
    found = gf.trace(model, SOURCE, max_new_tokens=6, padding=padding, temperature=0.7)
    kinds = check(found)
    assert "replaced" not in kinds
    assert kinds["products"] == 2 + 2 * len(model.decoder.blocks)


ALONE = ["pre", "post", "rms gated rotary grouped", "alibi untied", "relative post rms"]


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("kind", [gf.EncoderOnly, gf.DecoderOnly])
def test_one_stack_alone(kind, name, padding):
    options, more = {"max_new_tokens": 4}, {}
    if kind is gf.EncoderOnly:
        options, more = {}, {"segments": 2, "output_transform": True} if name == "post" else {}
    model = kind(gf.ModelConfig(**SMALL | CONFIGS[name] | more))
    assert check(gf.trace(model, SOURCE, padding=padding, **options))["products"] == 2


def formulas_of(kind=gf.EncoderDecoder, **options):
    model = kind(gf.ModelConfig(**SMALL | options))
    more = {} if kind is gf.EncoderOnly else {"max_new_tokens": 4}
    found = gf.trace(model, SOURCE, padding=1, **more)
    return found, {name: value.formula for name, value in found.values.items()}


@pytest.mark.parametrize("bias", [True, False])
def test_a_formula_names_the_memory_and_a_bias_where_there_is_one(bias):
    found, told = formulas_of(bias=bias, output_bias=bias)
    at = "decoder.blocks.0"
    assert told[f"{at}.self_attention.k"] == ("x W_K + b_K" if bias else "x W_K")
    assert told[f"{at}.cross_attention.q"] == ("x W_Q + b_Q" if bias else "x W_Q")
    assert told[f"{at}.cross_attention.k"] == ("memory W_K + b_K" if bias else "memory W_K")
    assert told[f"{at}.cross_attention.v"] == ("memory W_V + b_V" if bias else "memory W_V")
    assert told["logits"] == ("x Eᵀ + b" if bias else "x Eᵀ")
    for name, value in found.values.items():
        if value.op["kind"] == "linear":
            assert (" + b" in told[name]) == (value.op["bias"] is not None), name


def test_a_formula_says_what_this_model_computes():
    told = formulas_of()[1]
    assert told["encoder.embedding.scaled"] == "√d_model · E[token]"
    assert told["decoder.blocks.0.self_attention.scores"] == "Q Kᵀ / √d_head"
    assert told["decoder.blocks.0.feed_forward.hidden"] == "relu(up)"
    assert told["decoder.norm"] == "(x - mean) / √(variance + ε) · g + b"
    assert (told["masks.decoder"], told["masks.cross"]) == ("1 where key ≤ query", "1 where the key is a real token")
    other = formulas_of(
        positions="relative", norm_type="rms", gated=True, activation="silu", score_scale=1.0, tied=False,
        embedding_scale=False, norm="post",
    )[1]  # fmt: skip
    assert other["encoder.embedding"] == "E[token]"
    assert other["decoder.blocks.0.self_attention.scores"] == "Q Kᵀ · 1"
    assert "distance" in other["decoder.blocks.0.self_attention.masked"]
    assert "distance" not in other["decoder.blocks.0.cross_attention.masked"]
    assert other["decoder.blocks.0.feed_forward.hidden"] == "silu(gate) · value, the halves of up"
    assert other["decoder.blocks.0.feed_forward_residual.norm"] == "x / √(mean(x²) + ε) · g"
    assert other["logits"] == "x W_vocab"
    alone = formulas_of(gf.DecoderOnly, output_bias=True)[1]
    assert alone["masks.decoder"] == "1 where key ≤ query and the key is a real token"


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_bucket_of_a_distance_is_named_even_where_two_hold_the_same_number(stack):
    model = gf.EncoderDecoder(gf.ModelConfig(**SMALL | {"positions": "relative", "relative_buckets": 8}))
    with torch.no_grad():
        getattr(model, stack).distance.table.fill_(0.5)  # found by value, every distance would be the first bucket
    found = gf.trace(model, SOURCE, target=list(range(3, 20)))
    op, (_, length, _) = found.value(f"{stack}.distance").op, found[f"{stack}.distance"].shape
    expected = [bucket(offset, 8, op["furthest"], op["both_ways"]) for offset in range(1 - length, length)]
    assert op["buckets"] == expected
    assert len(set(expected)) > 4


def test_the_check_can_fail():
    """A wrong scale, a wrong row, a wrong mask: each is noticed."""
    sums = Arithmetic(gf.trace(gf.EncoderDecoder(gf.ModelConfig(**SMALL)), SOURCE, max_new_tokens=6))
    at = "decoder.blocks.1.self_attention"
    for name, spoil in {
        f"{at}.scores": {"by": 0.51},
        f"{at}.k": {"rows": [0, 16]},
        f"{at}.masked": {"mask": "masks.encoder"},
        "decoder.embedding": {"inputs": ["decoder.embedding.scaled"]},
        "decoder.norm": {"eps": 0.1},
    }.items():
        assert np.allclose(sums.again(name), sums.x(name), atol=1e-5)
        sums.rows[name]["op"] |= spoil
        if name == f"{at}.masked":
            sums.values["masks.encoder"] = np.ones_like(sums.values["masks.decoder"])
        assert not np.allclose(sums.again(name), sums.x(name), atol=1e-5), name


def test_every_choice_has_a_function_and_a_description():
    assert set(get_args(Activation)) == set(ACTIVATIONS) == set(formulas.ACTIVATIONS)
    assert set(get_args(NormType)) == set(NORMS) == set(formulas.NORMS)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_its_expression(name):
    x = torch.linspace(-9, 9, 181, dtype=torch.float64)
    found = evaluated(formulas.ACTIVATIONS[name].expression, {"u": x.numpy(), "π": math.pi})
    np.testing.assert_allclose(found, ACTIVATIONS[name](x).numpy(), atol=1e-12)


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_trace_of_every_choice_gives_its_numbers_again(activation, norm, placement):
    config = gf.ModelConfig(
        **SMALL | {"layers": 1}, activation=activation, norm_type=norm, norm=placement, norm_eps=0.1
    )
    model = gf.EncoderDecoder(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # gains of one and biases of zero would hide mistakes
            parameter += 0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    kinds = check(gf.trace(model, [5, 9, 4], max_new_tokens=3))
    assert kinds["activation"] == 2
    assert kinds[f"{norm}_norm"] == (7 if placement == "pre" else 5)


def test_a_formula_is_printed_as_a_reader_writes_it():
    assert formulas.NORMS["layer"].formula == "(x - mean) / √(variance + ε) · g + b"
    assert formulas.NORMS["rms"].formula == "x / √(mean(x²) + ε) · g"
    assert formulas.ACTIVATIONS["silu"].formula == "u / (1 + exp(-u))"
    assert (
        formulas.format_expression(("-", "a", ("-", "b", ("*", ("+", "c", 1), ("^", "d", 3)))))
        == "a - (b - (c + 1) · d³)"
    )
    assert formulas.format_expression(("/", "a", ("*", "b", "c"))) == "a / (b · c)"
