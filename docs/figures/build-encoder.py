"""The curves of steps 10 to 11 of the build."""

from build_curves import curves

from glassformer.labs.figures import Figure


def draw() -> Figure:
    return curves(10, 11)
