"""A trace of an encoder alone: what fills its gaps, its labels, an image in its squares; what a change does to them."""

import io

import pytest
import torch
from arithmetic import check
from rich.console import Console
from tiny import tiny

import glassformer as gf
from glassformer.common.errors import ConfigError, InputError

SOURCE = [5, 9, 4, 17, 3]
HEAD = {"kind": "remove_head", "stack": "encoder", "layer": 0, "head": 1}
IMAGES = {
    "grey, a label of the whole": {"labels": 3, "channels": 1, "patch_size": 2},
    "colours, as published": {"vocab_size": 5, "channels": 3, "patch_size": 4, "output_bias": True},
}


def image_model(name):
    return tiny(gf.EncoderOnly, **{"image_size": 8, "tied": False, "positions": "learned"} | IMAGES[name])


def image_for(model):
    shape = (model.config.channels, 8, 8)
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def shown(trace, **how):
    console = Console(file=io.StringIO(), width=150)
    trace.show(console=console, **how)
    return console.file.getvalue()


@pytest.mark.parametrize("more", [{}, {"output_transform": True, "norm": "post", "segments": 2, "output_bias": True}])
@torch.no_grad()
def test_labels_are_those_of_the_model(more):
    model = tiny(gf.EncoderOnly, labels=3, tied=False, **more)
    found = gf.trace(model, SOURCE, padding=2)
    assert check(found)["first"] == 1
    expected = model(torch.tensor([SOURCE]))[0].softmax(-1)
    (place,) = found.answer["places"]
    assert found.answer["kind"] == "label"
    assert [one["piece"] for one in place["top"]] == [str(int(i)) for i in expected.argsort(descending=True)]
    for one in place["top"]:
        assert abs(one["probability"] - float(expected[one["id"]])) < 1e-6
    assert found.said == place["top"][0]["piece"]
    assert found.output is None
    assert found.beam is None
    assert found.cache is None
    assert found.manifest()["model"]["task"] == "label"
    with pytest.raises(ConfigError, match="encoder-only"):
        gf.trace(model, SOURCE, target=[3])
    assert found.said in shown(found)


@torch.no_grad()
def test_without_a_gap_every_place_is_told():
    model = tiny(gf.EncoderOnly)
    found = gf.trace(model, SOURCE, padding=2)
    expected = model(torch.tensor([SOURCE]))[0].log_softmax(-1)
    assert found.answer["masked"] is False
    assert [place["position"] for place in found.answer["places"]] == [0, 1, 2, 3, 4]  # no padding
    for i, place in enumerate(found.answer["places"]):
        assert place["top"][0]["id"] == int(expected[i].argmax())
        assert abs(place["top"][0]["log_probability"] - float(expected[i].max())) < 1e-5
    assert found.said is None
    assert "no token is masked" in shown(found)


@pytest.mark.parametrize("name", IMAGES)
@torch.no_grad()
def test_an_image_is_read_in_squares_and_every_number_can_be_made_again(name):
    model = image_model(name)
    image, side = image_for(model), model.config.patch_size
    found = gf.trace(model, image)
    kinds = check(found)
    assert kinds["pixels"] == kinds["prepend"] == 1
    across = 8 // side
    for row in range(across):
        for column in range(across):
            square = image[:, row * side : (row + 1) * side, column * side : (column + 1) * side]
            assert torch.equal(found["encoder.embedding.pixels"][row * across + column], square.flatten())
    places = found.manifest()["source"]["pieces"]
    assert places[:3] == ["[CLS]", "0,0", "0,1"]
    assert len(places) == across**2 + 1 == found["encoder.blocks.0.self_attention.pattern"].shape[-1]
    logits = model(image.unsqueeze(0))[0]
    logits = logits if model.config.labels else logits[0]  # published models have logits at every place
    best = found.answer["places"][0]["top"][0]
    assert best["id"] == int(logits.argmax())
    assert abs(best["probability"] - float(logits.softmax(-1).max())) < 1e-6
    assert found.run != gf.trace(model, image.flip(-1)).run
    assert found.run == gf.trace(model, image.unsqueeze(0)).run


@pytest.mark.parametrize("kind", ["labels", "gaps", *IMAGES])
@torch.no_grad()
def test_a_change_is_measured_on_what_the_first_answer_put_first(kind):
    if kind in IMAGES:
        model = image_model(kind)
        given = image_for(model)
    else:
        model, given = tiny(gf.EncoderOnly, **{"labels": 3, "tied": False} if kind == "labels" else {}), SOURCE
    told = gf.what_if(model, given, [HEAD])
    assert len(told.difference.forced) == (len(SOURCE) if kind == "gaps" else 1)
    changed = gf.trace(model, given, changes=[HEAD])["logits"].log_softmax(-1)
    plain = gf.trace(model, given)["logits"].log_softmax(-1)
    for i, row in enumerate(told.difference.forced):
        id = int(plain[i].argmax())
        assert abs(row["before"] - float(plain[i, id])) < 1e-5
        assert abs(row["after"] - float(changed[i, id])) < 1e-5
    assert any(abs(row["difference"]) > 1e-4 for row in told.difference.forced)
    hot = gf.what_if(model, given, [{"kind": "temperature", "value": 3.0}]).difference
    assert hot.total_after < hot.total_before
    assert hot.same_output


def test_what_an_image_has_not_is_refused():
    model = image_model("colours, as published")
    image = image_for(model)
    for change, why in (
        ({"kind": "remove_mask", "mask": "padding"}, "an image has no padding"),
        ({"kind": "swap_token", "position": 0, "id": 3}, "an image has no tokens"),
        ({"kind": "prefix", "ids": [3]}, "writes nothing"),
    ):
        with pytest.raises(InputError, match=why):
            gf.trace(model, image, changes=[change])
    with pytest.raises(ConfigError, match="padding=2"):
        gf.trace(model, image, padding=2)
    for wrong in (image[:, :4], image.long(), "seven", [3, 4]):
        with pytest.raises(InputError, match=r"images of shape \(3, 8, 8\)"):
            gf.trace(model, wrong)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_terminal_speaks_of_no_part_that_is_not_there(lang):
    translated = shown(gf.trace(tiny(), SOURCE, max_new_tokens=3), lang=lang)
    for model, absent in (
        (tiny(gf.EncoderOnly), ("decoder", "cross", "src", "tgt", "目标", "源")),
        (tiny(gf.EncoderOnly, labels=3, tied=False), ("decoder", "cross", "src", "tgt", "目标", "源")),
        (tiny(gf.DecoderOnly), ("encoder", "cross", "src", "tgt", "目标", "源")),
    ):
        more = {"max_new_tokens": 3} if isinstance(model, gf.DecoderOnly) else {}
        said = shown(gf.trace(model, SOURCE, **more), lang=lang)
        assert [word for word in absent if word in said] == []
    assert "cross" in translated
    assert "decoder" in translated
