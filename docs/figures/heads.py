"""What the four heads of the encoder's first layer look at."""

from __future__ import annotations

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Text


def draw(t: gf.Translator) -> Figure:
    tr = gf.trace(t, "twenty-one")
    pattern = tr["encoder.blocks.0.self_attention.pattern"]  # (H, T, S)
    pieces = tr.manifest()["source"]["pieces"]
    return Figure(
        [
            Panel(
                title=Text(f"head {head}", f"{head} 号头"),
                x=Text("looked at", "被看的词元"),
                y=Text("looking", "在看的词元"),
                ticks=pieces,
                rows=pieces,
                heat=pattern[head].round(decimals=2).tolist(),
            )
            for head in range(len(pattern))
        ],
        Text(
            "Encoder, layer 0: the weights of each head. Every row sums to one.",
            "编码器第 0 层：各头的权重。每一行的和都是一。",
        ),
    )
