"""Batches: every pair, few shapes, little padding, and an order that depends on seed and epoch only."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.common.errors import ConfigError
from glassformer.data import (
    END,
    PAD,
    START,
    Batch,
    Batches,
    BatchOptions,
    Corpus,
    FilterOptions,
    Store,
    Tokenizer,
    TokenizerOptions,
    prepare,
)
from glassformer.data.shapes import Shape

WORDS = Tokenizer.train([("a b c d e f g h", "s t u v w x y z")], TokenizerOptions("words", 100))


def corpora(folder: Path, lengths: list[list[tuple[int, int]]], weights: list[float]) -> list[Corpus]:
    made = []
    for number, (part, weight) in enumerate(zip(lengths, weights, strict=True)):
        path = folder / f"{number}.jsonl"
        rows = [
            {"src": " ".join("abcdefgh"[(k + i) % 8] for i in range(s)), "tgt": "x " * t}
            for k, (s, t) in enumerate(part)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        made.append(Corpus(jsonl=path, weight=weight))
    return made


def make(folder: Path, lengths: list[list[tuple[int, int]]], weights: list[float] | None = None) -> Store:
    return prepare(
        corpora(folder, lengths, weights or [1.0] * len(lengths)), WORDS, folder / "store", FilterOptions(max_ratio=200)
    )


def spread(count: int, seed: int = 0) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    src = np.clip(rng.lognormal(2.4, 0.45, count), 1, 100).astype(int)
    tgt = np.clip(src * rng.lognormal(0, 0.15, count) + 1, 1, 120).astype(int)
    return list(zip(src.tolist(), tgt.tolist(), strict=True))


def same(one: Batch, other: Batch) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("src", "src_mask", "tgt_in", "labels")
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make(tmp_path_factory.mktemp("batch"), [spread(3_000)])


lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60)


@settings(max_examples=25, deadline=None)
@given(
    lengths=lengths,
    tokens=st.integers(41, 600),
    seed=st.integers(0, 2**40),
    epoch=st.integers(0, 1000),
    shapes=st.integers(1, 12),
)
def test_properties(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[tuple[int, int]],
    tokens: int,
    seed: int,
    epoch: int,
    shapes: int,
) -> None:
    store = make(tmp_path_factory.mktemp("batch"), [lengths])
    options = BatchOptions(tokens, seed, shapes=shapes)
    batches = Batches(store, options)
    plan = batches.epoch(epoch)
    assert len(batches.shapes) <= shapes
    # Every pair exactly once.
    assert sorted(np.concatenate([plan.pairs(i) for i in range(len(plan))]).tolist()) == list(range(len(store)))
    # The same from a fresh start, at any place, in any order.
    again = Batches(store, options).epoch(epoch)
    for index in reversed(range(len(plan))):
        assert same(plan[index], again[index])
    for index, batch in enumerate(plan):
        rows, width = batch.src.shape[0], max(batch.src.shape[1], batch.labels.shape[1])
        assert Shape(*batch.src.shape, batch.labels.shape[1]) in batches.shapes
        assert rows * width <= tokens or rows == 1  # a pair longer than the budget goes alone
        check(store, plan.pairs(index).tolist(), batch)


def check(store: Store, pairs: list[int], batch: Batch) -> None:
    """The slow and obvious way to fill a batch."""
    src, mask, tgt_in, labels = (np.zeros_like(a) for a in (batch.src, batch.src_mask, batch.tgt_in, batch.labels))
    for row, pair in enumerate(pairs):
        source, target = store.pair(pair)
        src[row, : len(source)] = source
        mask[row, : len(source)] = True
        tgt_in[row, : len(target) + 1] = [START, *target]
        labels[row, : len(target) + 1] = [*target, END]
    assert same(batch, Batch(src, mask, tgt_in, labels, 0, 0))
    assert batch.tokens == (labels != PAD).sum()
    assert batch.pairs == len(pairs)


def test_epochs_and_seeds_differ(store: Store) -> None:
    batches = Batches(store, BatchOptions(1024))
    firsts = [batches.epoch(0)[0], batches.epoch(1)[0], Batches(store, BatchOptions(1024, seed=1)).epoch(0)[0]]
    assert not any(same(a, b) for a, b in [(firsts[0], firsts[1]), (firsts[0], firsts[2]), (firsts[1], firsts[2])])
    assert same(batches.epoch(0)[0], firsts[0])


def test_order_is_the_same_everywhere(store: Store) -> None:
    """Written down once: a checkpoint resumed with other library versions must find its place again."""
    plan = Batches(store, BatchOptions(512, shapes=1)).epoch(3)
    assert plan.pairs(0)[:4].tolist() == [2377, 277, 2109, 2804]


def test_batches_of_one_shape_are_scattered_over_the_epoch(store: Store) -> None:
    plan = Batches(store, BatchOptions(512)).epoch(0)
    widths = np.array([plan.shape(i).tgt for i in range(len(plan))])
    half = len(widths) // 2
    assert abs(widths[:half].mean() - widths[half:].mean()) < 0.2 * widths.mean()


def test_little_padding_in_few_shapes(store: Store) -> None:
    batches = Batches(store, BatchOptions(1024, shapes=10))
    plan = batches.epoch(0)
    real = sum(int(batch.src_mask.sum()) + batch.tokens for batch in plan)
    cells = sum(batch.src.size + batch.labels.size for batch in plan)
    assert plan.padding_share == pytest.approx(1 - real / cells)
    assert plan.padding_share < 0.18
    assert len(store) / sum(plan.shape(i).rows for i in range(len(plan))) > 0.97
    assert all(len(plan.pairs(i)) > 0.5 * plan.shape(i).rows for i in range(len(plan)))
    assert Batches(store, BatchOptions(1024, shapes=1)).epoch(0).padding_share > 0.6
    assert all(shape.rows % 8 == 0 for shape in batches.shapes)
    assert all(width % 8 == 0 for shape in batches.shapes for width in (shape.src, shape.tgt) if width > 32)


def test_a_budget_for_a_gpu_has_even_widths(tmp_path: Path) -> None:
    store = make(tmp_path, [[(7, 11), (3, 4), (5, 5)] * 2_000])
    shapes = Batches(store, BatchOptions(8192)).shapes
    assert [(shape.src, shape.tgt) for shape in shapes] == [(4, 6), (6, 6), (8, 12)]
    small = Batches(store, BatchOptions(1024)).shapes
    assert [(shape.src, shape.tgt) for shape in small] == [(3, 5), (5, 6), (7, 12)]


def test_weights(tmp_path: Path) -> None:
    store = make(tmp_path, [spread(400), spread(300, 1), spread(1_000, 2)], [2.0, 1.0, 0.25])
    batches = Batches(store, BatchOptions(512))
    total = np.zeros(len(store))
    kept = []
    for epoch in range(40):
        plan = batches.epoch(epoch)
        seen = np.bincount(np.concatenate([plan.pairs(i) for i in range(len(plan))]), minlength=len(store))
        assert (seen[:400] == 2).all()
        assert (seen[400:700] == 1).all()
        assert seen[700:].max() == 1
        total += seen
        kept.append(seen[700:].sum())
    assert np.mean(kept) == pytest.approx(250, rel=0.05)
    assert Counter(total[700:].astype(int).tolist())[0] < 5  # another quarter every time
    one, two = Batches(store, BatchOptions(512)).epoch(7), batches.epoch(7)
    assert all(same(one[i], two[i]) for i in range(len(two)))


def test_wrong_options(store: Store) -> None:
    with pytest.raises(ConfigError, match="longest sentence"):
        Batches(store, BatchOptions(16))
    with pytest.raises(ConfigError, match=r"batch\.shapes 0"):
        BatchOptions(shapes=0)
    with pytest.raises(ConfigError, match=r"batch\.seed"):
        BatchOptions(seed=-1)
    with pytest.raises(IndexError):
        Batches(store, BatchOptions(1024)).epoch(0)[10_000]


def test_weights_that_leave_no_pair_are_told(tmp_path: Path) -> None:
    """Training would look for a batch from one empty epoch to the next, without end."""
    with pytest.raises(ConfigError, match=r"leave 3e-09 pairs an epoch of the 3; .*change each `weight`"):
        Batches(make(tmp_path, [[(1, 1), (2, 2), (3, 3)]], [1e-9]), BatchOptions(tokens=64))
