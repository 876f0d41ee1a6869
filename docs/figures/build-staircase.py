"""What the build has come to after each step."""

from build_curves import staircase

from glassformer.labs.figure import Figure


def draw() -> Figure:
    return staircase()
