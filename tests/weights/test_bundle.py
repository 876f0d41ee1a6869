"""A model as a folder: it comes back exactly as it went in, and a broken folder is told apart."""

import errno
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from glassformer.common import files
from glassformer.common.errors import ConfigError, GlassformerError, WeightsError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.pipelines.translator import Translator
from glassformer.train import read_recipe
from glassformer.train.folder import saved_recipe
from glassformer.weights import bundle

OLDER = r"is of an older glassformer: it holds no checksum"
PAIRS = [("one two three", "eins zwei drei"), ("two", "zwei")]


def make(folder, joint=True, **settings):
    tokenizer = Tokenizer.train(PAIRS, TokenizerOptions(kind="words", joint=joint))
    sizes = {"vocab_size": tokenizer.tgt_size} | ({} if joint else {"src_vocab_size": tokenizer.src_size})
    config = ModelConfig(d_model=16, heads=2, d_ff=32, layers=1, max_length=32, **sizes, **settings)
    model = EncoderDecoder(config).eval()
    bundle.save(folder, model, bundle.weights(model), tokenizer)
    return model


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_a_round_trip_is_exact(tmp_path, joint, tied, positions):
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
    assert loaded.recipe == ""


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path):
    make(tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    tables = [name for name, value in stored.items() if value.shape == (10, 16)]
    assert len(tables) == 1
    loaded = bundle.load(tmp_path).model
    assert sum(p.shape == (10, 16) for p in loaded.parameters()) == 1


def test_the_files_are_plain_and_readable(tmp_path):
    make(tmp_path)
    assert bundle.is_bundle(tmp_path)
    files = ["config.json", "model.safetensors", "source_words.txt", "tokenizer.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert len(modes) == 1  # whoever may read one file may read them all


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(WeightsError, match=r"is not a folder"):
        bundle.load(tmp_path / "nowhere")
    with pytest.raises(WeightsError, match=r"is not a trained model"):
        bundle.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "marian"}')
    assert not bundle.is_bundle(tmp_path)
    with pytest.raises(WeightsError, match=r"is not a trained model"):
        bundle.load(tmp_path)


MISSING = {
    "config.json": "is not a trained model",
    "model.safetensors": "is missing; if training was interrupted",
    "tokenizer.json": "holds no tokenizer.json",
}


@pytest.mark.parametrize("name", MISSING)
def test_a_damaged_an_unreadable_and_a_missing_file_are_told_apart(tmp_path, name):
    make(tmp_path)
    path = tmp_path / name
    for content in (b"", b"{", b"\xff\xfe broken", path.read_bytes()[:-10]):
        path.write_bytes(content)
        with pytest.raises(GlassformerError) as damaged:
            bundle.load(tmp_path)
        assert "\n" not in str(damaged.value)
        assert str(tmp_path) in str(damaged.value)
    path.unlink()
    with pytest.raises(GlassformerError, match=MISSING[name]):
        bundle.load(tmp_path)
    path.mkdir()  # unreadable to everyone, root too
    with pytest.raises(GlassformerError, match=f"{name} cannot be read: Is a directory"):
        bundle.load(tmp_path)


@pytest.mark.parametrize("content", ["{", "[1]", "\udcff", None])
def test_damaged_scores_are_told_where_they_matter_only(tmp_path, content):
    make(tmp_path)
    path = tmp_path / "scores.json"
    assert bundle.read_scores(tmp_path) == {}
    if content is None:
        path.mkdir()
    else:
        path.write_text(content, encoding="utf-8", errors="surrogateescape")
    said = r"scores.json (is damaged .*; delete it and measure again|cannot be read: Is a directory)$"
    with pytest.raises(WeightsError, match=said):
        bundle.read_scores(tmp_path)
    bundle.load(tmp_path)  # a model translates without its scores


def test_a_bundle_of_a_newer_format_is_refused_with_what_to_update(tmp_path):
    make(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    assert config["format_version"] == 1  # an older glassformer reads it too
    path.write_text(json.dumps(config | {"format_version": bundle.FORMAT_VERSION + 1, "new_setting": 1}))
    assert bundle.is_bundle(tmp_path)
    with pytest.raises(WeightsError, match=r"is of format version 6; .* up to 5: update it \(pip install"):
        bundle.load(tmp_path)
    path.write_text(json.dumps(config | {"format_version": "two"}))
    with pytest.raises(WeightsError, match=r"config.json: format_version 'two' is no version"):
        bundle.load(tmp_path)


def test_a_bundle_from_before_versions_loads():
    """tests/bundle-1 was written by the release before `format_version`; it learnt to turn four words round."""
    folder = Path(__file__).parents[1] / "bundle-1"
    assert "format_version" not in json.loads((folder / "config.json").read_text())
    with pytest.warns(UserWarning, match=OLDER):
        translator = Translator.load(folder)
    assert translator("three two one two four") == "vier zwei eins zwei drei"
    assert saved_recipe(folder).train.schedule == "cosine"
    assert bundle.read_scores(folder)["valid"]["sentences"] == 30


KEPT = Path(__file__).parents[1] / "kept"
sys.path.insert(0, str(KEPT))

from make_kept import said  # noqa: E402


@pytest.mark.parametrize("name", [path.parent.name for path in sorted(KEPT.glob("*/config.json"))])
def test_every_kind_of_model_that_was_ever_written_loads_and_says_the_same(name):
    """tests/kept/make_kept.py made them, in one direction and in both, in float32 and in int8, each with its recipe."""
    config = json.loads((KEPT / name / "config.json").read_text())
    assert config["format_version"] == (2 if name.endswith("int8") else 1)
    with pytest.warns(UserWarning, match=OLDER):
        now = said(KEPT / name)
    assert now == json.loads((KEPT / "said.json").read_text(encoding="utf-8"))[name]
    assert "format_version = 1\n" in (KEPT / name / "recipe.toml").read_text(encoding="utf-8")
    assert saved_recipe(KEPT / name).train.steps == 300


def test_a_setting_that_came_later_is_written_where_it_says_something(tmp_path):
    """So that an older glassformer reads what it can, and is told to be updated where it cannot."""
    with pytest.warns(UserWarning, match=OLDER):
        kept = bundle.load(KEPT / "one-way-float32")
    model, tokenizer = EncoderDecoder(replace(kept.model.config, rotary_factor=8.0)), kept.tokenizer
    bundle.save(tmp_path, model, bundle.weights(model), tokenizer)
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["format_version"], config["rotary_factor"]) == (3, 8.0)
    assert "qkv_bias" not in config
    assert bundle.load(tmp_path).model.config == model.config
    bundle.save(tmp_path / "again", kept.model, bundle.weights(kept.model), kept.tokenizer)
    before = json.loads((KEPT / "one-way-float32" / "config.json").read_text())
    assert json.loads((tmp_path / "again" / "config.json").read_text()) == before


def test_a_recipe_of_a_newer_format_is_refused_with_what_to_update(tmp_path):
    path = tmp_path / "recipe.toml"
    text = (KEPT / "one-way-float32" / "recipe.toml").read_text(encoding="utf-8")
    path.write_text(text.replace("format_version = 1", "format_version = 2"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"of format version 2; .* up to 1: update it \(pip install"):
        read_recipe(str(path))
    path.write_text(text.replace("format_version = 1", 'format_version = "one"'), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"format_version = 'one' of the recipe is no version"):
        read_recipe(str(path))
    path.write_text(text.replace("format_version = 1", ""), encoding="utf-8")
    assert read_recipe(str(path)).train.steps == 300


@pytest.mark.parametrize(("key", "value"), [("layers", 2), ("d_ff", 48), ("tied", False)])
def test_weights_that_do_not_fit_the_configuration(tmp_path, key, value):
    make(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {key: value}))
    with pytest.raises(WeightsError, match=rf"config.json: `{key}` is {value}, and the weights were saved with "):
        bundle.load(tmp_path)
    save_file(load_file(tmp_path / "model.safetensors"), tmp_path / "model.safetensors")  # as an older version did
    with pytest.raises(WeightsError, match=r"the weights do not fit config.json at `"):
        bundle.load(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "scores.json"
    files.write_text(path, "old")

    def fail():
        with files.atomic_write(path) as file:
            file.write(b"half of the new")
            raise OSError(errno.ENOSPC, "the disk is full")

    with pytest.raises(OSError, match=r"full"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_replaces_no_link_no_device_and_no_permissions(tmp_path):
    path, link, pipe = tmp_path / "kept.txt", tmp_path / "link.txt", tmp_path / "pipe"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    files.write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_text(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    files.write_text(Path(os.devnull), "gone")
    assert Path(os.devnull).is_char_device()
    with pytest.raises(IsADirectoryError):
        files.write_text(tmp_path, "text")
