"""Where a source's law is known, a score says how far from the best possible it is."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import glassformer as gf
from glassformer.data import Tokenizer
from glassformer.data import exact_source as known
from glassformer.data.noise import text_pieces
from glassformer.train import Report, read_recipe, train
from glassformer.train.evaluation.metrics import GapScores, TextScores

SIZES = [f'data.{split}=[{{builtin="numerals-text", split="{split}", size={size}}}]' for split, size in
         (("train", 2000), ("valid", 20), ("test", 12))]  # fmt: skip
TINY = (*SIZES, "tokenizer.vocab_size=400", "model.d_model=16", "model.d_ff=16", "model.layers=1", "train.steps=2")


def trained(recipe: str, folder: Path) -> Path:
    return train(read_recipe(recipe, TINY), folder, device="cpu", report=Report(quiet=True))


def test_a_decoder_beside_its_source(tmp_path: Path) -> None:
    scores = gf.evaluate(trained("numerals-gpt", tmp_path / "gpt"), split="test").scores
    assert isinstance(scores, TextScores)
    texts = known.draw("test", size=12)
    ids = Tokenizer.load(tmp_path / "gpt").encode_target(texts)
    assert scores.least == pytest.approx(known.least_loss(texts) / (sum(map(len, ids)) + 12))
    assert scores.loss > scores.least
    assert f"{scores.loss - scores.least:.4f} above the source's own {scores.least:.4f}" in str(scores)
    other = gf.evaluate(tmp_path / "gpt", ["one"]).scores
    assert isinstance(other, TextScores)
    assert other.least is None


def test_an_encoder_and_the_gaps_that_the_rest_determines(tmp_path: Path) -> None:
    scores = gf.evaluate(trained("numerals-bert", tmp_path / "bert"), split="test").scores
    assert isinstance(scores, GapScores)
    tokenizer = Tokenizer.load(tmp_path / "bert")
    pieces = [*text_pieces(tokenizer.pieces[1])]
    rows = tokenizer.encode_target(known.draw("test", size=12))
    assert scores.determined == sum(sum(known.determined_tokens(ids, tokenizer, pieces)) for ids in rows)
    assert 0 < scores.determined < scores.tokens
    assert scores.determined_accuracy is not None
    assert f"of the {scores.determined:,} gaps that the rest determines {scores.determined_accuracy:.1f} %" in str(
        scores
    )


def test_a_score_of_gaps_counts_the_determined_ones() -> None:
    found = GapScores.of([-1.0, -2.0], [2, 0], [3, 2], [True, True, False, True])
    assert (found.determined, found.determined_accuracy) == (4, 75.0)
    assert GapScores.of([-1.0], [1], [2]).determined is None
    assert TextScores.of([-6.0], 3, ["abc"], 4.5).least == 1.5
    assert math.isclose(TextScores.of([-6.0], 3, ["abc"]).loss, 2.0)
