"""Claims on positions, heads, memories, losses and layout: the verdict of seed 0, and a broken part that turns it."""

import pytest
import torch

from glassformer.labs import Verdict, heads, layout, memories, permutation, sinusoids, smoothing
from glassformer.model.attention import Attention
from glassformer.model.layer import FeedForward
from glassformer.model.loss import smoothed_cross_entropy
from glassformer.model.position import PositionTable


class EachColumnItsOwnFrequency(PositionTable):
    """A common slip: the exponent runs over columns, so that a sine and its cosine no longer belong together."""

    def __init__(self, config):
        super().__init__(config)
        frequency = 10_000.0 ** (-torch.arange(config.d_model) / config.d_model)
        angle = torch.arange(config.max_length).unsqueeze(1) * frequency
        self.table = torch.where(torch.arange(config.d_model) % 2 == 0, angle.sin(), angle.cos())


def test_sinusoids(shipped):
    assert shipped(sinusoids).verdict is Verdict.LIMITED
    assert sinusoids.run(0, positions=EachColumnItsOwnFrequency).verdict is Verdict.FAILS


@pytest.mark.long
def test_permutation(shipped):
    assert shipped(permutation).verdict is Verdict.LIMITED


def test_permutation_where_one_kind_of_positions_is_none(monkeypatch):
    monkeypatch.setattr(permutation, "STEPS", 20)  # it is seen before any training
    assert permutation.run(0, without="alibi").verdict is Verdict.FAILS


class OnePatternForAll(Attention):
    """Heads that add up their scores and all look the same way: one wide head in disguise."""

    def attend(self, q, k, v, mask, cache):
        scores = (q @ k.transpose(-2, -1)).sum(1, keepdim=True) / (self.heads * self.d_head) ** 0.5
        return torch.softmax(scores, -1) @ v


@pytest.mark.long
def test_heads(shipped):
    assert shipped(heads).verdict is Verdict.LIMITED


def test_heads_that_all_look_the_same_way(monkeypatch):
    monkeypatch.setattr(heads, "MOST", 150)  # twice what several heads need
    assert heads.run(0, attention=OnePatternForAll).verdict is Verdict.FAILS


def added_on_top(logits, labels, e, pad):
    """Smoothing added to the full one-hot loss: the wanted shares then sum to more than one."""
    return smoothed_cross_entropy(logits, labels, e, pad) + e * smoothed_cross_entropy(logits, labels, 0.0, pad)


def test_smoothing(shipped):
    assert shipped(smoothing).verdict is Verdict.HOLDS
    assert smoothing.run(0, loss=added_on_top).verdict is Verdict.FAILS


class ValuesOfTheNeighbour(FeedForward):
    """What is seen of a neuron is another's: keys and values no longer belong together."""

    def forward(self, x):
        hidden = self.activation(self.up(x))
        self.hidden(hidden.roll(1, -1))
        return self.down(hidden)


class WithoutActivation(FeedForward):
    """Two matrices in a row, which are one: no pair of letters can be recognised by it."""

    def forward(self, x):
        return self.down(self.hidden(self.up(x)))


def test_memories(shipped):
    assert shipped(memories).verdict is Verdict.LIMITED


@pytest.mark.long
def test_memories_whose_keys_and_values_do_not_belong_together_or_that_recognise_nothing():
    other = memories.run(0, feed_forward=ValuesOfTheNeighbour)
    assert [check.passed for check in other.checks[:2]] == [True, False]
    linear = memories.run(0, feed_forward=WithoutActivation)
    assert not linear.checks[0].passed
    assert linear.verdict is other.verdict is Verdict.FAILS


def test_layout(shipped):
    assert shipped(layout).verdict is Verdict.LIMITED
    assert layout.run(0, keep=lambda k, v: (k, v)).verdict is Verdict.FAILS  # a cache that keeps the transposed views
