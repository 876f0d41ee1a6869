"""What a wider beam finds, and how the length penalty draws sentences out."""

from __future__ import annotations

import torch

from glassformer.decode import Hypothesis, generate
from glassformer.labs.figures import Figure, Panel, Series, Text
from glassformer.model import EncoderDecoder, ModelConfig

WIDTHS = (1, 2, 3, 4, 6, 8, 16, 32)
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
LIMIT = 8


def draw() -> Figure:
    model, sources = unsure()

    def best(beam: int, power: float = 1.0) -> list[Hypothesis]:
        found = generate(model, sources, beam=beam, length_penalty=power, max_new_tokens=LIMIT)
        return [one for (one,) in found]

    scores = [mean([one.score for one in best(width)]) for width in WIDTHS]
    lengths = [mean([float(len(one.ids)) for one in best(8, power)]) for power in POWERS]
    return Figure(
        panels=[
            Panel(
                Text("Wider finds better, soon no more", "束越宽找到的越好，很快到顶"),
                Text("beam width", "束宽"),
                Text("mean score of the best", "最优译文的平均分数"),
                [Series(Text("64 sources", "64 个源句"), WIDTHS, scores)],
                log_x=True,
            ),
            Panel(
                Text("The length penalty", "长度惩罚"),
                Text("length_penalty", "length_penalty"),
                Text("pieces of the best, mean", "最优译文的平均片段数"),
                [Series(Text("beam 8", "束宽 8"), POWERS, lengths)],
            ),
        ],
        caption=Text(
            "A small model with random weights, 30 pieces, targets of at most 8.",
            "一个权重随机的小模型，词表 30 个片段，译文最长 8 个。",
        ),
    )


def unsure() -> tuple[EncoderDecoder, torch.Tensor]:
    config = ModelConfig(vocab_size=30, d_model=32, heads=4, d_ff=64, layers=1, dropout=0.0, tied=False)
    model = EncoderDecoder(config).eval()
    with torch.no_grad():
        model.head.weight *= 2
    return model, torch.randint(3, 30, (64, 6), generator=torch.Generator().manual_seed(0))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
