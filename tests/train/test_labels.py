"""Texts and images with labels: what a model sees, what it is asked, that the two never meet, and a kill in between."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from small_run import train_here
from test_distributed import assert_two_processes_equal_one
from test_resume import assert_same, assert_survives_a_kill

import glassformer as gf
from glassformer.common.errors import ConfigError, DataError, RunError
from glassformer.data import END, START, Batches, BatchOptions, Corpus, Tokenizer, TokenizerOptions, prepare
from glassformer.data.labelled import ImageTokenizer, LabelledTokenizer, Labels
from glassformer.data.readers import digits, image_to_text, load_images, normalize_images
from glassformer.train import read_recipe
from glassformer.train.feed import local_rows
from glassformer.train.parallel import World
from glassformer.weights import bundle

ALONE = World(0, 1, torch.device("cpu"))
RECIPE = """
[tokenizer]
kind = "words"

[model]
d_model = 32
heads = 2
d_ff = 64
layers = 1
max_length = 24
dropout = 0.1
output_bias = true

[train]
steps = 60
batch_tokens = 512
shapes = 3
lr = 0.005
warmup_steps = 10
precision = "fp32"
ema = 0.9
log_every = 5
valid_every = 20
save_every = 10
"""
NUMBERS = ("one", "two", "three", "four", "five")
COLOURS = ("red", "green", "blue")


def texts(folder: Path) -> Path:
    """Colours among numbers: a text's label is the colour it begins or ends with, in another word."""
    chance = random.Random(3)
    for name, count in (("train", 240), ("valid", 40), ("test", 40)):
        rows = []
        for _ in range(count):
            colour, words = chance.choice(COLOURS), [chance.choice(NUMBERS) for _ in range(chance.randint(0, 6))]
            place = chance.choice((0, len(words)))
            rows.append(" ".join([*words[:place], colour, *words[place:]]) + f"\tlike {colour}\n")
        (folder / f"{name}.tsv").write_text("".join(rows))
    splits = "".join(f'[[data.{split}]]\ntsv = "{split}.tsv"\n' for split in ("train", "valid", "test"))
    more = RECIPE.replace("[train]", '[train]\nobjective = "classify"') + "[data]\nmax_tokens = 20\n"
    return recipe_in(folder, splits + more)


def images(folder: Path) -> Path:
    """Squares of which one quarter is bright: which, is the label."""
    rng = np.random.default_rng(4)
    for name, count in (("train", 160), ("valid", 30), ("test", 30)):
        labels = rng.integers(0, 4, count)
        pixels = rng.integers(0, 90, (count, 8, 8))
        for image, label in zip(pixels, labels, strict=True):
            image[4 * (label // 2) :, 4 * (label % 2) :][:4, :4] += 120
        names = np.array(["upper left", "upper right", "lower left", "lower right"])[labels]
        np.savez(folder / f"{name}.npz", images=pixels.astype(np.uint8), labels=names)
    splits = "".join(f'[[data.{split}]]\nimages = "{split}.npz"\n' for split in ("train", "valid", "test"))
    more = RECIPE.replace("[train]", '[train]\nobjective = "image"').replace(
        "batch_tokens = 512", "batch_tokens = 2304"
    )
    return recipe_in(folder, splits + more.replace("max_length = 24", "patch_size = 4"))


def recipe_in(folder: Path, text: str) -> Path:
    (folder / "recipe.toml").write_text(text)
    return folder / "recipe.toml"


MADE: dict[str, Callable[[Path], Path]] = {"classify": texts, "image": images}
both = pytest.mark.parametrize("goal", MADE)


@pytest.fixture(scope="module", params=MADE)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    recipe = MADE[request.param](folder)
    train_here(recipe, folder / "trained", f"train.steps={200 if request.param == 'image' else 60}")
    return request.param, recipe, folder / "trained"


def test_a_model_learns_and_is_a_bundle_that_says_what_it_knows(trained: tuple[str, Path, Path]) -> None:
    goal, recipe, folder = trained
    found = gf.evaluate(folder, split="test", device="cpu")
    assert found.scores.accuracy > 90
    loaded = bundle.load(folder)
    assert loaded.labels == tuple(sorted(loaded.labels))
    assert loaded.labels == gf.Classifier.load(folder).labels
    if goal == "image":
        assert not list(folder.glob("tokenizer*"))
        assert loaded.model.config.max_length == 5
        with np.load(recipe.parent / "test.npz") as kept:
            assert gf.Classifier.load(folder)(kept["images"][0]) == found.hypotheses[0]
    else:
        assert gf.Classifier.load(folder)("two red") == "like red"
        words = set(loaded.tokenizer.pieces[1].values())
        assert {"red", "two"} <= words
        assert "like" not in words  # no label is in the vocabulary


@pytest.mark.long
@both
def test_a_kill_changes_nothing_and_two_processes_are_one(goal: str, tmp_path: Path) -> None:
    recipe = MADE[goal](tmp_path)
    less = ("train.steps=10", "train.log_every=1", "train.valid_every=5")
    assert_survives_a_kill(recipe, tmp_path, *less)
    assert_two_processes_equal_one(recipe, tmp_path, *less, "model.dropout=0.0", "train.ema=0.0")


def batch_of(tmp_path: Path, rows: list[str]) -> tuple[LabelledTokenizer, dict[str, torch.Tensor]]:
    (tmp_path / "rows.tsv").write_text("".join(f"{row}\n" for row in rows))
    corpus = Corpus(tsv=tmp_path / "rows.tsv")
    words = Tokenizer.train([("", "one two three")], TokenizerOptions(kind="words"))
    tokenizer = LabelledTokenizer(words, Labels.collect([corpus]))
    store = prepare([corpus], tokenizer, tmp_path / "store")
    (batch,) = Batches(store, BatchOptions(tokens=4 * 16, shapes=1)).epoch(0)
    return tokenizer, local_rows(batch, ALONE, objective="classify").rows


def test_a_text_is_seen_whole_and_its_label_is_asked(tmp_path: Path) -> None:
    """However much longer the text is than its label."""
    tokenizer, rows = batch_of(
        tmp_path, ["one two\tb", "three\ta", "two one one one two three two one one two one one\tb"]
    )
    real = rows["labels"] >= 0
    assert int(real.sum()) == 3
    for label, ids, mask in zip(rows["labels"][real], rows["ids"][real], rows["mask"][real], strict=True):
        kept = ids[mask].tolist()
        assert (kept[0], kept[-1]) == (START, END)
        text = tokenizer.texts.decode_target([kept[1:-1]])[0]
        assert tokenizer.labels.names[label] == ("a" if text == "three" else "b")
    assert not rows["mask"][~real].any()


def test_no_label_is_in_what_the_model_reads(tmp_path: Path) -> None:
    """The same texts with other labels are the same input, and only the labels differ; a text that differs shows."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    _, one = batch_of(tmp_path / "a", ["one two\tyes", "three\tno", "two\tno"])
    _, other = batch_of(tmp_path / "b", ["one two\tno", "three\tyes", "two\tyes"])
    _, third = batch_of(tmp_path / "c", ["one three\tno", "three\tyes", "two\tyes"])
    assert torch.equal(one["ids"], other["ids"])
    assert torch.equal(one["mask"], other["mask"])
    assert not torch.equal(one["labels"], other["labels"])
    assert not torch.equal(one["ids"], third["ids"])


def test_an_image_comes_out_of_the_store_as_it_went_in(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for channels in (1, 3):
        whole = rng.integers(0, 256, (5, channels, 6, 6), dtype=np.uint8)
        np.savez(tmp_path / "some.npz", images=whole, labels=["b", "a", "b", "c", "a"])
        corpus = Corpus(images=tmp_path / "some.npz")
        tokenizer = ImageTokenizer(Labels.collect([corpus]))
        store = prepare([corpus], tokenizer, tmp_path / f"store{channels}")
        (batch,) = Batches(store, BatchOptions(tokens=8 * 120, shapes=1)).epoch(0)
        rows = local_rows(batch, ALONE, objective="image").rows
        real = rows["labels"] >= 0
        found = {
            tuple((image * 255).round().int().flatten().tolist()): label
            for image, label in zip(rows["ids"][real], rows["labels"][real].tolist(), strict=True)
        }
        assert rows["ids"].shape[1:] == (channels, 6, 6)
        assert found == {
            tuple(image.flatten().tolist()): "abc".index(name) for image, name in zip(whole, "babca", strict=True)
        }


def test_digits_are_scikit_learns_and_dealt_once() -> None:
    load_digits = pytest.importorskip("sklearn.datasets").load_digits()
    parts = {split: digits(split) for split in ("train", "valid", "test")}
    assert {split: len(labels) for split, (_, labels) in parts.items()} == {"train": 1347, "valid": 90, "test": 360}
    dealt = sorted(image.tobytes() for images, _ in parts.values() for image in images)
    whole = np.rint(load_digits.images / 16 * 255).astype(np.uint8)
    assert dealt == sorted(image.tobytes() for image in whole)
    assert not np.array_equal(digits("test", seed=1)[0], parts["test"][0])
    with pytest.raises(DataError, match=r"digits has no split `tests`; .* did you mean `test`"):
        digits("tests")


def test_images_of_every_usual_form_are_brought_to_one() -> None:
    grey = np.arange(2 * 4 * 4).reshape(2, 4, 4)
    assert normalize_images(grey, "x").shape == (2, 1, 4, 4)
    assert np.array_equal(normalize_images(grey / 255, "x"), normalize_images(grey, "x"))
    assert normalize_images(np.zeros((2, 8, 8, 3)), "x").shape == (2, 3, 8, 8)
    for wrong, said in (
        (np.zeros((2, 4, 5)), "with one channel or three"),
        (grey + 300, "lie in 0 to 255"),
        (grey * 1.0, "in 0 to 1"),
    ):
        with pytest.raises(DataError, match=said):
            normalize_images(wrong, "x")
    assert len(image_to_text(grey[0].astype(np.uint8))) == 16
    assert not any(sign.isspace() for sign in image_to_text(np.arange(256, dtype=np.uint8)))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["one\ta", "two\ta"], r"there is one label only, `a`; give texts of two or more"),
        ([f"one\tl{number}" for number in range(10_001)], r"over 10,000 different labels"),
    ],
)
def test_labels_that_are_none_are_told(tmp_path: Path, rows: list[str], said: str) -> None:
    (tmp_path / "rows.tsv").write_text("\n".join(rows) + "\n")
    with pytest.raises(DataError, match=said):
        Labels.collect([Corpus(tsv=tmp_path / "rows.tsv")])


def test_a_label_that_training_never_met_is_told(tmp_path: Path) -> None:
    recipe = texts(tmp_path)
    (tmp_path / "valid.tsv").write_text("one red\tlike rad\n")
    with pytest.raises(
        DataError, match=r"the label 'like rad' is not one of data.train's, .*; did you mean `like red`"
    ):
        train_here(recipe, tmp_path / "run")
    assert not (tmp_path / "run" / "recipe.toml").exists()
    assert not (tmp_path / "run" / "labels.json").exists()


@pytest.mark.parametrize(
    ("goal", "change", "said"),
    [
        ("classify", "train.pack=true", r"train.pack = true is not for objective = 'classify'"),
        ("classify", "train.batch_tokens='auto'", r"batch_tokens = 'auto' is not for objective = 'classify'"),
        ("classify", "train.metric='bleu'", r"metric = 'bleu' is for translations"),
        ("classify", "model.tied=true", r"labels=3: a head of labels has no words to be tied to"),
        ("classify", "data.valid=[{builtin='digits'}]", r"has images, and .* 'classify' learns from labelled texts"),
        ("image", "data.valid=[{builtin='kinds'}]", r"has pairs, and .* 'image' learns from images: give images = "),
        ("image", "model.patch_size=3", r"patch_size=3 is for images: it must divide image_size=8"),
        ("image", "train.batch_tokens=60", r"smaller than the longest image, 65 pixels"),
        ("classify", "train.objective='language'", r"has pairs, and .* 'language' learns from plain texts"),
    ],
)
def test_what_cannot_be_learnt_is_told(tmp_path: Path, goal: str, change: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        train_here(MADE[goal](tmp_path), tmp_path / "run", change)


def test_an_image_recipe_without_a_patch_is_told(tmp_path: Path) -> None:
    recipe = images(tmp_path)
    recipe.write_text(recipe.read_text().replace("patch_size = 4\n", ""))
    with pytest.raises(ConfigError, match=r"model.patch_size is not set: give the side of the squares"):
        read_recipe(str(recipe))


def test_a_resumed_run_is_the_same_and_lost_labels_are_told(trained: tuple[str, Path, Path], tmp_path: Path) -> None:
    _, recipe, _ = trained
    often = ("train.save_every=1", "train.log_every=1", "train.valid_every=3")
    train_here(recipe, tmp_path / "run", "train.steps=3", *often)
    train_here(recipe, tmp_path / "whole", "train.steps=6", *often)
    shutil.copytree(tmp_path / "run", tmp_path / "lost")
    train_here(None, tmp_path / "run", "train.steps=6", resume=True)
    assert_same(tmp_path / "run", tmp_path / "whole")
    (tmp_path / "lost" / "labels.json").unlink()
    with pytest.raises(RunError, match=r"labels.json is missing, and the checkpoints know no labels; copy it back"):
        train_here(None, tmp_path / "lost", "train.steps=6", resume=True)


def test_shifted_images_come_beside_the_whole(tmp_path: Path) -> None:
    image = np.arange(1, 10, dtype=np.uint8).reshape(1, 3, 3)
    np.savez(tmp_path / "one.npz", images=np.concatenate((image, image + 9)), labels=["a", "b"])
    found, labels = load_images(Corpus(images=tmp_path / "one.npz", shift=1))
    assert (found.shape, labels) == ((18, 1, 3, 3), ["a", "b"] * 9)
    moved = {tuple(one.flatten().tolist()) for one, label in zip(found, labels, strict=True) if label == "a"}
    assert len(moved) == 9
    assert (1, 2, 3, 4, 5, 6, 7, 8, 9) in moved
    assert (0, 0, 0, 0, 1, 2, 0, 4, 5) in moved  # down and to the right
    assert (5, 6, 0, 8, 9, 0, 0, 0, 0) in moved
    with pytest.raises(ConfigError, match=r"corpus shift 1 is for images"):
        Corpus(tsv="x.tsv", shift=1)
