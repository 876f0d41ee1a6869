"""The short way through a decoding step says what the block says."""

import pytest
import torch

import glassformer as gf
from glassformer.decode.kernels import Kernels
from glassformer.decode.precision import prepare
from glassformer.decode.step import AttentionStep, StepBlock
from glassformer.model.layer import ACTIVATIONS
from glassformer.model.norm import NORMS

SIZES = {"vocab_size": 60, "d_model": 32, "heads": 4, "d_ff": 48, "layers": 2, "max_length": 32}
KINDS = {
    "plain": {},
    "gated": {"gated": True, "activation": "silu", "norm_type": "rms", "bias": False},
    "post": {"activation": "gelu", "norm": "post"},
    "biases of q, k and v": {"bias": False, "qkv_bias": True},
    "alibi": {"positions": "alibi"},
    **{name: {"activation": name} for name in ACTIVATIONS},
    **{f"{name} norm": {"norm_type": name, "norm": "post"} for name in NORMS},
    "unlike": {"heads": 8, "decoder_heads": 4, "kv_heads": 4, "decoder_d_ff": 24, "head_width": 6},
}
LONG = {"rotary": {"positions": "rotary"}, "grouped": {"decoder_heads": 8, "kv_heads": 4}}
SRC = torch.randint(3, 60, (3, 6), generator=torch.Generator().manual_seed(0))
MASK = torch.arange(6) < torch.tensor([[6], [2], [0]])  # the last source has nothing to be seen
TGT = torch.randint(3, 60, (3, 5), generator=torch.Generator().manual_seed(1))


@torch.inference_mode()
def stepped(model, beams):
    memory, cache = model.encode(SRC, MASK), model.new_cache(5, beams)
    for step in range(5):
        tokens = TGT[:, step : step + 1].repeat_interleave(beams if step else 1, 0)
        tokens = (tokens + torch.arange(len(tokens)).unsqueeze(1)) % 60  # beams that say different things
        yield model.decode(tokens, memory, MASK, cache)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_short_way_is_the_same_way(kind, beams, kernels, monkeypatch):
    model = gf.EncoderDecoder(gf.ModelConfig(**(SIZES | KINDS[kind]))).eval()
    taken = 0
    way = AttentionStep if kernels is None else Kernels
    attend = way.attend

    def counted(self, *given):
        nonlocal taken
        taken += 1
        return attend(self, *given)

    monkeypatch.setattr(way, "attend", counted)
    for short, plain in zip(stepped(prepare(model, "fp32"), beams), stepped(model, beams), strict=True):
        torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)
    assert taken == 2 * 2 * 4  # both attentions of both blocks, at all steps but the prompt's


@pytest.mark.parametrize("kind", LONG)
def test_what_the_short_way_does_not_know_goes_the_long_one(kind, monkeypatch):
    for way in (AttentionStep, Kernels):
        monkeypatch.setattr(way, "attend", None)  # would fail if it were called
    model = gf.EncoderDecoder(gf.ModelConfig(**(SIZES | LONG[kind]))).eval()
    fast = prepare(model, "fp32")
    assert all(isinstance(block, StepBlock) == (kind == "rotary") for block in fast.decoder.blocks)
    for short, plain in zip(stepped(fast, 1), stepped(model, 1), strict=True):
        torch.testing.assert_close(short, plain, atol=1e-5, rtol=1e-5)


def test_dropout_acts_at_a_step_of_a_model_in_training():
    config = gf.ModelConfig(**SIZES, dropout=0.0, attention_dropout=0.5)
    fast = prepare(gf.EncoderDecoder(config).train(), "fp32")
    with torch.inference_mode():
        memory = fast.encode(SRC)
        steps = []
        for _ in range(2):
            cache = fast.new_cache(2)
            torch.manual_seed(0)  # up to here both are alike
            fast.decode(TGT[:, :1], memory, None, cache)
            torch.manual_seed(len(steps))
            steps.append(fast.decode(TGT[:, 1:2], memory, None, cache))
    assert not torch.equal(*steps)
