"""The curves of steps 1 to 2 of the build."""

from build_curves import curves

from glassformer.labs.figures import Figure


def draw() -> Figure:
    return curves(1, 2)
