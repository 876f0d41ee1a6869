"""A digit, where the label's place of the recipe digits-vit looks in it, and how alike its learnt positions are."""

from pathlib import Path

import torch

import glassformer as gf
from glassformer.data.readers import digits
from glassformer.labs.figures import Figure, Panel, Text

RECIPE = "digits-vit"


def draw(folder: Path) -> Figure:
    classifier = gf.Classifier.load(folder)
    image = digits("test")[0][0]  # (1, 8, 8)
    tr = gf.trace(classifier, image)
    across, down = Text("column", "列"), Text("row", "行")

    def looks(layer: int, title: Text) -> Panel:
        pattern = tr[f"encoder.blocks.{layer}.self_attention.pattern"][:, 0, 1:]  # (H, 16), the label's place left out
        return Panel(title, across, down, heat=pattern.mean(0).view(4, 4).double().round(decimals=2).tolist())

    rows = classifier.model.encoder.embedding.positions.table.detach()[1:]
    alike = torch.nn.functional.cosine_similarity(rows[:, None], rows[None], dim=-1)
    square = Text("square, row by row", "方块（逐行计数）")
    return Figure(
        [
            Panel(Text("A digit", "一个数字"), across, down, heat=(image[0] / 255).round(1).tolist()),
            looks(0, Text("The label's place looks, first layer", "标签的位置在看哪里：第一层")),
            looks(classifier.model.config.layers - 1, Text("The same, last layer", "同样的，最后一层")),
            Panel(
                Text("How alike the places are", "各个位置有多像"),
                square,
                square,
                heat=alike.double().round(decimals=2).tolist(),
            ),
        ],
        Text(
            "Attention is the mean of four heads. Places: the cosine between their learnt vectors.",
            "注意力是四个头的平均。位置：可学习向量之间的余弦。",
        ),
    )
