"""Wrong use is met with words that hold the numbers."""

import pytest
import torch

import glassformer as gf
from glassformer.common.errors import ConfigError, InputError


def config(**changes):
    return gf.ModelConfig(
        **({"vocab_size": 20, "d_model": 16, "heads": 4, "d_ff": 8, "layers": 1, "max_length": 6} | changes)
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"d_model": 30, "heads": 4}, ["d_model=30", "heads=4", "heads=3"]),
        ({"decoder_heads": 3}, ["decoder_heads=3", "d_model=16"]),
        ({"positions": "rotary", "d_model": 12, "heads": 4}, ["rotary", "even", "gives 3"]),
        ({"positions": "sinusoidal", "d_model": 15, "heads": 3}, ["d_model=15", "even"]),
        ({"positions": "sinusodal"}, ["'sinusodal'", "did you mean `sinusoidal`"]),
        ({"norm": "middle"}, ["norm='middle'", "`pre`", "`post`"]),
        ({"kv_heads": 3}, ["heads=4", "kv_heads=3"]),
        ({"dropout": 1.5}, ["dropout=1.5"]),
        ({"layers": -1}, ["layers=-1"]),
        ({"vocab_size": 0}, ["vocab_size=0"]),
        ({"d_model": "wide"}, ["d_model='wide'", "int"]),
        ({"d_model": 16.0}, ["d_model=16.0", "float"]),
        ({"heads": True}, ["heads=True", "bool"]),
        ({"end_id": 20}, ["end_id=20", "20 pieces"]),
        ({"positions": "relative", "relative_buckets": 6}, ["relative_buckets=6"]),
    ],
)
def test_options_that_do_not_fit(changes, words):
    with pytest.raises(ConfigError) as error:
        config(**changes)
    for word in words:
        assert word in str(error.value)


def test_an_unknown_setting_is_named():
    with pytest.raises(ConfigError, match="unknown model setting `d_modle`; did you mean `d_model`"):
        gf.ModelConfig.from_dict({"vocab_size": 5, "d_modle": 4})


IDS = torch.tensor([[3, 4, 5]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m(torch.tensor([[3, 20]]), IDS), ["id 20", "vocabulary of 20", "0 to 19"]),
        (lambda m: m(IDS, torch.tensor([[-1, 3]])), ["id -1", "vocabulary of 20"]),
        (lambda m: m(torch.full((1, 7), 3), IDS), ["7 tokens", "table of 6", "max_length=7"]),
        (lambda m: m(IDS, IDS, torch.ones(1, 3)), ["torch.float32", "torch.bool"]),
        (lambda m: m(IDS, IDS, torch.ones(1, 3, dtype=torch.long)), ["torch.int64", ".bool()"]),
        (lambda m: m(IDS, IDS, torch.ones(1, 4, dtype=torch.bool)), ["(1, 4)", "(1, 3)"]),
        (lambda m: m(IDS, IDS, torch.ones(1, 1, 1, 3, dtype=torch.bool)), ["(1, 1, 1, 3)", "(batch, length)"]),
        (lambda m: m(IDS[0], IDS), ["(3,)", "(batch, length)"]),
        (lambda m: m(IDS.float(), IDS), ["torch.float32", "whole numbers"]),
        (lambda m: m.decode(IDS, torch.zeros(2, 3, 16)), ["(2, 3, 16)", "(1, 3)"]),
        (lambda m: m.decode(IDS, torch.zeros(1, 3, 8)), ["(1, 3, 8)", "16"]),
    ],
)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_input_that_does_not_fit(call, words, positions):
    model = gf.EncoderDecoder(config(positions=positions)).eval()
    with pytest.raises(InputError) as error:
        call(model)
    for word in words:
        assert word in str(error.value)


def test_a_cache_that_does_not_fit():
    model = gf.EncoderDecoder(config()).eval()
    memory = model.encode(IDS)
    with pytest.raises(InputError, match="0 of at most 2 tokens; 3 more do not fit"):
        model.decode(IDS, memory, cache=model.new_cache(2))
    with pytest.raises(InputError, match="2 layers but the model has 1"):
        model.decode(IDS, memory, cache=gf.EncoderDecoder(config(layers=2)).new_cache(4))
    with pytest.raises(InputError, match="holds nothing"):
        model.new_cache(0)
    cache = model.new_cache(5)
    with torch.no_grad():
        model.decode(IDS, memory, cache=cache)
        with pytest.raises(InputError, match="batch of 1 sequences but 2"):
            model.decode(IDS.repeat(2, 1), memory.repeat(2, 1, 1), cache=cache)
    with pytest.raises(InputError, match="longer than the position table of 6"):
        model.decode(IDS.repeat(1, 2)[:, :5], memory, cache=_filled(model, memory, 3))


def _filled(model, memory, tokens):
    cache = model.new_cache(20)
    with torch.no_grad():
        model.decode(torch.full((1, tokens), 4), memory, cache=cache)
    return cache


def test_segments_are_refused_where_there_are_none():
    with pytest.raises(InputError, match="knows no segments"):
        gf.EncoderOnly(config())(IDS, segments=torch.zeros_like(IDS))
    with pytest.raises(InputError, match="segment 2 lies outside"):
        gf.EncoderOnly(config(segments=2))(IDS, segments=torch.full_like(IDS, 2))


@pytest.mark.parametrize("kind", [gf.EncoderOnly, gf.DecoderOnly])
def test_places_go_with_nothing_that_they_would_overrule(kind):
    """A mask beside them was dropped without a word."""
    model = kind(gf.ModelConfig(vocab_size=20, d_model=16, heads=2, d_ff=32, layers=1)).eval()
    places = torch.tensor([[0, 1, 0]])
    model(IDS, places=places)
    for options, words in (
        ({"places": places, "mask": torch.ones(1, 3, dtype=torch.bool)}, "no mask and no cache"),
        ({"places": places.float()}, r"are torch.float32 of shape \(1, 3\).*whole numbers"),
        ({"places": places[0]}, r"of shape \(3,\).*\(1, 3\)"),
    ):
        with pytest.raises(InputError, match=words):
            model(IDS, **options)


def test_texts_that_are_no_pairs_are_refused():
    model = gf.EncoderDecoder(gf.ModelConfig(vocab_size=20, d_model=16, heads=2, d_ff=32, layers=1)).eval()
    with pytest.raises(InputError, match=r"src \(1, 3\) and tgt \(2, 3\) go by rows"):
        model(IDS, IDS.repeat(2, 1))
    with pytest.raises(InputError, match="with places both or none"):
        model(IDS, IDS, src_places=torch.tensor([[0, 1, 2]]))
    labels = gf.EncoderOnly(gf.ModelConfig(vocab_size=20, d_model=16, heads=2, d_ff=32, layers=1, labels=3, tied=False))
    with pytest.raises(InputError, match="one text a row"):
        labels.eval()(IDS, places=torch.tensor([[0, 1, 0]]))
