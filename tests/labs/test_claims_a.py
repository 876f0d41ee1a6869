"""Scaling, norm placement, residuals, kinds of norm, embedding scale: the verdict, and another for a broken part."""

from glassformer.labs import Verdict, scaling
from glassformer.model.attention import Attention


class DividedByWidth(Attention):
    """Scores over d_k, the square root forgotten."""

    def __init__(self, config):
        super().__init__(config)
        self.scale = config.score_scale or 1 / config.d_head


def test_scaling():
    assert scaling.LAB.run(0).verdict is Verdict.LIMITED


def test_scaling_by_the_width_itself():
    assert scaling.run(0, part=DividedByWidth).verdict is Verdict.FAILS
