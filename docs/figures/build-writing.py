"""Greedy search and beam search on the models of the last training step of the build."""

from build_curves import right

from glassformer.labs.figures import Figure


def draw() -> Figure:
    return right()
