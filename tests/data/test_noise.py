"""What is hidden is what was specified: shares, runs, sentinels; and nothing of it is left in the source."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.data import END, PAD, START
from glassformer.data.noise import (
    Noise,
    SpanCorruption,
    TextInfilling,
    TokenMasking,
    hidden_count,
    sentence_ends,
    text_pieces,
)
from glassformer.data.randomness import uniform

FIRST, LAST = 300, 700  # of the ids that texts have here
MASK, STOP = 10, 299
SENTINELS = np.arange(100, 200)

texts = st.lists(
    st.lists(st.one_of(st.integers(FIRST, LAST), st.just(STOP)), min_size=1, max_size=60), min_size=1, max_size=6
)
shares, means = st.floats(0.01, 0.9), st.floats(1, 8)


def made(noise: Noise, given: list[list[int]], seed: int, epoch: int = 0) -> list[tuple[list[int], list[int]]]:
    """Source and target of each text; what is beyond their lengths is padding."""
    lengths = np.array([len(text) for text in given])
    padded = np.full((len(given), lengths.max()), PAD, dtype=np.int64)
    for row, text in enumerate(given):
        padded[row, : len(text)] = text
    numbers = np.arange(len(given))
    sides = noise(padded, lengths, lambda use: uniform(seed, epoch, use, numbers, padded.shape[1]))
    for side, expected in zip(sides, noise.lengths(lengths), strict=True):
        assert side.shape[1] >= expected.max()
        assert (side[np.arange(side.shape[1]) >= expected[:, None]] == PAD).all()
    longs = noise.lengths(lengths)
    return [tuple(side[i, : long[i]].tolist() for side, long in zip(sides, longs, strict=True)) for i in numbers]


@settings(max_examples=100, deadline=None)
@given(texts, shares, st.integers(0, 2**40))
def test_gaps_are_so_many_and_the_rest_stays(given: list[list[int]], share: float, seed: int) -> None:
    noise = TokenMasking(MASK, np.arange(FIRST, LAST + 1), share)
    for text, (source, target) in zip(given, made(noise, given, seed), strict=True):
        assert (source[0], source[-1], len(source)) == (START, END, len(text) + 2)
        assert target[0] == PAD
        asked = [(place, id) for place, id in enumerate(target[1:]) if id != PAD]
        assert len(asked) == max(1, round(len(text) * share))
        assert all(text[place] == id for place, id in asked)
        for place, (was, now) in enumerate(zip(text, source[1:-1], strict=True)):
            if place not in dict(asked):
                assert now == was
            assert now in (was, MASK) or FIRST <= now <= LAST


def test_of_the_chosen_eighty_in_a_hundred_are_hidden_ten_replaced_ten_left() -> None:
    given = [[FIRST + (row + column) % 400 for column in range(100)] for row in range(400)]
    fates = np.zeros(3)
    for text, (source, target) in zip(
        given, made(TokenMasking(MASK, np.arange(FIRST, LAST + 1)), given, seed=3), strict=True
    ):
        for was, now, asked in zip(text, source[1:-1], target[1:], strict=True):
            if asked != PAD:
                fates[0 if now == MASK else 2 if now == was else 1] += 1
    assert fates.sum() == 400 * 15
    assert np.abs(fates / fates.sum() - (0.8, 0.1, 0.1)).max() < 0.02


@settings(max_examples=100, deadline=None)
@given(texts, shares, means, st.integers(0, 2**40))
def test_spans_and_what_is_left_make_the_text(given: list[list[int]], share: float, mean: float, seed: int) -> None:
    noise = SpanCorruption(SENTINELS, share, mean)
    for text, (source, target) in zip(given, made(noise, given, seed), strict=True):
        hidden: dict[int, list[int]] = {}
        for id in target:  # the target: each sentinel, then what it hides
            if id in SENTINELS:
                hidden[id] = []
            else:
                hidden[list(hidden)[-1]].append(id)
        assert list(hidden) == SENTINELS[: len(hidden)].tolist() == [id for id in source if id in SENTINELS]
        assert all(hidden.values())
        rebuilt = [token for id in source for token in hidden.get(id, [id])]
        assert rebuilt == text
        size = max(1, min(round(len(text) * share), len(text) - 1))
        assert sum(map(len, hidden.values())) == size
        assert len(hidden) == max(1, min(max(1, round(size / mean)), len(text) - size))
        places = [place for place, id in enumerate(source) if id in SENTINELS]
        assert all(after - before > 1 for before, after in pairwise(places))  # a token is left between two runs


def test_the_run_of_a_short_text_may_be_anywhere() -> None:
    """T5's own way ends every text with a hidden run: of a short one, nothing else would ever be asked."""
    given = [list(range(FIRST, FIRST + 6))] * 3000
    hidden = [target[1] - FIRST for _, target in made(SpanCorruption(SENTINELS), given, seed=5)]
    assert [400 < hidden.count(place) < 600 for place in range(6)] == [True] * 6


@settings(max_examples=100, deadline=None)
@given(texts, shares, means, st.integers(0, 2**40))
def test_infilling_leaves_the_other_tokens_in_their_sentences(
    given: list[list[int]], share: float, mean: float, seed: int
) -> None:
    noise = TextInfilling(MASK, np.array([STOP]), share, mean)
    for text, (source, target) in zip(given, made(noise, given, seed), strict=True):
        assert target == text
        size = max(1, round(len(text) * share))
        assert source.count(MASK) == max(1, round(size / mean))
        assert len(source) == len(text) - size + source.count(MASK)
        assert not {*source} - {*text, MASK}


def test_sentences_change_places_whole() -> None:
    noise = TextInfilling(MASK, np.array([STOP]), 0.001)
    sentences = [[301, 302, STOP], [303, STOP], [304, 305, 306, STOP]]
    text = [*chain(*sentences)]
    seen = set()
    for seed in range(60):
        ((source, _),) = made(noise, [text], seed)
        where = source.index(MASK)
        orders = [[*chain(*(sentences[i] for i in order))] for order in ORDERS]
        whole = [order for order in orders if any(fits(source, where, order, hidden) for hidden in range(2))]
        assert whole, source
        seen.add(tuple(whole[0]))
    assert len(seen) == len(ORDERS)


ORDERS = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]


def fits(source: list[int], gap: int, text: list[int], hidden: int) -> bool:
    return source[:gap] == text[:gap] and source[gap + 1 :] == text[gap + hidden :]


@pytest.mark.parametrize(
    "noise",
    [TokenMasking(MASK, np.arange(FIRST, LAST)), SpanCorruption(SENTINELS), TextInfilling(MASK, np.array([STOP]))],
)
def test_noise_follows_from_seed_epoch_and_text_alone(noise: Noise) -> None:
    given = [[FIRST + (7 * row + 3 * column) % 400 for column in range(40)] for row in range(8)]
    first = made(noise, given, seed=1)
    assert made(noise, given, seed=1) == first
    assert made(noise, given[:3], seed=1) == first[:3]  # whoever stands beside it in the batch
    assert sum(a != b for a, b in zip(first, made(noise, given, seed=1, epoch=1), strict=True)) == 8
    assert sum(a != b for a, b in zip(first, made(noise, given, seed=2), strict=True)) == 8


def test_no_special_piece_and_no_byte_is_ordinary() -> None:
    pieces = dict(enumerate(["<pad>", "<s>", "</s>", "<unk>", "<0x41>", "<2de>", "[MASK]", "<extra_id_12>", " a", "."]))
    assert list(text_pieces(pieces)) == [8, 9]
    assert sentence_ends(pieces).tolist() == [9]
    assert hidden_count(np.array([1, 3, 4, 100]), 0.15).tolist() == [1, 1, 1, 15]
