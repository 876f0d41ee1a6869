"""A model made ready to run says what the plain one says, within its precision."""

import threading

import pytest
import torch
from tiny_model import KINDS, SIZES, model_of

import glassformer as gf
from glassformer.common.errors import ConfigError
from glassformer.decode.engine import Engine
from glassformer.decode.precision import prepare, resolve_precision

WITHIN = {"fp32": 1e-4, "bf16": 0.05, "int8": 0.1}  # of the widest logit; float32 in full
SCORES = {"fp32": 1e-5, "bf16": 0.01, "int8": 0.05}
SRC = torch.randint(3, 280, (5, 12), generator=torch.Generator().manual_seed(0))
MASK = torch.arange(12) < torch.tensor([[12], [3], [7], [1], [9]])
TGT = torch.randint(3, 300, (5, 9), generator=torch.Generator().manual_seed(1))


def able(precision):
    return precision != "bf16" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


@pytest.mark.parametrize("precision", WITHIN)
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_logits_stay_within_the_precision(kind, precision, kernels):
    if not able(precision):
        pytest.skip("this processor has no bfloat16 arithmetic")
    model = model_of(kind)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    expected = model(SRC, TGT, MASK)
    fast = prepare(model, precision)
    found = fast(SRC, TGT, MASK)
    error = (found - expected).abs().max()
    assert error <= WITHIN[precision] * (1 if precision == "fp32" else expected.abs().max())
    if precision == "int8":
        assert error > 1e-4  # it does round
    assert fast is not model
    assert found.dtype == torch.float32
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    torch.testing.assert_close(model(SRC, TGT, MASK), expected)


@pytest.mark.parametrize("precision", WITHIN)
@pytest.mark.parametrize("kind", KINDS)
def test_search_goes_through_every_kind_of_model(kind, precision, kernels):
    if not able(precision):
        pytest.skip("this processor has no bfloat16 arithmetic")
    model = model_of(kind)
    fast = prepare(model, precision)
    for beam in (1, 3) if precision == "fp32" else (3,):
        found = [best[0] for best in gf.generate(fast, SRC, MASK, beam=beam, max_new_tokens=8)]
        ended = [h.ids + [2] * (len(h.ids) < 8) for h in found]
        for h, same in zip(found, gf.generate(model, SRC, MASK, prefix=ended, max_new_tokens=8), strict=True):
            assert same[0].ids == h.ids
            assert h.score == pytest.approx(same[0].score, abs=SCORES[precision])
        if precision == "fp32":
            plain = gf.generate(model, SRC, MASK, beam=beam, max_new_tokens=8)
            assert [h.ids for h in found] == [best[0].ids for best in plain]


def test_in_int8_a_sentence_does_not_depend_on_its_neighbours(kernels):
    fast = prepare(model_of("plain"), "int8")
    loud = SRC.clone()
    loud[1:] = torch.randint(3, 280, (4, 12), generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        alone, together, others = (fast(src, TGT[: len(src)]) for src in (SRC[:1], SRC, loud))
    torch.testing.assert_close(together[:1], alone, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(others[:1], together[:1], atol=1e-5, rtol=1e-5)
    for beam in (1, 3):
        found = gf.generate(fast, SRC, MASK, beam=beam, max_new_tokens=8)
        for i in range(5):
            single = gf.generate(fast, SRC[i : i + 1, : MASK[i].sum()], beam=beam, max_new_tokens=8)[0][0]
            assert single.ids == found[i][0].ids
            assert single.score == pytest.approx(found[i][0].score, abs=1e-4)


def test_a_decoder_alone_can_be_made_ready_too():
    model = gf.DecoderOnly(gf.ModelConfig(**SIZES)).eval()
    prompt = SRC[:2, :4]
    plain = gf.generate(model, prompt, max_new_tokens=6)
    assert [best[0].ids for best in gf.generate(prepare(model, "fp32"), prompt, max_new_tokens=6)] == [
        best[0].ids for best in plain
    ]


def test_what_cannot_be_is_told():
    with pytest.raises(ConfigError, match=r"precision='fp64' is not one of `auto`, `fp32`, `bf16`, `int8`"):
        prepare(model_of("plain"), "fp64")
    with pytest.raises(ConfigError, match="int8 is for CPUs; on meta use bf16 or fp32"):
        resolve_precision("int8", 512, torch.device("meta"))
    with pytest.raises(ConfigError, match="precision='half'"):
        Engine(model_of("plain"), torch.device("cpu"), "half")
    assert resolve_precision("auto", 8, torch.device("cpu")) == "fp32"  # too narrow to gain


def test_threads_that_ask_at_once_are_given_one_copy():
    engine = Engine(model_of("plain"), torch.device("cpu"), "int8")
    start, found = threading.Barrier(8), []

    def ask():
        start.wait()
        found.append(engine.ready)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(copy is found[0] for copy in found)
    assert found[0] is not engine.model
