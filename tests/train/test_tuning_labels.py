"""A classifier goes on from a model that fills gaps: with a new head, frozen, or by an adapter that brings the head."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.common.errors import WeightsError
from glassformer.common.report import Report
from glassformer.train.recipe import parse
from glassformer.train.run import train
from glassformer.weights import bundle

MODEL = {"d_model": 32, "heads": 2, "d_ff": 64, "layers": 2, "dropout": 0.0, "max_length": 72, "output_bias": True}
TRAIN = {"batch_tokens": 512, "log_every": 5, "valid_every": 5, "save_every": 5, "precision": "fp32", "lr": 0.01}
KINDS = {"train": [{"builtin": "kinds", "size": 200}], "max_tokens": 64}


@pytest.fixture(scope="module")
def fills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = {"train": [{"builtin": "numerals", "size": 200, "only": "src"}], "max_tokens": 64}
    settings = TRAIN | {"steps": 5, "objective": "masked"}
    made = parse({"data": data, "tokenizer": {"vocab_size": 400}, "model": MODEL, "train": settings})
    return train(made, tmp_path_factory.mktemp("fills") / "run", report=Report(quiet=True))


def labelled(fills: Path, folder: Path, **changes: Any) -> str:
    settings = TRAIN | {"steps": 5, "objective": "classify", "start": str(fills), "warmup_steps": 0} | changes
    stream = io.StringIO()
    train(parse({"data": KINDS, "train": settings}), folder, report=Report(stream))
    return stream.getvalue()


def test_an_adapter_brings_its_labels_to_the_base(fills: Path, tmp_path: Path) -> None:
    labelled(fills, tmp_path / "run", lora_rank=2)
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
