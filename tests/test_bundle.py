"""A model as a folder: it comes back exactly as it went in, and a broken folder is told apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from glassformer import bundle
from glassformer.errors import GlassformerError, WeightsError
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.text import Tokenizer, TokenizerOptions

PAIRS = [("one two three", "eins zwei drei"), ("two", "zwei")]


def make(folder: Path, joint: bool = True, **settings: object) -> EncoderDecoder:
    tokenizer = Tokenizer.train(PAIRS, TokenizerOptions(kind="words", joint=joint))
    sizes = {"vocab_size": tokenizer.tgt_size} | ({} if joint else {"src_vocab_size": tokenizer.src_size})
    config = ModelConfig(d_model=16, heads=2, d_ff=32, layers=1, max_length=32, **sizes, **settings)
    model = EncoderDecoder(config).eval()
    bundle.save(folder, model, bundle.weights(model), tokenizer)
    return model


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_a_round_trip_is_exact(tmp_path: Path, joint: bool, tied: bool, positions: str) -> None:
    model = make(tmp_path / "made", joint, tied=tied, positions=positions)
    loaded = bundle.load(tmp_path / "made")
    assert loaded.model.config == model.config
    assert not loaded.model.training
    for name, value in bundle.weights(model).items():
        assert torch.equal(bundle.weights(loaded.model)[name], value), name
    ids = torch.tensor([[4, 5, 6]])
    assert torch.equal(loaded.model(ids, ids), model(ids, ids))
    learnt = Tokenizer.train(PAIRS, TokenizerOptions(kind="words", joint=joint))
    assert loaded.tokenizer.encode_source(["one two"]) == learnt.encode_source(["one two"])
    assert loaded.tokenizer.joint == joint
    assert loaded.scores == {}
    assert loaded.recipe == ""


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path: Path) -> None:
    make(tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    tables = [name for name, value in stored.items() if value.shape == (10, 16)]
    assert len(tables) == 1
    loaded = bundle.load(tmp_path).model
    assert sum(p.shape == (10, 16) for p in loaded.parameters()) == 1


def test_the_files_are_plain_and_readable(tmp_path: Path) -> None:
    make(tmp_path)
    assert bundle.is_bundle(tmp_path)
    files = ["config.json", "model.safetensors", "source_words.txt", "tokenizer.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert len(modes) == 1  # whoever may read one file may read them all


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"is not a folder"):
        bundle.load(tmp_path / "nowhere")
    with pytest.raises(WeightsError, match=r"is not a trained model"):
        bundle.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "marian"}')
    assert not bundle.is_bundle(tmp_path)
    with pytest.raises(WeightsError, match=r"is not a trained model"):
        bundle.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [("model.safetensors", "is missing; if training was interrupted"), ("tokenizer.json", "holds no tokenizer.json")],
)
def test_a_missing_file_is_named(tmp_path: Path, name: str, said: str) -> None:
    make(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(GlassformerError, match=said):
        bundle.load(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe broken"])
def test_a_damaged_file_is_told(tmp_path: Path, name: str, content: bytes) -> None:
    make(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(GlassformerError) as caught:
        bundle.load(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_truncated_weights_file_is_told(tmp_path: Path) -> None:
    make(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(WeightsError, match=r"model.safetensors cannot be read"):
        bundle.load(tmp_path)


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_damaged_scores_are_told(tmp_path: Path, content: str) -> None:
    make(tmp_path)
    (tmp_path / "scores.json").write_text(content)
    with pytest.raises(WeightsError, match=r"scores.json is damaged .*; delete it and measure again"):
        bundle.load(tmp_path)


@pytest.mark.parametrize(("key", "value"), [("layers", 2), ("d_ff", 48), ("tied", False)])
def test_weights_that_do_not_fit_the_configuration(tmp_path: Path, key: str, value: object) -> None:
    make(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {key: value}))
    with pytest.raises(WeightsError, match=r"the weights do not fit config.json at `"):
        bundle.load(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    bundle.write_text(path, "old")
    (tmp_path / ".scores.json.partial").mkdir()  # the new one has no place to be written to
    with pytest.raises(OSError, match=r"directory"):
        bundle.write_text(path, "new")
    assert path.read_text() == "old"
