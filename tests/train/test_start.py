"""Training that goes on from a trained model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from glassformer.common.errors import ConfigError, InputError
from glassformer.model import EncoderDecoder
from glassformer.train.folder import saved_recipe
from glassformer.train.recipe import Recipe, parse
from glassformer.train.run import train
from glassformer.weights import bundle

MODEL = {"d_model": 32, "heads": 2, "d_ff": 64, "layers": 1, "dropout": 0.0, "max_length": 272}
TRAIN = {"batch_tokens": 512, "log_every": 1, "valid_every": 2, "save_every": 2, "precision": "fp32"}
DATA = {
    "train": [{"builtin": "numerals", "size": 300}],
    "valid": [{"builtin": "numerals", "split": "valid", "size": 60}],
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = parse({"data": DATA, "tokenizer": {"vocab_size": 400}, "model": MODEL, "train": TRAIN | {"steps": 6}})
    return train(made, tmp_path_factory.mktemp("begun") / "run")


def going_on(begun: Path, steps: int = 2, model: dict[str, Any] | None = None, **changes: Any) -> Recipe:
    settings = TRAIN | {"start": str(begun), "steps": steps} | changes
    return parse({"data": DATA, "model": model or {}, "train": settings})


def losses(folder: Path) -> list[float]:
    rows = (json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines())
    return [row["valid_loss"] for row in rows if "valid_loss" in row]


def test_shape_vocabulary_and_weights_are_those_of_the_start(begun: Path, tmp_path: Path) -> None:
    made = going_on(begun, model={"dropout": 0.3}, lr=1e-12)
    assert made.model["d_model"] == 32
    assert made.model["dropout"] == 0.3
    folder = train(made, tmp_path / "run")
    before, after = bundle.load(begun), bundle.load(folder)
    assert after.tokenizer.pieces == before.tokenizer.pieces
    weights = before.model.state_dict()
    for name, tensor in weights.items():
        torch.testing.assert_close(after.model.state_dict()[name], tensor, atol=1e-9, rtol=0)
    assert losses(folder)[0] == pytest.approx(losses(begun)[-1], abs=1e-6)  # it starts at the loaded model's own loss
    fresh = EncoderDecoder(before.model.config).state_dict()  # which no fresh model has
    assert not all(torch.equal(fresh[name], tensor) for name, tensor in weights.items())


def test_a_continuation_needs_the_start_no_more(begun: Path, tmp_path: Path) -> None:
    moved = tmp_path / "begun"
    moved.symlink_to(begun)
    whole = train(going_on(begun, 4, schedule="constant"), tmp_path / "whole")
    halves = train(going_on(moved, 2, schedule="constant"), tmp_path / "halves")
    moved.unlink()
    train(saved_recipe(halves, ("train.steps=4",)), halves, resume=True)
    one, two = (bundle.load(folder).model.state_dict() for folder in (whole, halves))
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


def test_another_shape_is_refused_by_its_name(begun: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model.layers = 2, but the model to go on from has 1"):
        train(going_on(begun, model={"layers": 2}), tmp_path / "run")
    with pytest.raises(ConfigError, match="is not a trained model"):
        train(going_on(tmp_path / "nowhere"), tmp_path / "run")


def test_a_language_that_the_start_does_not_know_is_refused(begun: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("one\teins\n")
    french = [{"tsv": str(tmp_path / "pairs.tsv"), "from": "en", "to": "fr"}]
    with pytest.raises(InputError, match="no tag for `fr`"):
        train(parse({"data": {"train": french}, "train": TRAIN | {"start": str(begun)}}), tmp_path / "run")
