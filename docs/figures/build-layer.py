"""The curves of steps 7 to 9 of the build."""

from build_curves import curves

from glassformer.labs.figures import Figure


def draw() -> Figure:
    return curves(7, 9)
