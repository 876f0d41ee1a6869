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
    pairs = [(word, word) for word in ("one", "two", "three")]
    tokenizer = Tokenizer.train(pairs, TokenizerOptions(kind="words"), reserved=["[MASK]"])
    for name, (make, more, labels) in KINDS.items():
        model = make(gf.ModelConfig(**SIZES | {"vocab_size": tokenizer.tgt_size} | more))
        text = None if name == "digits" else tokenizer
        bundle.save(place / name, model, bundle.weights(model), text, labels=labels)
    np.save(place / "seven.npy", np.random.RandomState(0).randint(0, 256, (8, 8)).astype(np.uint8))
    return place


@pytest.mark.parametrize(("name", "text"), [("gpt", "one two"), ("bert", "one [MASK]"), ("kinds", "one two")])
def test_trace_a_text(cli, folders, name, text):
    code, out, _ = cli("trace", folders / name, text, "--json", "-", "--name", "logits")
    assert code == 0
    trace = json.loads(out)
    loaded = {"gpt": gf.TextGenerator, "bert": gf.MaskFiller, "kinds": gf.Classifier}[name].load(folders / name)
    if name == "gpt":
        assert trace["output"]["text"] == loaded.generate([text])[0][0].text
        return
    assert trace["output"] is None
    (place,) = trace["answer"]["places"]
    expected = loaded.fill([text])[0][0] if name == "bert" else loaded.classify([text])[0]
    for shown, one in zip(place["top"], expected, strict=False):
        assert abs(shown["probability"] - one.probability) < 1e-6
        assert shown["piece"] == (one.token if name == "bert" else one.name)
    assert trace["answer"]["text"] == (loaded(text) if name == "kinds" else expected[0].text)


def test_trace_an_image(cli, folders):
    code, out, _ = cli("trace", folders / "digits", folders / "seven.npy")
    assert code == 0
    assert out.startswith("seven.npy  →  ")
    loaded = gf.Classifier.load(folders / "digits")
    best = loaded.classify([folders / "seven.npy"])[0][0]
    assert f"{best.name}      {best.probability:.3f}" in out
    assert str(folders) not in out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("trace", "gpt", "one", "--to", "de"), "does not translate; leave out --to and --from"),
        (("trace", "bert", "one", "--target", "two"), "writes no target"),
        (("trace", "digits", "nowhere.png"), "nowhere.png does not exist"),
        (("serve", "gpt", "bert"), "does not translate: serve it alone"),
        (("serve", "kinds", "--only", "api"), "does not translate: serve it alone"),
    ],
)
def test_mistakes(cli, folders, words, error):
    code, _, err = cli(*(folders / word if word in KINDS else word for word in words))
    assert code != 0
    assert error in err


def test_a_model_of_digits_has_one_example_of_each(folders):
    (folders / "digits" / "recipe.toml").write_text('[[data.train]]\nbuiltin = "digits"\nsplit = "train"\n')
    shown = folder_directions(folders / "digits", "cpu").get()
    assert [example.label for example in shown.examples] == list("0123456789")
    images, labels = digits("test")
    known = {image.tobytes(): label for image, label in zip(images, labels, strict=True)}
    for example in shown.examples:
        assert known[decode_image(example.text, shown.model.image_processor).tobytes()] == example.label


def test_a_folder_has_one_direction(folders):
    for name in KINDS:
        shown = folder_directions(folders / name, "cpu")
        assert [one.name for one in shown.by_name.values()] == [name]
        assert shown.images == (name == "digits")


@pytest.mark.parametrize(
    ("command", "good", "bad"), [("classify", "one two", " "), ("fill", "one [MASK]", "no gap"), ("fill", "[MASK]", "")]
)
@pytest.mark.parametrize("places", [(0,), (2,), (5,), (0, 1, 4), (0, 1, 2, 3, 4, 5), ()])
def test_a_line_that_cannot_be_answered_keeps_no_other_back(cli, folders, command, good, bad, places):
    lines = [bad if i in places else good for i in range(6)]
    folder = folders / {"classify": "kinds", "fill": "bert"}[command]
    code, out, err = cli(command, folder, *lines)
    once = cli(command, folder, good)[1]
    assert out == once * (6 - len(places))
    assert code == (2 if places else 0)
    assert [f"line {i + 1}" for i in range(6) if f"line {i + 1} " in err] == [f"line {i + 1}" for i in places]
