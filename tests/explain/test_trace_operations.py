"""Every operation in a manifest is true: numpy, given the manifest and its blobs, finds the model's numbers again."""

import numpy as np
import pytest
from arithmetic import Arithmetic, check

import glassformer as gf

SMALL = {"vocab_size": 23, "d_model": 16, "heads": 4, "d_ff": 24, "layers": 2, "max_length": 40, "dropout": 0.0}
CONFIGS = {
    "pre": {},
    "post": {"norm": "post", "embedding_norm": True, "activation": "gelu"},
    "rms gated rotary grouped": {
        "norm_type": "rms", "gated": True, "activation": "silu", "positions": "rotary", "kv_heads": 2, "bias": False,
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


@pytest.mark.parametrize("name", ["pre", "post", "rms gated rotary grouped", "alibi untied", "relative post rms"])
@pytest.mark.parametrize("padding", [0, 2])
def test_encoder_alone(name, padding):
    more = {"segments": 2, "output_transform": True} if name == "post" else {}
    model = gf.EncoderOnly(gf.ModelConfig(**SMALL | CONFIGS[name] | more))
    assert check(gf.trace(model, SOURCE, padding=padding))["products"] == 2


@pytest.mark.parametrize("name", ["pre", "post", "rms gated rotary grouped", "alibi untied", "relative post rms"])
@pytest.mark.parametrize("padding", [0, 2])
def test_decoder_alone(name, padding):
    model = gf.DecoderOnly(gf.ModelConfig(**SMALL | CONFIGS[name]))
    assert check(gf.trace(model, SOURCE, padding=padding, max_new_tokens=4))["products"] == 2


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
