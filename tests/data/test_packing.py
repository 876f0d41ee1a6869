"""Rows that hold several pairs: every pair once, laid out as it was, and each computed as if it were alone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer import EncoderDecoder, ModelConfig
from glassformer.data import (
    END,
    PAD,
    START,
    Batches,
    BatchOptions,
    Corpus,
    Shape,
    Store,
    Tokenizer,
    TokenizerOptions,
    prepare,
    read_pairs,
)
from glassformer.data.batch import LOOKAHEAD, fill_rows, tight_order

CORPUS = Corpus(builtin="numerals", size=700)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    tokenizer = Tokenizer.train(read_pairs(CORPUS), TokenizerOptions(vocab_size=400))
    return prepare([CORPUS], tokenizer, tmp_path_factory.mktemp("packed") / "store")


@pytest.mark.parametrize("tokens", [300, 2048])
def test_every_pair_comes_once_an_epoch_in_rows_of_one_shape(store: Store, tokens: int) -> None:
    batches = Batches(store, BatchOptions(tokens, pack=True))
    plan = batches.epoch(3)
    assert sorted(np.concatenate([plan.pairs(i) for i in range(len(plan))])) == list(range(len(store)))
    assert {batch.src.shape for batch in plan} == {(batches.shapes[0].rows, batches.shapes[0].src)}
    assert plan.padding_share < 0.2
    assert sum(batch.tokens for batch in plan) == sum(int((batch.labels != PAD).sum()) for batch in plan)
    again = Batches(store, BatchOptions(tokens, pack=True)).epoch(3)
    assert (again[1].src == plan[1].src).all()
    assert (batches.epoch(4)[1].src != plan[1].src).any()


def test_a_packed_pair_is_computed_as_if_it_were_alone(store: Store) -> None:
    config = ModelConfig(vocab_size=400, d_model=32, heads=4, d_ff=64, layers=2, max_length=300, dropout=0.0)
    model = EncoderDecoder(config).eval()
    plan = Batches(store, BatchOptions(1024, pack=True)).epoch(0)
    for index in (0, len(plan) - 1):
        batch = plan[index]
        src, tgt, src_places, tgt_places = map(
            torch.from_numpy, (batch.src, batch.tgt_in, batch.src_places, batch.tgt_places)
        )
        with torch.no_grad():
            together = model(src, tgt, None, src_places, tgt_places)
        assert torch.isfinite(together).all()
        numbers = iter(plan.pairs(index))
        for row in range(len(src)):
            sources = np.flatnonzero((batch.src_places[row] == 0) & (batch.src[row] != PAD))
            targets = np.flatnonzero((batch.tgt_places[row] == 0) & (batch.tgt_in[row] != PAD))
            for s, t in zip(sources, targets, strict=True):
                source, target = store.pair(int(next(numbers)))
                end = t + len(target) + 1
                assert batch.src[row, s : s + len(source)].tolist() == source
                assert batch.tgt_in[row, t:end].tolist() == [START, *target]
                assert batch.labels[row, t:end].tolist() == [*target, END]
                with torch.no_grad():
                    alone = model(torch.tensor([source]), torch.tensor([[START, *target]]))
                torch.testing.assert_close(together[row, t:end], alone[0], atol=2e-5, rtol=0)
        assert next(numbers, None) is None
    with torch.no_grad():  # the test would notice: without places, each row is one long pair
        mixed = model(src, tgt)
    assert (mixed - together).abs().max() > 0.01


def test_a_text_too_long_for_a_row_makes_the_rows_wider(store: Store) -> None:
    longest = max(int(side.max()) for side in store.lengths())
    assert Batches(store, BatchOptions(longest + 8, pack=True)).shapes[0].src >= longest + 1


def test_packed_rows_are_told_by_their_corpus(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n\ntwo\n")
    (tmp_path / "b").write_text("eins\n\nzwei\n")
    corpus = Corpus(src=tmp_path / "a", tgt=tmp_path / "b", weight=3)
    tokenizer = Tokenizer.train(read_pairs(corpus), TokenizerOptions(kind="words", vocab_size=10))
    plan = Batches(prepare([corpus], tokenizer, tmp_path / "s"), BatchOptions(16, pack=True)).epoch(0)
    assert sum(batch.pairs for batch in plan) == 6


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 24)), min_size=1, max_size=120))
def test_tight_rows_take_every_pair_once_and_leave_no_room_for_those_that_wait(pairs: list[tuple[int, int]]) -> None:
    src, tgt = (np.array(side) for side in zip(*pairs, strict=True))
    shape = Shape(1, 20, 24)
    order = tight_order(src.tolist(), tgt.tolist(), shape)
    assert sorted(order.tolist()) == list(range(len(pairs)))
    starts = fill_rows(src[order], tgt[order], shape).tolist()
    for row, (begin, end) in enumerate(pairwise(starts)):
        there, later = order[begin:end], order[end:]
        assert src[there].sum() <= 20
        assert tgt[there].sum() <= 24
        waiting = sorted(later.tolist())[: LOOKAHEAD - 1]  # that were looked at when this row ended
        fits = [k for k in waiting if src[there].sum() + src[k] <= 20 and tgt[there].sum() + tgt[k] <= 24]
        assert not fits or row == len(starts) - 2
