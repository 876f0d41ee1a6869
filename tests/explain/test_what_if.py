"""`gf.what_if`: each change does what its name says, to a copy, and decoding really uses the changed model."""

import copy
import json
import math

import pytest
import torch
from arithmetic import check
from tiny import tiny, translator

import glassformer as gf
from glassformer.common.errors import GlassformerError
from glassformer.model.attention import Attention

SOURCE = [5, 9, 4, 17, 3]
TEXT = "one two seven ten"
OPTIONS = {"padding": 2, "max_new_tokens": 8}
KINDS = ["pre", "post"]
BEAMS = {"pre": (1,), "post": (3,)}  # how a model is searched does not hang on where its norms stand


@pytest.fixture(scope="module")
def t():
    return translator()


def spoiled(model, spoil):
    """A copy with its weights or modules really changed."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        spoil(other)
    return other


def agree(model, change, other, beams=(1, 3), **options):
    """The changed model writes and computes what another model does that lacks the part for good."""
    for beam in beams:
        found = gf.what_if(model, SOURCE, [change], beam=beam, **OPTIONS | options)
        expected = gf.trace(other, SOURCE, beam=beam, **OPTIONS | options)
        assert found.after.output["ids"] == expected.output["ids"]
        assert torch.allclose(found.after["logits"], expected["logits"], atol=1e-5)
        plain = gf.trace(model, SOURCE, beam=beam, **OPTIONS | options)
        assert found.before.run == plain.run
        assert found.before.blob() == plain.blob()
        assert not torch.equal(found.after["logits"][0], plain["logits"][0])
        forced = gf.trace(other, SOURCE, target=plain.written.ids, **OPTIONS | options)
        for row, step in zip(found.difference.forced, forced.steps, strict=False):
            assert row["after"] == pytest.approx(step["chosen_log_probability"], abs=1e-4)
        check(found.after)
    return found


@pytest.mark.parametrize("norm", KINDS)
@pytest.mark.parametrize(("stack", "which"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
def test_a_removed_head_is_as_if_its_columns_of_w_o_were_zero(norm, stack, which):
    model = tiny(norm=norm)

    def spoil(other):
        attention = getattr(getattr(other, stack).blocks[1], f"{which}_attention")
        attention.output.weight[:, 4:8] = 0

    change = {"kind": "remove_head", "stack": stack, "layer": 1, "attention": which, "head": 1}
    found = agree(model, change, spoiled(model, spoil), BEAMS[norm])
    context = found.after.value(f"{stack}.blocks.1.{which}_attention.context")
    assert (context.op["kind"], context.op["by"], context.op["heads"]) == ("replaced", change, [1])
    assert context.value[1].abs().max() == 0
    assert context.value[0].abs().max() > 0


@pytest.mark.parametrize("norm", KINDS)
@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_a_removed_layer(norm, stack):
    model = tiny(norm=norm)
    other = spoiled(model, lambda other: getattr(other, stack).blocks.__delitem__(0))
    change = {"kind": "remove_layer", "stack": stack, "layer": 0}
    for beam in BEAMS[norm]:
        found = gf.what_if(model, SOURCE, [change], beam=beam, **OPTIONS)
        src, mask = torch.tensor([found.after.source]), torch.tensor([found.after.real])
        (best,) = gf.generate(other, src, mask, beam=beam, max_new_tokens=8)[0]
        assert found.after.output["ids"] == best.ids
        with torch.no_grad():
            logits = other(src, torch.tensor([found.after.written.reads]), mask)[0]
        assert torch.allclose(found.after["logits"], logits, atol=1e-5)
        assert torch.equal(found.after[f"{stack}.blocks.0"], found.after[f"{stack}.embedding"])
        check(found.after)


@pytest.mark.parametrize("norm", KINDS)
@pytest.mark.parametrize("layer", [0, None])
def test_removed_cross_attention(norm, layer):
    model = tiny(norm=norm)

    def spoil(other):
        for block in other.decoder.blocks if layer is None else [other.decoder.blocks[layer]]:
            block.cross_attention.output.weight.zero_()
            block.cross_attention.output.bias.zero_()

    agree(model, {"kind": "remove_cross", "layer": layer}, spoiled(model, spoil), BEAMS[norm])
    if layer is None:  # blind to the source, the model says the same whatever it is given
        runs = [gf.trace(model, s, changes=[{"kind": "remove_cross"}], max_new_tokens=8) for s in (SOURCE, [8, 8])]
        assert runs[0].output["ids"] == runs[1].output["ids"]


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "relative"])
def test_removed_positions(positions):
    """Without them, the encoder gives each word the same vector wherever it stands."""
    model = tiny(positions=positions, seed=4)
    change = {"kind": "remove_positions", "stack": None}
    found = gf.what_if(model, SOURCE, [change], **OPTIONS)
    turned = gf.trace(model, SOURCE[::-1], changes=[change], max_new_tokens=8)
    assert torch.allclose(found.after["memory"][:5], turned["memory"].flip(0), atol=1e-4)
    assert found.after.output["ids"] == turned.output["ids"]
    assert not torch.allclose(found.before["memory"], found.after["memory"], atol=1e-2)
    check(found.after)
    one = gf.trace(model, SOURCE, changes=[{"kind": "remove_positions", "stack": "decoder"}], **OPTIONS)
    assert torch.equal(one["memory"], found.before["memory"])


def test_a_removed_scale():
    model = tiny()

    def spoil(other):
        for module in other.modules():
            if isinstance(module, Attention):
                module.scale = 1.0

    found = agree(model, {"kind": "remove_scale"}, spoiled(model, spoil))
    assert found.after.value("encoder.blocks.0.self_attention.scores").op["by"] == 1.0


def test_a_removed_padding_mask():
    """Padding is then read like any token: as if the model had been given it as words."""
    model = tiny()
    found = gf.what_if(model, SOURCE, [{"kind": "remove_mask", "mask": "padding"}], beam=2, **OPTIONS)
    expected = gf.trace(model, [*SOURCE, 0, 0], beam=2, max_new_tokens=8)
    assert found.after["masks.encoder"].min() == found.after["masks.cross"].min() == 1
    assert torch.allclose(found.after["logits"], expected["logits"], atol=1e-5)
    assert found.after.output["ids"] == expected.output["ids"]
    assert found.before["masks.cross"].min() == 0
    check(found.after)
    alone = gf.trace(tiny(gf.DecoderOnly), SOURCE, changes=[{"kind": "remove_mask", "mask": "padding"}], **OPTIONS)
    assert torch.equal(alone["masks.decoder"], torch.ones_like(alone["masks.decoder"]).tril())
    check(alone)


def read_anew(model, kind, source, prompt, chosen):
    """The log-probability of every token, each from a pass over nothing but what was written before it."""
    found = []
    with torch.no_grad():
        for n, token in enumerate(chosen):
            ids = torch.tensor([prompt + chosen[:n]])
            logits = model(torch.tensor([source]), ids) if kind is gf.EncoderDecoder else model(ids)
            found.append(float(logits[0, -1].double().log_softmax(-1)[token]))
    return found


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("kind", [gf.EncoderDecoder, gf.DecoderOnly])
def test_without_the_causal_mask_every_number_is_of_the_step_that_wrote_the_token(kind, beam):
    """A step sees what stands before it and no future, so one pass over the whole output would tell other numbers."""
    model = tiny(kind)
    change = {"kind": "remove_mask", "mask": "causal"}
    found = gf.what_if(model, SOURCE, [change], beam=beam, max_new_tokens=8)
    after = found.after
    assert after["masks.decoder"].min() == 1
    check(after)
    other = spoiled(model, lambda other: setattr(other.decoder, "causal", False))
    written = after.written
    own = read_anew(other, kind, SOURCE, written.prompt, written.chosen)
    assert [step["chosen_log_probability"] for step in after.steps] == pytest.approx(own, abs=1e-5)
    assert after.output["score"] == after.steps[-1]["total"] / len(own)
    assert [n["total"] for n in after.beam["nodes"] if n["winner"]][1:] == [step["total"] for step in after.steps]
    if beam == 1:
        assert all(step["chosen"] == step["top"][0]["id"] for step in after.steps)
    # The values are those of the last step, which read the whole output.
    assert not after.one_pass
    last = [row["log_probability"] for row in after.steps[-1]["top"]]
    assert last == pytest.approx(after["logits"][-1].double().log_softmax(-1).topk(len(last)).values.tolist(), abs=1e-6)
    first = found.before.written
    forced = read_anew(other, kind, SOURCE, first.prompt, first.chosen)
    assert [row["after"] for row in found.difference.forced] == pytest.approx(forced, abs=1e-5)


def test_a_cache_is_called_equal_only_where_it_is():
    model = tiny()
    found = gf.what_if(model, SOURCE, [{"kind": "remove_mask", "mask": "causal"}], max_new_tokens=8)
    before, after = found.before.cache, found.after.cache
    assert (before["equal"], before["used"], after["equal"], after["used"]) == (True, True, False, False)
    assert after["max_difference"] > 1e-3 > before["max_difference"]
    for change in ({"kind": "remove_scale"}, {"kind": "remove_positions"}, {"kind": "remove_cross"}):
        assert gf.trace(model, SOURCE, changes=[change], max_new_tokens=8).cache["equal"]
    # One token alone has nothing before it that a cache could keep.
    one = gf.trace(model, SOURCE, changes=[{"kind": "remove_mask", "mask": "causal"}], max_new_tokens=1).cache
    assert one["equal"]
    assert not one["used"]


def test_a_swapped_token(t):
    found = gf.what_if(t, TEXT, [{"kind": "swap_token", "position": 2, "piece": "nine"}], beam=2)
    assert found.after.manifest()["source"]["pieces"] == ["one", "two", "nine", "ten"]
    assert found.after.text == TEXT
    expected = gf.trace(t, "one two nine ten", beam=2)
    assert found.after.output == expected.output
    assert torch.equal(found.after["logits"], expected["logits"])
    id = t.tokenizer.encode_source(["nine"])[0][0]
    again = gf.trace(t, TEXT, beam=2, changes=[{"kind": "swap_token", "position": 2, "id": id}])
    assert torch.equal(again["logits"], expected["logits"])


@pytest.mark.parametrize("beam", [1, 3])
def test_a_forced_prefix(t, beam):
    found = gf.what_if(t, TEXT, [{"kind": "prefix", "pieces": ["SIX", "TEN"]}], beam=beam)
    assert found.after.output["pieces"][:2] == ["SIX", "TEN"]
    assert found.after.options.prefix == tuple(found.after.output["ids"][:2])
    by_ids = gf.trace(t, TEXT, beam=beam, changes=[{"kind": "prefix", "ids": found.after.output["ids"][:2]}])
    assert by_ids.output == found.after.output
    assert gf.trace(t, TEXT, beam=beam, prefix=["SIX", "TEN"]).output == found.after.output
    # The model itself is the same, and so is what it thinks of its first output.
    assert all(row["difference"] == 0 for row in found.difference.forced)


def test_a_temperature():
    model = tiny(tied=False)
    found = gf.what_if(model, SOURCE, [{"kind": "temperature", "value": 0.5}], beam=3, **OPTIONS)
    after = found.after
    assert torch.allclose(after["probabilities"], (after["logits"] / 0.5).softmax(-1), atol=1e-6)
    colder = spoiled(model, lambda other: other.head.weight.mul_(2))  # half the temperature, twice the logits
    expected = gf.trace(colder, SOURCE, beam=3, **OPTIONS)
    assert after.output["ids"] == expected.output["ids"]
    assert after.output["score"] == pytest.approx(expected.output["score"], abs=1e-4)
    assert after.steps[-1]["total"] == pytest.approx(after.output["score"] * len(after.steps), abs=1e-4)
    assert found.difference.total_after != found.difference.total_before


def test_the_difference_as_the_contract_has_it(t):
    found = gf.what_if(t, TEXT, [{"kind": "remove_cross"}])
    told = json.loads(json.dumps(found.as_dict(), allow_nan=False))["difference"]
    assert set(told) == {
        "output_before", "output_after", "same_output", "forced", "total_before", "total_after", "total_difference",
        "largest",
    }  # fmt: skip
    assert told["output_before"] == found.before.output["text"]
    assert told["output_after"] == found.after.output["text"]
    assert told["total_before"] == pytest.approx(found.before.steps[-1]["total"])
    assert told["total_difference"] == pytest.approx(sum(row["difference"] for row in told["forced"]))
    assert abs(told["largest"]["difference"]) == max(abs(row["difference"]) for row in told["forced"])
    assert math.isclose(told["forced"][0]["after"] - told["forced"][0]["before"], told["forced"][0]["difference"])


def test_several_changes_at_once(t):
    changes = [
        {"kind": "remove_head", "stack": "decoder", "layer": 0, "head": 0},
        {"kind": "remove_head", "stack": "decoder", "layer": 0, "head": 2},
        {"kind": "swap_token", "position": 0, "piece": "five"},
        {"kind": "temperature", "value": 2},
    ]
    after = gf.trace(t, TEXT, changes=changes)
    context = after["decoder.blocks.0.self_attention.context"]
    assert [bool(context[h].abs().max() > 0) for h in range(4)] == [False, True, False, True]
    assert after.value("decoder.blocks.0.self_attention.context").op["heads"] == [0, 2]
    assert after.manifest()["changes"][0]["attention"] == "self"
    assert after.options.temperature == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "remove_heads"}, "did you mean `remove_head`"),
        ({"kind": "remove_head", "stack": "decoder", "layer": 2, "head": 0}, "the 2 layers are numbered 0 to 1"),
        ({"kind": "remove_head", "stack": "decoder", "layer": 0, "head": 4}, "head 4; the 4 heads are numbered 0 to 3"),
        ({"kind": "remove_head", "stack": "encoder", "layer": 0, "head": 0, "attention": "cross"}, "not 'cross'"),
        ({"kind": "remove_head", "stack": "decoder", "layer": 0}, "needs `head`"),
        ({"kind": "remove_layer", "stack": "coder", "layer": 0}, "no stack 'coder', only `encoder`, `decoder`"),
        ({"kind": "remove_layer", "stack": "encoder", "layer": "0"}, "no layer '0'"),
        ({"kind": "remove_layer", "stack": "encoder", "layr": 0}, "did you mean `layer`"),
        ({"kind": "remove_mask", "mask": "future"}, "`causal` or `padding`"),
        ({"kind": "swap_token", "position": 4, "piece": "one"}, "the 4 tokens are numbered 0 to 3"),
        ({"kind": "swap_token", "position": 0, "piece": "elevn"}, "did you mean `eleven`"),
        ({"kind": "swap_token", "position": 0}, "`piece`, or an `id`"),
        ({"kind": "swap_token", "position": 0, "id": 9999}, "id 9999"),
        ({"kind": "prefix"}, "`pieces`, or `ids`"),
        ({"kind": "prefix", "pieces": "ONE"}, "not a list"),
        ({"kind": ["remove_head"]}, "no change is of kind ['remove_head']"),
        ({"kind": "remove_scale", 3: 4}, "of type dict; it must be a dict of str to Any"),
        ({"kind": "remove_head", "stack": "decoder", "layer": 0, "head": 0, "attention": []}, "not []"),
        ({"kind": "swap_token", "position": 0, "piece": 5}, "the piece 5 is not text"),
        ({"kind": "temperature", "value": 1e-300}, "temperature=1e-300 must be a number above 0, from 0.001 to 1000"),
        ({"kind": "temperature", "value": "hot"}, "above 0"),
        ({}, "names no `kind`"),
        ("remove_scale", "of type str; it must be a dict of str to Any"),
    ],
)  # fmt: skip
def test_bad_changes_are_told_with_their_range(t, change, told):
    with pytest.raises(GlassformerError) as error:
        gf.what_if(t, TEXT, [change])
    assert told in str(error.value)
    with pytest.raises(GlassformerError, match="needs a change"):
        gf.what_if(t, TEXT, [])


@pytest.mark.parametrize(
    ("model", "change", "told"),
    [
        ({"kind": gf.EncoderOnly}, {"kind": "remove_mask", "mask": "causal"}, "no causal mask"),
        ({"kind": gf.DecoderOnly}, {"kind": "remove_cross"}, "only an encoder-decoder"),
        ({"kind": gf.EncoderOnly}, {"kind": "prefix", "ids": [1]}, "writes nothing"),
        ({"positions": "none"}, {"kind": "remove_positions"}, "no positions"),
    ],
)
def test_changes_that_a_model_has_no_part_for(model, change, told):
    with pytest.raises(GlassformerError, match=told):
        gf.what_if(tiny(**model), SOURCE, [change])
