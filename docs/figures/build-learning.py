"""The curves of steps 12 to 13 of the build."""

from build_curves import curves

from glassformer.labs.figures import Figure


def draw() -> Figure:
    return curves(12, 13)
