"""The first rows of the sinusoidal table: fast waves on the left, slow ones on the right."""

from glassformer.labs.figures import Figure, Panel, Text
from glassformer.model.embedding import sinusoid

ROWS, WIDTH = 48, 128


def draw() -> Figure:
    return Figure(
        [
            Panel(
                Text("One row for each position", "每个位置一行"),
                Text("hand number i (its sine)", "针的序号 i（取正弦）"),
                Text("position", "位置"),
                heat=sinusoid(ROWS, WIDTH)[:, 0::2].tolist(),
            )
        ]
    )
