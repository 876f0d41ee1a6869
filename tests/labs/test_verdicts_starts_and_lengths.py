"""Concatenation, length, dropout, initialisation, activations: the verdict, and another for a broken part."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from glassformer.labs import Verdict, activations, concatenation, dropout, initialisation, length
from glassformer.model import DecoderOnly, EncoderOnly
from glassformer.model.layer import FeedForward


@pytest.mark.long
def test_concatenation(shipped):
    assert shipped(concatenation).verdict is Verdict.LIMITED


def without_positions(config):
    return EncoderOnly(replace(config, positions="none"))


@pytest.mark.long
def test_concatenation_where_nothing_is_added():
    finding = concatenation.run(0, build=without_positions)
    assert finding.verdict is Verdict.FAILS
    assert not any(check.passed for check in finding.checks[:3])


@pytest.mark.long
def test_length(shipped):
    finding = shipped(length)
    assert finding.verdict is Verdict.FAILS
    assert finding.checks[0].passed  # all kinds have learnt the task


def by_distance(config):
    """A model that has ALiBi where sinusoids are asked for."""
    return DecoderOnly(replace(config, positions="alibi") if config.positions == "sinusoidal" else config)


@pytest.mark.long
def test_length_holds_where_the_sinusoids_are_distances():
    finding = length.run(0, build=by_distance)
    assert finding.verdict in (Verdict.HOLDS, Verdict.LIMITED)
    assert all(check.passed for check in finding.checks[:3])


@pytest.mark.long
def test_dropout(shipped):
    assert shipped(dropout).verdict is Verdict.LIMITED


def always_in_use(config):
    """A model that is never in training, so that its dropout does nothing."""
    model = EncoderOnly(config)
    model.train = lambda mode=True: nn.Module.train(model, False)
    return model.train()


def test_dropout_that_drops_nothing(monkeypatch):
    monkeypatch.setattr(dropout, "STEPS", {"few": 40, "many": 40})  # the runs are the same, however long
    finding = dropout.run(0, build=always_in_use)
    assert finding.verdict is Verdict.FAILS
    assert finding.checks[1].value == 1.0


@pytest.mark.long
def test_initialisation(shipped):
    assert shipped(initialisation).verdict is Verdict.LIMITED


def far_too_large(config):
    """Every matrix ten times as large as it should be."""
    return initialisation.start(EncoderOnly(config), lambda weight: 10 * weight)


@pytest.mark.long
def test_initialisation_that_begins_too_large():
    finding = initialisation.run(0, build=far_too_large)
    assert finding.verdict is Verdict.FAILS
    assert not finding.checks[0].passed  # it is seen before any training
    assert not finding.checks[1].passed


@pytest.mark.long
def test_activations(shipped):
    assert shipped(activations).verdict is Verdict.LIMITED


class Kinked(FeedForward):
    """A network that takes ReLU whatever it is asked for."""

    def __init__(self, config):
        super().__init__(config)
        self.activation = torch.relu


def test_activations_that_are_all_the_same(monkeypatch):
    monkeypatch.setattr(activations, "STEPS", 40)  # the runs are the same, however long
    finding = activations.run(0, part=Kinked)
    assert finding.verdict is Verdict.FAILS
    assert finding.checks[1].value == 1.0
