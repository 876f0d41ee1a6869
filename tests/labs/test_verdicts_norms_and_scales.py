"""Scaling, norm placement, residuals, kinds of norm, embedding scale: the verdict, and another for a broken part."""

import pytest

from glassformer.labs import Verdict, embedding_scale, norm_kind, norm_placement, residuals, scaling
from glassformer.model import EncoderOnly
from glassformer.model.attention import Attention
from glassformer.model.layer import Residual


class DividedByWidth(Attention):
    """Scores over d_k, the square root forgotten."""

    def __init__(self, config):
        super().__init__(config)
        self.scale = config.score_scale or 1 / config.d_head


def test_scaling(shipped):
    assert shipped(scaling).verdict is Verdict.LIMITED


def test_scaling_by_the_width_itself(monkeypatch):
    monkeypatch.setattr(scaling, "STEPS", 10)  # it is seen before any training
    finding = scaling.run(0, part=DividedByWidth)
    assert finding.verdict is Verdict.FAILS
    assert not finding.checks[0].passed


def test_scaling_that_makes_no_difference_to_training(monkeypatch):
    monkeypatch.setattr(scaling, "TRAINED", 4)  # so narrow a head needs no scale
    monkeypatch.setattr(scaling, "STEPS", 40)
    finding = scaling.run(0)
    assert [check.passed for check in finding.checks[:6]] == [True] * 5 + [False]


def always_post(config):
    """A model whose Pre-LN normalises the stream after all."""
    model = EncoderOnly(config)
    for module in model.modules():
        if isinstance(module, Residual):
            module.pre = False
    return model


@pytest.mark.long
def test_norm_placement(shipped):
    assert shipped(norm_placement).verdict is Verdict.LIMITED


def test_norm_placement_without_the_identity_path(monkeypatch):
    monkeypatch.setattr(norm_placement, "STEPS", 10)
    finding = norm_placement.run(0, build=always_post)
    assert finding.verdict is Verdict.FAILS
    assert not any(check.passed for check in finding.checks[:3])  # it is seen in the gradient, before any training


@pytest.mark.long
def test_residuals(shipped):
    assert shipped(residuals).verdict is Verdict.LIMITED


def test_residuals_that_add_nothing(monkeypatch):
    monkeypatch.setattr(residuals, "STEPS", 10)
    finding = residuals.run(0, build=lambda config: residuals.remove_residuals(EncoderOnly(config)))
    assert finding.verdict is Verdict.FAILS
    assert not finding.checks[4].passed  # positions become alike, before any training


@pytest.mark.long
def test_norm_kind(shipped):
    assert shipped(norm_kind).verdict is Verdict.LIMITED


def test_norm_kind_with_a_norm_that_looks_at_the_batch(monkeypatch):
    monkeypatch.setattr(norm_kind, "STEPS", 10)
    finding = norm_kind.run(0, build=norm_kind.with_batch_norm)
    assert finding.verdict is Verdict.FAILS
    assert not finding.checks[0].passed
    assert not finding.checks[2].passed


def scaled_by_the_width(config):
    model = EncoderOnly(config)
    model.encoder.embedding.scale = config.d_model
    return model


@pytest.mark.long
def test_embedding_scale(shipped):
    assert shipped(embedding_scale).verdict is Verdict.LIMITED


def test_embedding_scale_by_the_width_itself(monkeypatch):
    monkeypatch.setattr(embedding_scale, "STEPS", 10)
    finding = embedding_scale.run(0, build=scaled_by_the_width)
    assert finding.verdict is Verdict.FAILS
    assert not finding.checks[1].passed
