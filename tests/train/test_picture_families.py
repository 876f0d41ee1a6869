"""Training goes on from a published ViT: at its own loss, with its labels or others, and ends as such a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_run import metrics
from torch.nn import functional as F

import glassformer as gf
from glassformer.common.errors import ConfigError
from glassformer.common.report import Report
from glassformer.train.folder import saved_recipe
from glassformer.train.recipe import Recipe, parse
from glassformer.train.run import train
from glassformer.weights.parity import Case, cases, random_model

VITS = [case for case in cases() if case.family == "vit"]
MEAN, SPREAD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
NAMES = ("cat", "dog", "fish", "newt", "owl", "pig", "rat", "ant", "bee", "cow", "eel")  # in no order


def published(case: Case, folder: Path, bare: bool = False) -> Any:
    """A random ViT whose labels have names, and shades that are not those of every other."""
    peer: Any = random_model(case)
    peer.config.id2label = dict(enumerate(NAMES[: peer.config.num_labels]))
    peer.config.label2id = {name: number for number, name in peer.config.id2label.items()}
    (peer.vit if bare else peer).save_pretrained(folder)
    told = {"do_normalize": True, "image_mean": MEAN, "image_std": SPREAD, "size": {"height": 16, "width": 16}}
    (folder / "preprocessor_config.json").write_text(json.dumps(told | {"image_processor_type": "ViTImageProcessor"}))
    return peer


def images(count: int, seed: int, side: int = 16, channels: int = 3) -> NDArray[np.uint8]:
    chance = np.random.default_rng(seed)
    return chance.integers(0, 256, (count, channels, side, side)).astype(np.uint8)


def corpus(path: Path, labels: list[str], seed: int, **shape: int) -> dict[str, str]:
    np.savez(path, images=images(len(labels), seed, **shape), labels=np.array(labels))
    return {"images": str(path)}


def recipe(start: Path, data: dict[str, Any], **changes: Any) -> Recipe:
    settings = {"start": str(start), "objective": "image", "steps": 1, "lr": 1e-12, "batch_tokens": 8192}
    settings |= {"log_every": 1, "valid_every": 1, "save_every": 1, "precision": "fp32"}
    return parse({"data": data, "train": settings | changes})


def seen(pixels: NDArray[np.uint8]) -> torch.Tensor:
    mean, spread = (torch.tensor(each, dtype=torch.float64).view(1, 3, 1, 1) for each in (MEAN, SPREAD))
    return (torch.from_numpy(pixels).double() / 255 - mean) / spread


@pytest.mark.parametrize("case", VITS, ids=lambda case: case.name)
def test_training_starts_at_the_models_own_loss_and_ends_as_its_family(case: Case, tmp_path: Path) -> None:
    import transformers

    peer = published(case, tmp_path / "start")
    names = NAMES[: peer.config.num_labels]
    asked = [names[number % 3] for number in range(12)]  # not all that it knows
    data = {"train": [corpus(tmp_path / "t.npz", asked * 2, 1)], "valid": [corpus(tmp_path / "v.npz", asked, 2)]}
    folder = train(recipe(tmp_path / "start", data), tmp_path / "run", report=Report(quiet=True))
    (found,) = (row["valid_loss"] for row in metrics(folder) if "valid_loss" in row)
    labels = torch.tensor([names.index(name) for name in asked])
    with torch.no_grad():
        logits = peer.double()(pixel_values=seen(images(12, 2))).logits
    assert found == pytest.approx(float(F.cross_entropy(logits, labels)), abs=1e-6)
    assert found != pytest.approx(float(F.cross_entropy(logits, labels.flip(0))), abs=1e-4)
    before, after = gf.load_model(tmp_path / "start"), gf.load_model(folder)
    assert after.config == before.config
    torch.testing.assert_close(dict(after.state_dict()), dict(before.state_dict()), atol=1e-6, rtol=0)
    again = transformers.ViTForImageClassification.from_pretrained(folder)
    assert tuple(again.config.id2label.values()) == names
    with torch.no_grad():
        wanted = again.double()(pixel_values=seen(images(12, 2))).logits.softmax(-1)
    classifier = gf.Classifier.load(folder)
    assert classifier.labels == names
    torch.testing.assert_close(classifier.probabilities(list(images(12, 2))).double(), wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("bare", [False, True])
def test_other_labels_have_a_new_head_in_the_familys_own_file(bare: bool, tmp_path: Path) -> None:
    import transformers

    published(VITS[0], tmp_path / "start", bare)
    asked = ["day", "night"] * 12
    data = {"train": [corpus(tmp_path / "t.npz", asked, 1)], "valid": [corpus(tmp_path / "v.npz", asked, 1)]}
    made = recipe(tmp_path / "start", data, steps=60, lr=3e-3, warmup_steps=0, valid_every=30, save_every=30)
    folder = train(made, tmp_path / "run", report=Report(quiet=True))
    assert [row["valid_accuracy"] for row in metrics(folder) if "valid_loss" in row][-1] == 1.0
    classifier = gf.Classifier.load(folder)
    assert classifier.labels == ("day", "night")
    again = transformers.ViTForImageClassification.from_pretrained(folder)
    assert again.config.id2label == {0: "day", 1: "night"}
    with torch.no_grad():
        wanted = again.double()(pixel_values=seen(images(24, 1))).logits.softmax(-1)
    torch.testing.assert_close(classifier.probabilities(list(images(24, 1))).double(), wanted, atol=1e-5, rtol=0)
    weights = gf.load_model(folder).state_dict()
    sorted((folder / "checkpoints").glob("step-*"))[-1].unlink()
    (folder / "model.safetensors").unlink()
    (tmp_path / "start").rename(tmp_path / "gone")
    train(saved_recipe(folder), folder, resume=True, report=Report(quiet=True))
    for name, tensor in gf.load_model(folder).state_dict().items():
        assert torch.equal(tensor, weights[name])


def test_an_adapter_goes_on_the_published_model(tmp_path: Path) -> None:
    published(VITS[0], tmp_path / "start")
    asked = ["day", "night"] * 6
    data = {"train": [corpus(tmp_path / "t.npz", asked, 1)]}
    made = recipe(tmp_path / "start", data, steps=4, lr=0.01, warmup_steps=0, lora_rank=2)
    folder = train(made, tmp_path / "run", report=Report(quiet=True))
    merged = gf.Classifier.load(folder).probabilities(list(images(12, 1)))
    added = gf.Classifier.load(tmp_path / "start", adapter=folder)
    assert added.labels == ("day", "night")
    torch.testing.assert_close(added.probabilities(list(images(12, 1))), merged, atol=1e-5, rtol=0)


def test_images_of_another_shape_are_told(tmp_path: Path) -> None:
    published(VITS[0], tmp_path / "start")
    asked = ["day", "night"]
    for shape, words in (({"side": 8}, "image_size = 8"), ({"channels": 1}, "channels = 1")):
        made = recipe(tmp_path / "start", {"train": [corpus(tmp_path / "t.npz", asked, 1, **shape)]})
        with pytest.raises(ConfigError, match=f"the images have {words}, and the model to go on from reads"):
            train(made, tmp_path / "run", report=Report(quiet=True))
        assert not [*(tmp_path / "run").glob("*.json")]
