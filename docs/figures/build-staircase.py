"""What the build has come to after each step."""

from build_curves import staircase

from glassformer.labs.figures import Figure


def draw() -> Figure:
    return staircase()
