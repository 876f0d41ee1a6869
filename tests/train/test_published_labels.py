"""A classifier goes on from a published encoder: its weights, its tokenizer, and a new head of labels."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_published import bert

import glassformer as gf
from glassformer.common.errors import WeightsError
from glassformer.common.report import Report
from glassformer.train.folder import saved_recipe
from glassformer.train.recipe import parse
from glassformer.train.run import train
from glassformer.weights import bundle

TRAIN = {"batch_tokens": 256, "log_every": 5, "valid_every": 5, "save_every": 5, "precision": "fp32", "lr": 0.01}
CITIES, RIVERS = "Paris is the capital of France.", "The river of the city is long."


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    bert(folder / "base")
    rows = [f"{CITIES}\tcity\n", f"{RIVERS}\triver\n", "Berlin is the capital\tcity\n", "The long river\triver\n"]
    (folder / "kinds.tsv").write_text("".join(rows * 8), encoding="utf-8")
    return folder / "base"


def recipe(base: Path, steps: int = 30, **changes: Any) -> Any:
    data = {"train": [{"tsv": str(base.parent / "kinds.tsv")}], "max_tokens": 30}
    settings = TRAIN | {"objective": "classify", "start": str(base), "steps": steps, "warmup_steps": 0} | changes
    return parse({"data": data, "train": settings, "model": {"dropout": 0.0, "attention_dropout": 0.0}})


@pytest.fixture(scope="module")
def tuned(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    stream, folder = io.StringIO(), tmp_path_factory.mktemp("tuned") / "run"
    train(recipe(base), folder, device="cpu", report=Report(stream))
    return folder, stream.getvalue()


def test_it_learns_with_a_new_head_that_is_said(tuned: tuple[Path, str]) -> None:
    folder, said = tuned
    assert "with a new head, at random: head.weight (2, 32), head.bias (2,)" in said
    assert "its own is left behind" in said
    classifier = gf.Classifier.load(folder)
    assert classifier.labels == ("city", "river")
    assert [classifier(text) for text in (CITIES, RIVERS)] == ["city", "river"]
    scores = gf.evaluate(folder, [CITIES, RIVERS], ["city", "river"], device="cpu").scores
    assert scores.to_dict()["accuracy"] == 100
    with pytest.raises(WeightsError, match="is an encoder with labels for texts"):
        gf.MaskFiller.load(folder)


def test_training_reads_what_the_classifier_reads(base: Path, tmp_path: Path) -> None:
    """With nothing but the head learning, the encoder is the published one, [CLS] and [SEP] around each text."""
    folder = train(recipe(base, 5, freeze=["encoder.*"]), tmp_path / "run", device="cpu", report=Report(quiet=True))
    made, plain = gf.Classifier.load(folder).model, gf.load_model(base)
    ids = torch.tensor([[2, 7, 8, 9, 3]])
    with torch.inference_mode():
        assert torch.equal(made.encoder(ids), plain.encoder(ids))


def test_hugging_face_still_reads_the_encoder(tuned: tuple[Path, str]) -> None:
    from transformers import BertModel

    theirs = BertModel.from_pretrained(tuned[0], add_pooling_layer=False).eval()
    ids = torch.tensor([[2, 7, 8, 9, 3]])
    with torch.inference_mode():
        torch.testing.assert_close(
            gf.load_model(tuned[0]).encoder(ids), theirs(ids).last_hidden_state, atol=1e-5, rtol=0
        )


def test_a_head_goes_with_its_own_weights_alone(tuned: tuple[Path, str], base: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(base, tmp_path / "other"))
    shutil.copytree(tuned[0] / "head", other / "head")
    with pytest.raises(WeightsError, match="was made for other weights than this model's"):
        gf.Classifier.load(other)


def test_it_can_be_trained_on(tuned: tuple[Path, str], base: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tuned[0], tmp_path / "run"))
    train(saved_recipe(folder, ("train.steps=35",)), folder, resume=True, device="cpu", report=Report(quiet=True))
    assert gf.Classifier.load(folder)(CITIES) == "city"
    stream = io.StringIO()
    shutil.copy(base.parent / "kinds.tsv", tmp_path)
    train(recipe(folder, 1), tmp_path / "on", device="cpu", report=Report(stream))
    assert "a new head" not in stream.getvalue()


def test_an_adapter_brings_the_head_to_the_published_model(base: Path, tmp_path: Path) -> None:
    folder = train(recipe(base, lora_rank=2), tmp_path / "run", device="cpu", report=Report(quiet=True))
    merged, built = gf.Classifier.load(folder), gf.Classifier.load(base, adapter=folder)
    assert built.labels == merged.labels == ("city", "river")
    torch.testing.assert_close(
        built.probabilities([CITIES, RIVERS]), merged.probabilities([CITIES, RIVERS]), atol=1e-5, rtol=0
    )


def test_an_adapter_brings_its_labels_to_a_bundle_that_fills_gaps(tmp_path: Path) -> None:
    data = {"train": [{"builtin": "numerals", "size": 200, "only": "src"}], "max_tokens": 64}
    model = {"d_model": 32, "heads": 2, "d_ff": 64, "layers": 2, "dropout": 0.0, "max_length": 72, "output_bias": True}
    masked = {"data": data, "tokenizer": {"vocab_size": 400}, "model": model}
    fills = train(parse(masked | {"train": TRAIN | {"steps": 5, "objective": "masked"}}), tmp_path / "fills")
    settings = TRAIN | {"steps": 5, "objective": "classify", "start": str(fills), "lora_rank": 2, "warmup_steps": 0}
    kinds = {"train": [{"builtin": "kinds", "size": 200}], "max_tokens": 64}
    train(parse({"data": kinds, "train": settings}), tmp_path / "run")
    merged, built = bundle.load(tmp_path / "run"), bundle.load(fills, adapter=tmp_path / "run")
    assert built.labels == merged.labels
    assert len(built.labels) == 4
    classifier = gf.Classifier.load(fills, adapter=tmp_path / "run")
    assert classifier.labels == merged.labels
    assert classifier("March 3, 2021") == gf.Classifier.load(tmp_path / "run")("March 3, 2021")
    with pytest.raises(WeightsError, match=r"which fills gaps"):
        gf.Classifier.load(fills)
    ids = torch.randint(4, 300, (3, 8))
    with torch.no_grad():
        torch.testing.assert_close(built.model(ids), merged.model(ids), atol=1e-5, rtol=0)
        assert not torch.allclose(
            built.model.get_submodule("encoder")(ids), bundle.load(fills).model.get_submodule("encoder")(ids), atol=1e-3
        )
