"""Weights in int8: what is stored, what it loses, and that the same runs whichever way they are loaded."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_model import KINDS, SIZES, model_of
from torch.utils._python_dispatch import TorchDispatchMode

import glassformer as gf
from glassformer.common.errors import ConfigError, WeightsError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.decode.precision import prepare
from glassformer.weights import bundle
from glassformer.weights.quantized import (
    SIX,
    Int8Matrix,
    empty_model,
    is_quantized,
    pack_six,
    quantizable,
    quantize,
    quantize_by_error,
    quantize_by_max,
    scales_name,
    set_weights,
    unpack_six,
    weights,
)

SRC = torch.randint(3, 280, (3, 12), generator=torch.Generator().manual_seed(0))
TGT = torch.randint(3, 300, (3, 9), generator=torch.Generator().manual_seed(1))
PAIRS = [("one two three four five", "eins zwei drei vier fünf"), ("six seven", "sechs sieben")]


def make(folder, stored_as="int8", **settings):
    tokenizer = Tokenizer.train(PAIRS, TokenizerOptions(kind="words"))
    sizes = SIZES | {"vocab_size": tokenizer.tgt_size} | settings
    model = gf.EncoderDecoder(gf.ModelConfig(**sizes)).eval()
    bundle.save(folder, model, bundle.weights(model), tokenizer, stored_as)
    (folder / "recipe.toml").write_text('[about]\npurpose = "numbers"\n', encoding="utf-8")
    return model


class Floats(TorchDispatchMode):
    """The most numbers that any float32 tensor had that was computed under it."""

    most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, list | tuple) else [made]:
            if isinstance(one, torch.Tensor) and one.dtype == torch.float32 and not one.is_meta:
                self.most = max(self.most, one.numel())
        return made


@pytest.fixture(params=["gauss", "heavy", "zero rows", "tiny", "huge"])
def weight(request):
    chance = torch.Generator().manual_seed(7)
    made = torch.randn((40, 1536), generator=chance)
    if request.param == "heavy":
        made = made / torch.rand((40, 1536), generator=chance).clamp_min(0.05)
    elif request.param == "zero rows":
        made[::3] = 0
    return made * {"tiny": 1e-9, "huge": 1e9}.get(request.param, 1.0)


def test_a_row_loses_no_more_than_with_its_largest_number_as_the_limit(weight):
    found, usual = quantize_by_error(weight), quantize_by_max(weight)
    assert found.values.dtype == torch.int8
    assert found.values.min() >= -127

    def lost(one):
        return (one.dequantize().double() - weight.double()).square().sum(1)

    assert (lost(found) <= lost(usual) * 1.002).all()  # a scale has few digits
    if weight.abs().amax(1).min() > 0:
        assert lost(found).sum() < 0.995 * lost(usual).sum()


def test_what_is_rounded_again_is_the_same(weight):
    once = quantize_by_error(weight)
    for again in (quantize_by_max(once.dequantize()), quantize_by_error(once.dequantize())):
        assert torch.equal(again.values, once.values)
        assert torch.equal(again.dequantize(), once.dequantize())


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_weights_has_its_shapes_and_all_that_is_computed(kind):
    real, empty = model_of(kind), empty_model(model_of(kind).config).eval()
    assert {n: t.shape for n, t in weights(empty).items()} == {n: t.shape for n, t in weights(real).items()}
    assert all(weights(empty)[name].is_meta for name in quantizable(empty))
    for name, buffer in real.named_buffers():
        assert torch.equal(dict(empty.named_buffers())[name], buffer)
    set_weights(empty, weights(real))
    with torch.no_grad():
        assert torch.equal(empty(SRC, TGT), real(SRC, TGT))


@pytest.mark.parametrize("precision", ["int8", "fp32"])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_same_runs_whether_loaded_as_stored_or_in_float32(kind, precision):
    """Straight to the kernels, and by way of float32 where they are rounded once more: in int8 to the last bit."""
    model = model_of(kind)
    small, large = empty_model(model.config).eval(), empty_model(model.config).eval()
    stored = quantize(model, weights(model))
    set_weights(small, stored)
    set_weights(
        large,
        {n: Int8Matrix(stored[n], stored[s]).dequantize() for n in quantizable(model) if (s := n[:-6] + "scales")},
    )
    set_weights(large, {n: t for n, t in weights(model).items() if n not in quantizable(model)})
    assert is_quantized(small)
    assert not is_quantized(large)
    found, expected = prepare(small, precision)(SRC, TGT), prepare(large, precision)(SRC, TGT)
    torch.testing.assert_close(found, expected, atol=0 if precision == "int8" else 1e-5, rtol=0)
    assert (found - model(SRC, TGT)).abs().max() < 0.1 * expected.abs().max()
    assert not torch.equal(found, model(SRC, TGT))  # it does round


def test_a_bundle_in_int8_is_a_quarter_and_says_so(tmp_path):
    make(tmp_path / "large", "float32", d_model=256, d_ff=512)
    make(tmp_path / "small", d_model=256, d_ff=512)
    sizes = {name: (tmp_path / name / "model.safetensors").stat().st_size for name in ("large", "small")}
    assert sizes["small"] < 0.28 * sizes["large"]
    config = json.loads((tmp_path / "small" / "config.json").read_text())
    assert config["weights"] == "int8"
    assert config["format_version"] == 2  # which an older glassformer refuses, with a word on what to do
    names = {"config.json", "model.safetensors", "recipe.toml", "source_words.txt.xz", "tokenizer.json.xz"}
    assert {file.name for file in (tmp_path / "small").iterdir()} == names
    assert not any("positions" in name for name in load_file(tmp_path / "small" / "model.safetensors"))


def test_six_bits_are_packed_in_three_quarters_of_the_bytes(weight):
    for width in (1536, 7, 6, 5, 1):
        once = quantize_by_error(weight[:, :width], SIX)
        assert len(once.values.unique()) <= 63
        packed = pack_six(once.values)
        assert (packed.dtype, packed.shape) == (torch.uint8, (40, -(-width // 4) * 3))
        assert torch.equal(unpack_six(packed, width), once.values)
        again = quantize_by_error(once.dequantize())  # whoever reads it may round it again
        assert torch.equal(again.dequantize(), once.dequantize())


def test_a_bundle_in_six_bits_is_smaller_and_reads_as_one_in_eight(tmp_path):
    model = make(tmp_path / "six", "int6", d_model=256, d_ff=512)
    make(tmp_path / "eight", d_model=256, d_ff=512)
    sizes = {name: (tmp_path / name / "model.safetensors").stat().st_size for name in ("six", "eight")}
    assert sizes["six"] < 0.78 * sizes["eight"]
    assert json.loads((tmp_path / "six" / "config.json").read_text())["format_version"] == 5
    loaded = bundle.load(tmp_path / "six", rounded=True).model
    found = weights(loaded)
    for name in quantizable(model):
        expected = quantize_by_error(weights(model)[name], SIX)
        assert torch.equal(found[name], expected.values)
        assert torch.equal(found[scales_name(name)], expected.scales)


def test_it_loads_as_any_other(tmp_path):
    model = make(tmp_path)
    loaded = bundle.load(tmp_path)
    assert not is_quantized(loaded.model)
    for name, value in bundle.weights(loaded.model).items():
        expected = bundle.weights(model)[name].detach()
        torch.testing.assert_close(value, expected, atol=float(expected.abs().max()) / 50, rtol=0)
    assert loaded.model.head.weight is loaded.model.encoder.embedding.tokens.weight
    learnt = Tokenizer.train(PAIRS, TokenizerOptions(kind="words"))
    assert loaded.tokenizer.encode_source(["one two"]) == learnt.encode_source(["one two"])
    assert loaded.tokenizer.words == {"one", "two", "three", "four", "five", "six", "seven"}
    assert all(parameter.requires_grad for parameter in loaded.model.parameters())  # and can be trained on
    loaded.model(SRC % 10, TGT % 10).sum().backward()


@pytest.mark.parametrize("precision", ["int8", "fp32", "auto"])
def test_a_translator_says_the_same_as_one_of_the_plain_model(tmp_path, precision):
    make(tmp_path)
    small = gf.Translator.load(tmp_path, precision=precision)
    loaded = bundle.load(tmp_path)
    plain = gf.Translator(loaded.model, loaded.tokenizer, precision=small.engine.precision)
    texts = ["one two three", "six", "seven five four"]
    assert small.translate(texts, beam=3, nbest=2) == plain.translate(texts, beam=3, nbest=2)
    assert small.about.purpose == "numbers"
    assert not is_quantized(small.model)  # asked for, it is the plain one
    assert small.translate(texts) == plain.translate(texts)
    with torch.no_grad():
        small.model.head.weight.mul_(-1)  # and what is changed in it, runs
    assert small.translate(texts) != plain.translate(texts)


def test_no_float32_copy_is_ever_made(tmp_path):
    model = make(tmp_path, d_model=128, d_ff=512)
    smallest = 128 * 128
    with Floats() as floats:
        translator = gf.Translator.load(tmp_path, precision="int8")
        translator("one two three")
    assert floats.most < smallest
    with Floats() as floats:
        gf.Translator.load(tmp_path, precision="fp32")("one")
    largest = max(tensor.numel() for tensor in model.parameters())
    assert smallest <= floats.most <= largest  # one matrix at a time


@pytest.mark.parametrize("stored_as", ["int8", "int6"])
def test_a_bundle_is_packed(tmp_path, stored_as):
    make(tmp_path / "large", "float32")
    bundle.pack(tmp_path / "large", tmp_path / "small", stored_as)
    assert gf.Translator.load(tmp_path / "small").about.purpose == "numbers"
    bundle.pack(tmp_path / "small", tmp_path / "again", stored_as)
    for name in ("model.safetensors", "config.json", "tokenizer.json.xz", "source_words.txt.xz"):
        assert (tmp_path / "small" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    with pytest.raises(WeightsError, match="again exists already; name a folder that is not there yet"):
        bundle.pack(tmp_path / "large", tmp_path / "again")


def test_one_form_replaces_the_other(tmp_path):
    make(tmp_path, "float32")
    make(tmp_path, "int8")
    assert not (tmp_path / "tokenizer.json").exists()
    make(tmp_path, "float32")
    assert not (tmp_path / "tokenizer.json.xz").exists()
    bundle.load(tmp_path)


def test_what_is_wrong_with_one_is_told(tmp_path):
    make(tmp_path)
    with pytest.raises(ConfigError, match="weights='int4' is not one of `float32`, `int8`"):
        make(tmp_path, "int4")
    path = tmp_path / "model.safetensors"
    stored = load_file(path)
    for name in ("head.scales", "encoder.blocks.0.feed_forward.up.weight", "encoder.blocks.0.feed_forward.up.bias"):
        name = "encoder.embedding.tokens.scales" if name == "head.scales" else name
        save_file({n: t for n, t in stored.items() if n != name}, path)
        with pytest.raises(WeightsError, match=f"the weights do not fit config.json at `{name}`"):
            bundle.load(tmp_path)
    name = "encoder.blocks.0.feed_forward.up.weight"
    save_file(stored | {name: stored[name].float()}, path)
    with pytest.raises(WeightsError, match=f"the weights do not fit config.json at `{name}`"):
        bundle.load(tmp_path)
    bundle.write_weights(tmp_path, stored, json.loads((tmp_path / "config.json").read_text()))
    (tmp_path / "tokenizer.json.xz").write_bytes(b"no xz")
    with pytest.raises(gf.errors.DataError, match=r"tokenizer.json(.xz)? "):
        bundle.load(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"weights": "int4"}))
    with pytest.raises(WeightsError, match=r"config.json: weights='int4' is not one of `float32`, `int8`"):
        bundle.load(tmp_path)
