"""Labels told, of texts and of images."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_run import Cli
from tiny_published import bert, vit

import glassformer as gf
from glassformer.common.errors import DataError, InputError, WeightsError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import EncoderOnly, ModelConfig
from glassformer.weights import bundle

NAMES = ("number", "date", "time")
TEXTS = ["two", "one two three four", "three one"]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    tokenizer = Tokenizer.train([("", "one two three four")], TokenizerOptions(kind="words"))
    config = ModelConfig(
        vocab_size=tokenizer.tgt_size, d_model=16, heads=2, d_ff=32, layers=1, max_length=12, labels=3, tied=False
    )
    model = EncoderOnly(config)
    bundle.save(folder, model, bundle.weights(model), tokenizer, labels=NAMES)
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, object]:
    folder = tmp_path_factory.mktemp("vit")
    return folder, vit(folder)


def test_texts_are_labelled_the_same_whatever_stands_beside_them(own: Path) -> None:
    classifier = gf.Classifier.load(own)
    together = classifier.classify(TEXTS)
    for text, labels in zip(TEXTS, together, strict=True):
        assert {one.name for one in labels} == set(NAMES)
        assert sum(one.probability for one in labels) == pytest.approx(1, abs=1e-6)
        assert [one.probability for one in labels] == sorted((one.probability for one in labels), reverse=True)
        (alone,) = classifier.classify([text])
        assert [one.name for one in alone] == [one.name for one in labels]
        assert [one.probability for one in alone] == pytest.approx([one.probability for one in labels], abs=1e-6)
        assert classifier(text) == labels[0].name
    (ids,) = classifier.tokenizer.encode_source(["two"])
    with torch.inference_mode():
        told = classifier.model(torch.tensor([ids])).softmax(-1)[0]
    assert together[0][0].probability == pytest.approx(float(told.max()), abs=1e-6)
    assert NAMES[int(told.argmax())] == together[0][0].name
    assert len(classifier.classify(TEXTS, top=1)[0]) == 1
    assert classifier.classify([]) == []


def test_images_are_labelled_as_by_hugging_face(published: tuple[Path, object]) -> None:
    folder, theirs = published
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 16, 16), dtype=np.uint8)
    with torch.inference_mode():
        wanted = theirs(torch.from_numpy(pixels.astype(np.float32) / 255)).logits.softmax(-1)
    classifier = gf.Classifier.load(folder)
    assert classifier.labels == ("cat", "dog", "bird")
    torch.testing.assert_close(classifier.probabilities(list(pixels)), wanted, atol=1e-5, rtol=0)
    assert not torch.allclose(classifier.probabilities(list(255 - pixels)), wanted, atol=1e-3)
    last = list(pixels.transpose(0, 2, 3, 1))  # channels at the end, as pictures are kept
    torch.testing.assert_close(classifier.probabilities(last), wanted, atol=1e-5, rtol=0)


def test_a_published_models_mean_and_spread_are_used(published: tuple[Path, object]) -> None:
    folder, theirs = published
    settings = folder / "preprocessor_config.json"
    settings.write_text(json.dumps({"do_normalize": True, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.5, 0.2, 0.1]}))
    pixels = np.random.default_rng(1).random((1, 3, 16, 16), dtype=np.float32)
    mean, spread = (np.array(x, dtype=np.float32).reshape(1, 3, 1, 1) for x in ([0.5, 0.4, 0.3], [0.5, 0.2, 0.1]))
    with torch.inference_mode():
        wanted = theirs(torch.from_numpy((pixels - mean) / spread)).logits.softmax(-1)
    found = gf.Classifier.load(folder).probabilities(list(pixels))
    settings.unlink()
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)
    assert not torch.allclose(gf.Classifier.load(folder).probabilities(list(pixels)), wanted, atol=1e-3)


def test_files_of_images_are_read(published: tuple[Path, object], tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.random.default_rng(2).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "one.png")
    np.save(tmp_path / "one.npy", pixels)
    classifier = gf.Classifier.load(published[0])
    by_file = classifier.probabilities([tmp_path / "one.png", tmp_path / "one.npy"])
    torch.testing.assert_close(by_file[0], by_file[1])
    torch.testing.assert_close(by_file[:1], classifier.probabilities([pixels]))
    Image.fromarray(pixels).resize((40, 32)).save(tmp_path / "large.png")
    assert classifier(str(tmp_path / "large.png")) in classifier.labels
    (tmp_path / "no.png").write_text("no picture")
    for name, said in (("none.png", "does not exist"), ("no.png", "is not a picture that can be read")):
        with pytest.raises(DataError, match=said):
            classifier(tmp_path / name)
    with pytest.raises(InputError, match=r"images\[0\] is of shape \(8, 8\); this model reads .* \(3, 16, 16\)"):
        classifier.classify([np.zeros((8, 8))])


def test_what_cannot_be_labelled_is_told(own: Path, tmp_path: Path) -> None:
    classifier = gf.Classifier.load(own)
    with pytest.raises(InputError, match=r"texts\[1\] is empty"):
        classifier.classify(["two", " "])
    with pytest.raises(InputError, match=r"has 22 tokens, and the model reads at most 12"):
        classifier.classify(["two " * 20])
    bert(tmp_path / "bert")
    with pytest.raises(WeightsError, match=r"is an encoder alone, which fills gaps: `glassformer fill`"):
        gf.Classifier.load(tmp_path / "bert")
    with pytest.raises(WeightsError, match=r"is an encoder with labels for texts: `glassformer classify`"):
        gf.MaskFiller.load(own)


def test_the_command(own: Path, cli: Cli) -> None:
    classifier = gf.Classifier.load(own)
    best = [labels[0] for labels in classifier.classify(TEXTS)]
    asked = ["classify", str(own), "--device", "cpu"]
    plain = cli(*asked, stdin="\n".join(TEXTS))[1].splitlines()
    assert plain == [f"{one.name}\t{one.probability:.1%}\t{text}" for one, text in zip(best, TEXTS, strict=True)]
    told = json.loads(cli(*asked, "--json", "--top", "2", "two")[1])
    assert [one["name"] for one in told["labels"]] == [one.name for one in classifier.classify(["two"], top=2)[0]]


def test_pixels_of_another_scale_are_refused(published: tuple[Path, object], tmp_path: Path) -> None:
    """Where nobody knows what is white, a label would be told of another image."""
    from PIL import Image

    classifier = gf.Classifier.load(published[0])
    pixels = np.random.RandomState(0).randint(0, 256, (3, 16, 16))
    right = classifier.probabilities([pixels])
    for same in (pixels.astype(np.uint8), (pixels / 255).astype(np.float32), torch.from_numpy(pixels)):
        torch.testing.assert_close(classifier.probabilities([same]), right)
    for other in (
        pixels.astype(np.float32),
        pixels - 1000,
        pixels * 257,
        pixels / 255 - 0.5,
        np.full((3, 16, 16), np.nan),
    ):
        with pytest.raises(InputError, match=r"images\[0\] has pixels from .* bring whole"):
            classifier.classify([other])
    shape = np.zeros((16, 16, 4), np.uint8)
    shape[4:8] = 255
    Image.fromarray(shape).save(tmp_path / "ink.png")
    Image.fromarray(np.random.rand(16, 16).astype(np.float32)).save(tmp_path / "float.tiff")
    (tmp_path / "empty.npy").touch()
    np.savez(tmp_path / "several.npz", a=pixels)
    (tmp_path / "several.npz").rename(tmp_path / "several.npy")
    faults = {
        "ink.png": "is transparent in parts",
        "float.tiff": "of the kind F",
        "empty.npy": "is no array of numbers",
    }
    for name, said in (faults | {"several.npy": "it holds several"}).items():
        with pytest.raises(DataError, match=said):
            classifier(str(tmp_path / name))
    shape[..., 3] = 255
    Image.fromarray(shape).save(tmp_path / "ink.png")
    assert classifier(str(tmp_path / "ink.png")) in classifier.labels
