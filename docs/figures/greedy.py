"""What the model holds likely at each step of our sentence."""

from __future__ import annotations

import math

import torch

from glassformer.labs.figures import Figure, Panel, Text
from glassformer.pipelines.translator import Translator

# The three that are written, and some that are not.
SHOWN = ("▁ein", "undzwanzig", "</s>", "▁zwei", "▁drei", "tausend", "hundert", "undvierzig")


def draw(t: Translator) -> Figure:
    model, start = t.model, t.model.config.start_id
    src = torch.tensor(t.tokenizer.encode_source(["twenty-one"]))
    target = t.tokenizer.encode_target(["einundzwanzig"])[0]
    with torch.no_grad():
        found = model(src, torch.tensor([[start, *target]]))[0].log_softmax(-1) / math.log(10)  # (3, V)
    every = t.tokenizer.target_pieces(list(range(model.config.vocab_size)))
    columns = [every.index(piece) for piece in SHOWN]
    return Figure(
        panels=[
            Panel(
                Text("How likely is each piece next?", "下一个片段各有多大可能？"),
                Text("next piece", "下一个片段"),
                Text("what has been read", "已经读到"),
                ticks=SHOWN,
                rows=["<s>", "<s> ▁ein", "<s> ▁ein undzwanzig"],
                heat=[[round(value, 2) + 0.0 for value in row] for row in found[:, columns].tolist()],
            )
        ],
        caption=Text(
            "Logarithms to base 10: 0 is certain, -3 is one in a thousand. Greedy search takes each row's highest.",
            "以 10 为底的对数：0 表示必然，-3 表示千分之一。贪心搜索取每一行的最大值。",
        ),
    )
