"""The doctor takes exactly what trains: the same recipes, and of the others says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_run import write_recipe

from glassformer.common.errors import GlassformerError
from glassformer.train import Report, read_recipe, train
from glassformer.train.forecast import forecast

PIECES = ("tokenizer.kind=bpe",)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("mine"))


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("tokenizer.vocab_size=5",),
        (*PIECES, "tokenizer.vocab_size=270"),
        (*PIECES, "tokenizer.vocab_size=280"),
        (*PIECES, "tokenizer.vocab_size=2000"),
        ("tokenizer.kind=unigram", "tokenizer.vocab_size=2000"),
        ("train.batch_tokens=5",),
        ("train.batch_tokens=auto",),
        ("train.accumulate=7",),
        ("train.shapes=300",),
        ("data.max_tokens=1",),
        ("data.max_tokens=2000",),
        ("data.max_tokens=2000", "model.positions=rotary"),
        ("data.valid=[]",),
        ("model.max_length=200",),
    ],
)
def test_the_doctor_takes_what_trains_and_nothing_else(tmp_path: Path, recipe: Path, changes: tuple[str, ...]) -> None:
    """It once learnt a smaller vocabulary from a part of the text, and refused recipes for that."""

    def answer(of_one: str) -> str:
        try:
            loaded = read_recipe(str(recipe), ("train.shapes=1", *changes, "train.steps=1"))
            if of_one == "training":
                train(loaded, tmp_path / "run", device="cpu", report=Report(quiet=True))
            else:
                forecast(loaded, "cpu")
        except GlassformerError as error:
            return str(error).replace(str(tmp_path / "run"), "FOLDER")
        return "fine"

    assert answer("doctor") == answer("training")


def test_the_doctor_takes_a_vocabulary_that_a_small_corpus_of_many_characters_needs(tmp_path: Path) -> None:
    """A cap of its own once made it say that `vocab_size 500 is too small`, whatever the recipe asked for."""
    lines = [f"{chr(0x4E00 + 3 * i)}{chr(0x4E01 + 3 * i)}{chr(0x4E02 + 3 * i)}" for i in range(200)]
    (tmp_path / "train.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines), encoding="utf-8")
    text = '[[data.train]]\ntsv = "train.tsv"\n[tokenizer]\nvocab_size = 900\n[train]\nshapes = 1\nsteps = 1\n'
    (tmp_path / "r.toml").write_text(
        text + "[model]\nd_model = 16\nheads = 1\nd_ff = 16\nlayers = 1\n", encoding="utf-8"
    )
    assert forecast(read_recipe(str(tmp_path / "r.toml")), "cpu").vocabulary == 900


def test_the_forecast_is_of_the_model_that_trains(tmp_path: Path, recipe: Path) -> None:
    loaded = read_recipe(str(recipe), (*PIECES, "tokenizer.vocab_size=280", "train.steps=7"))
    expected = forecast(loaded, "cpu")
    assert expected.vocabulary == 280
    assert expected.total_seconds == pytest.approx(expected.seconds_per_epoch / expected.steps_per_epoch * 7)
