"""A bundle of one stack: an encoder, with or without labels, for texts or images, or a decoder."""

import json

import pytest
import torch

from glassformer.common.errors import ConfigError, InputError, WeightsError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, ModelConfig
from glassformer.pipelines.translator import Translator
from glassformer.weights import bundle

SIZES = {"d_model": 16, "heads": 2, "d_ff": 32, "layers": 1, "max_length": 32}
WORDS = Tokenizer.train([("one two three", "eins zwei drei")], TokenizerOptions(kind="words"))
IMAGE = {"vocab_size": 1, "image_size": 8, "patch_size": 4, "channels": 1, "pad_id": None, "start_id": None}
MODELS = {
    "decoder": lambda: DecoderOnly(ModelConfig(vocab_size=WORDS.tgt_size, **SIZES)),
    "encoder": lambda: EncoderOnly(ModelConfig(vocab_size=WORDS.tgt_size, output_bias=True, **SIZES)),
    "labels": lambda: EncoderOnly(ModelConfig(vocab_size=WORDS.tgt_size, labels=3, tied=False, **SIZES)),
    "image": lambda: EncoderOnly(ModelConfig(**IMAGE, end_id=None, labels=3, tied=False, **SIZES)),
}
NAMES = ("date", "number", "time")


def make(folder, name, weights="float32"):
    """A model of this kind, saved, and something that it reads."""
    model = MODELS[name]().eval()
    text = None if name == "image" else WORDS
    bundle.save(folder, model, bundle.weights(model), text, weights, NAMES if model.config.labels else ())
    return model, torch.rand(2, 1, 8, 8) if name == "image" else torch.tensor([[4, 5, 6], [5, 4, 4]])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_each_kind_comes_back_as_it_was(tmp_path, name):
    model, read = make(tmp_path, name)
    loaded = bundle.load(tmp_path)
    assert type(loaded.model) is type(model)
    assert loaded.model.config == model.config
    assert torch.equal(loaded.model(read), model(read))
    assert loaded.labels == (NAMES if model.config.labels else ())
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["format_version"] == 4
    assert config["kind"] == ("decoder" if name == "decoder" else "encoder")
    assert config.get("labels") == (list(NAMES) if model.config.labels else None)


@pytest.mark.parametrize("name", MODELS)
def test_each_kind_can_be_packed(tmp_path, name):
    model, read = make(tmp_path / "large", name)
    bundle.pack(tmp_path / "large", tmp_path / "small")
    small = bundle.load(tmp_path / "small")
    assert bundle.read_config(tmp_path / "small").weights == "int8"
    assert small.labels == bundle.load(tmp_path / "large").labels
    difference = (small.model(read) - model(read)).abs().max()
    assert 0 < difference < 0.1 * model(read).abs().max()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("decoder", r"is a decoder alone, which continues texts: `glassformer generate` and gf.TextGenerator use it"),
        ("encoder", r"is an encoder alone, which fills gaps: `glassformer fill` and gf.MaskFiller use it"),
        ("labels", r"is an encoder with labels for texts: `glassformer classify` and gf.Classifier use it"),
        ("image", r"is an encoder with labels for images: `glassformer classify` and gf.Classifier use it"),
    ],
)
def test_a_translator_says_what_another_kind_is_for(tmp_path, name, said):
    make(tmp_path, name)
    with pytest.raises(WeightsError, match=said):
        Translator.load(tmp_path)


def test_a_translator_is_refused_where_another_kind_is_wanted(tmp_path):
    model = EncoderDecoder(ModelConfig(vocab_size=WORDS.tgt_size, **SIZES))
    bundle.save(tmp_path, model, bundle.weights(model), WORDS)
    assert "kind" not in json.loads((tmp_path / "config.json").read_text())
    with pytest.raises(WeightsError, match=r"a translator: `glassformer translate` and gf.Translator use it"):
        bundle.load(tmp_path).of_kind(DecoderOnly)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "sideways"}, r"kind='sideways' is not one of"),
        ({"kind": "decoder"}, r"`kind` is 'decoder', and the weights were saved with 'encoder'"),
        ({"labels": ["a", "a", "b"]}, r"must be names, each another"),
        ({"labels": ["a", "", "b"]}, r"must be names, each another"),
        ({"labels": [1, 2, 3]}, r"must be names, each another"),
        ({"labels": []}, r"must be names, each another"),
        ({"labels": ["a", "b"]}, r"`labels` is \['a', 'b'\], and the weights were saved with \['date'"),
        ({"labels": -1}, r"labels=-1: it cannot be negative"),
        ({"tied": True}, r"labels=3: a head of labels has no words to be tied to; set tied=False"),
    ],
)
def test_what_config_json_cannot_mean_is_told(tmp_path, changes, said):
    make(tmp_path, "labels")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(WeightsError, match=said):
        bundle.load(tmp_path)


def test_names_must_be_as_many_as_the_labels(tmp_path):
    model = MODELS["labels"]()
    with pytest.raises(ConfigError, match=r"there are 2 names of labels, and the model's head tells 3 apart"):
        bundle.save(tmp_path, model, bundle.weights(model), WORDS, labels=["one", "two"])
    assert not list(tmp_path.iterdir())


def test_labels_without_names_are_kept_as_a_number(tmp_path):
    model = MODELS["labels"]()
    bundle.save(tmp_path, model, bundle.weights(model), WORDS)
    assert json.loads((tmp_path / "config.json").read_text())["labels"] == 3
    assert bundle.load(tmp_path).model.config.labels == 3
    assert bundle.load(tmp_path).labels == ()


def test_an_image_model_has_no_vocabulary(tmp_path):
    make(tmp_path, "image")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    with pytest.raises(WeightsError, match=r"labels for images: .* it has no vocabulary"):
        _ = bundle.load(tmp_path).tokenizer


def test_labels_are_read_off_the_first_position_wherever_padding_stands():
    model = MODELS["labels"]().eval()
    ids, pad = torch.tensor([[4, 5, 6]]), torch.tensor([[0, 0]])
    whole = model(ids)
    assert whole.shape == (1, 3)
    hidden = model.encoder(ids)
    torch.testing.assert_close(whole, model.head(hidden[:, 0]))
    assert not torch.allclose(whole, model.head(hidden[:, 1]), atol=1e-3)
    real, none = torch.ones(1, 3, dtype=torch.bool), torch.zeros(1, 2, dtype=torch.bool)
    torch.testing.assert_close(model(torch.cat((ids, pad), 1), torch.cat((real, none), 1)), whole)
    torch.testing.assert_close(model(torch.cat((pad, ids), 1), torch.cat((none, real), 1)), whole)


@pytest.mark.parametrize("kind", [DecoderOnly, EncoderDecoder])
def test_labels_are_an_encoders_alone(kind):
    with pytest.raises(ConfigError, match=r"labels=3: labels are given by an EncoderOnly alone"):
        kind(ModelConfig(vocab_size=8, labels=3, tied=False, **SIZES))


def test_an_image_of_another_size_is_told():
    with pytest.raises(InputError, match=r"images of shape \(batch, 1, 8, 8\)"):
        MODELS["image"]()(torch.rand(1, 1, 9, 9))
