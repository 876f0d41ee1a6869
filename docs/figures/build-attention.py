"""The curves of steps 3 to 6 of the build."""

from build_curves import curves

from glassformer.labs.figures import Figure


def draw() -> Figure:
    return curves(3, 6)
