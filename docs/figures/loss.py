"""What the loss is for a probability, and which piece of a translation it points at."""

from __future__ import annotations

import torch

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Series, Text
from glassformer.model.loss import smoothed_cross_entropy

RIGHT, WRONG = "einundzwanzig", "zweiundzwanzig"


def draw(t: gf.Translator) -> Figure:
    pieces = t.model.config.vocab_size
    chances = [step / 200 for step in range(1, 200)]

    def loss(chance: float, smoothing: float) -> float:
        """Of a piece that gets this probability, while the others share the rest equally."""
        shares = torch.full((1, 1, pieces), (1 - chance) / (pieces - 1), dtype=torch.float64)
        shares[..., 1] = chance
        return float(smoothed_cross_entropy(shares.log(), torch.tensor([[1]]), smoothing, 0))

    def felt(target: str) -> list[float]:
        return [-step["chosen_log_probability"] for step in gf.trace(t, "twenty-one", target=target).steps]

    return Figure(
        [
            Panel(
                Text("what a probability costs", "概率的代价"),
                Text("probability of the label", "标签的概率"),
                Text("loss", "损失"),
                [
                    Series(Text("no smoothing", "不平滑"), chances, [loss(chance, 0.0) for chance in chances]),
                    Series(Text("smoothing 0.1", "平滑 0.1"), chances, [loss(chance, 0.1) for chance in chances]),
                ],
            ),
            Panel(
                Text("twenty-one: where the loss is", "twenty-one：损失在哪里"),
                Text("piece of the translation", "译文的片段"),
                Text("loss", "损失"),
                [
                    Series(Text(f"right: {RIGHT}", f"正确：{RIGHT}"), range(3), felt(RIGHT), "bars"),
                    Series(Text(f"wrong: {WRONG}", f"错误：{WRONG}"), range(3), felt(WRONG), "bars"),
                ],
                ticks=["▁ein / ▁zwei", "undzwanzig", "</s>"],
            ),
        ],
        Text(
            "The loss of one piece, and of each piece of two translations.",
            "一个片段的损失，以及两个译文各片段的损失。",
        ),
    )
