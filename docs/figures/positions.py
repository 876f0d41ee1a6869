"""The first rows of the sinusoidal table: fast waves on the left, slow ones on the right."""

from glassformer.labs.figure import Figure, Panel, Text
from glassformer.model.position import sinusoid

ROWS, WIDTH = 48, 128


def draw() -> Figure:
    return Figure(
        [
            Panel(
                Text("One row for each position", "每个位置一行"),
                Text("channel (even: sine, odd: cosine)", "通道（偶数：正弦，奇数：余弦）"),
                Text("position", "位置"),
                heat=sinusoid(ROWS, WIDTH).tolist(),
            )
        ]
    )
