"""`glassformer trace` and `glassformer serve` on folders of models that do not translate."""

import json

import numpy as np
import pytest

import glassformer as gf
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.data.readers import digits
from glassformer.deploy.server.directions import folder_directions
from glassformer.deploy.server.requests import decode_image
from glassformer.weights import bundle

SIZES = {"d_model": 16, "heads": 2, "d_ff": 24, "layers": 1, "max_length": 40, "dropout": 0.0}
KINDS = {
    "gpt": (gf.DecoderOnly, {}, ()),
    "bert": (gf.EncoderOnly, {}, ()),
    "kinds": (gf.EncoderOnly, {"labels": 2, "tied": False}, ("even", "odd")),
    "digits": (gf.EncoderOnly, {"labels": 2, "tied": False, "image_size": 8, "patch_size": 4, "channels": 1}, ()),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("kinds")
    tokenizer = Tokenizer.train([(w, w) for w in ("one", "two", "three", "[MASK]")], TokenizerOptions(kind="words"))
    for name, (make, more, labels) in KINDS.items():
        model = make(gf.ModelConfig(**SIZES | {"vocab_size": tokenizer.tgt_size} | more))
        text = None if name == "digits" else tokenizer
        bundle.save(place / name, model, bundle.weights(model), text, labels=labels)
    np.save(place / "seven.npy", np.random.RandomState(0).randint(0, 256, (8, 8)).astype(np.uint8))
    return place


@pytest.mark.parametrize(("name", "given"), [("gpt", "one two"), ("bert", "one [MASK]"), ("kinds", "one two")])
def test_a_text_is_followed(cli, folders, name, given):
    code, out, _ = cli("trace", folders / name, given, "--json", "-", "--name", "logits")
    assert code == 0
    told = json.loads(out)
    loaded = {"gpt": gf.TextGenerator, "bert": gf.MaskFiller, "kinds": gf.Classifier}[name].load(folders / name)
    if name == "gpt":
        assert told["output"]["text"] == loaded.generate([given])[0][0].text
        return
    assert told["output"] is None
    (place,) = told["answer"]["places"]
    found = loaded.fill([given])[0][0] if name == "bert" else loaded.classify([given])[0]
    for one, expected in zip(place["top"], found, strict=False):
        assert abs(one["probability"] - expected.probability) < 1e-6
        assert one["piece"] == (expected.token if name == "bert" else expected.name)
    assert told["answer"]["text"] == (loaded(given) if name == "kinds" else found[0].text)


def test_an_image_is_followed(cli, folders):
    code, out, _ = cli("trace", folders / "digits", folders / "seven.npy")
    assert code == 0
    assert out.startswith("seven.npy  →  ")
    loaded = gf.Classifier.load(folders / "digits")
    best = loaded.classify([folders / "seven.npy"])[0][0]
    assert f"{best.name}      {best.probability:.3f}" in out
    assert str(folders) not in out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("trace", "gpt", "one", "--to", "de"), "does not translate; leave out --to and --from"),
        (("trace", "bert", "one", "--target", "two"), "writes no target"),
        (("trace", "digits", "nowhere.png"), "nowhere.png does not exist"),
        (("serve", "gpt", "bert"), "does not translate: serve it alone"),
        (("serve", "kinds", "--only", "api"), "does not translate: serve it alone"),
    ],
)
def test_what_they_cannot_do_is_said(cli, folders, words, why):
    code, _, error = cli(*(folders / word if word in KINDS else word for word in words))
    assert code != 0
    assert why in error


def test_a_model_of_digits_brings_one_of_each_to_try(folders):
    (folders / "digits" / "recipe.toml").write_text('[[data.train]]\nbuiltin = "digits"\nsplit = "train"\n')
    shown = folder_directions(folders / "digits", "cpu").get()
    assert [example.label for example in shown.examples] == list("0123456789")
    images, labels = digits("test")
    known = {image.tobytes(): label for image, label in zip(images, labels, strict=True)}
    for example in shown.examples:
        assert known[decode_image(example.text, shown.model.image_processor).tobytes()] == example.label


def test_a_folder_goes_no_way_but_its_own(folders):
    for name in KINDS:
        shown = folder_directions(folders / name, "cpu")
        assert [one.name for one in shown.by_name.values()] == [name]
        assert shown.images == (name == "digits")
