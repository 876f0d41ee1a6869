"""Where the decoder's last layer looks while it writes: German puts units before tens, and days before months."""

from __future__ import annotations

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Text

SENTENCES = ("twenty-one", "March 3, 2021")


def draw(t: gf.Translator) -> Figure:
    panels = []
    for sentence in SENTENCES:
        tr = gf.trace(t, sentence)
        pattern = tr[f"decoder.blocks.{t.model.config.layers - 1}.cross_attention.pattern"].mean(0)  # (T, S)
        panels.append(
            Panel(
                Text(sentence, sentence),
                Text("source piece looked at", "所看的源片段"),
                Text("piece being written", "正在写的片段"),
                ticks=tr.manifest()["source"]["pieces"],
                rows=t.tokenizer.target_pieces([step["chosen"] for step in tr.steps]),
                heat=pattern.round(decimals=2).tolist(),
            )
        )
    return Figure(
        panels,
        Text(
            "Cross-attention of the decoder's last layer, the mean of its heads.",
            "解码器最后一层的交叉注意力，各头取平均。",
        ),
    )
