"""One piece in four places: how alike its vectors are before the encoder and behind it."""

from __future__ import annotations

import torch

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Series, Text

PIECE = "▁one"
HUNDREDS = (("one hundred", 0), ("one hundred and one", 0))  # the sentence, and which of its `one`s
UNITS = (("one hundred and one", 1), ("two hundred and one", 0))


def draw(t: gf.Translator) -> Figure:
    def likeness(value: str) -> list[float]:
        vectors = []
        for sentence, which in (*HUNDREDS, *UNITS):
            tr = gf.trace(t, sentence)
            places = [i for i, piece in enumerate(tr.manifest()["source"]["pieces"]) if piece == PIECE]
            vectors.append(tr[value][places[which]])
        unit = torch.nn.functional.normalize(torch.stack(vectors), dim=-1)
        cosine = unit @ unit.T
        return [float(cosine[0, 1]), float(cosine[2, 3]), float(cosine[:2, 2:].mean())]

    return Figure(
        [
            Panel(
                Text("How alike two vectors of “one” are", "“one”的两个向量有多像"),
                Text("what the two count: hundreds (100) or units (1)", "这两个 one 数的是：百（100）或个位（1）"),
                Text("cosine", "余弦"),
                [
                    Series(Text("embedding", "嵌入"), range(3), likeness("encoder.embedding"), "bars"),
                    Series(Text("memory", "记忆"), range(3), likeness("memory"), "bars"),
                ],
                ticks=["100 ~ 100", "1 ~ 1", "100 ~ 1"],
            )
        ],
        Text(
            "The piece `▁one` in `one hundred`, `one hundred and one` and `two hundred and one`.",
            "片段 `▁one`，取自 `one hundred`、`one hundred and one` 和 `two hundred and one`。",
        ),
    )
