"""Claims on positions, heads, memories, losses and layout: the verdict of seed 0, and a broken part that turns it."""

import torch

from glassformer.labs import Verdict, permutation, sinusoids
from glassformer.model.position import PositionTable


class EachColumnItsOwnFrequency(PositionTable):
    """A common slip: the exponent runs over columns, so that a sine and its cosine no longer belong together."""

    def __init__(self, config):
        super().__init__(config)
        frequency = 10_000.0 ** (-torch.arange(config.d_model) / config.d_model)
        angle = torch.arange(config.max_length).unsqueeze(1) * frequency
        self.table = torch.where(torch.arange(config.d_model) % 2 == 0, angle.sin(), angle.cos())


def test_sinusoids():
    assert sinusoids.LAB.run(0).verdict is Verdict.HOLDS
    assert sinusoids.run(0, positions=EachColumnItsOwnFrequency).verdict is Verdict.FAILS


def test_permutation():
    assert permutation.LAB.run(0).verdict is Verdict.LIMITED
    assert permutation.run(0, without="alibi").verdict is Verdict.FAILS
