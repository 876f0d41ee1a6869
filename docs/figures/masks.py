"""The three masks of one forward pass, and the weights under one of them."""

from __future__ import annotations

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Text

SEEN, SEEING = Text("key: seen or hidden", "键：可见或被遮"), Text("query", "查询")


def draw(t: gf.Translator) -> Figure:
    tr = gf.trace(t, "twenty-one", padding=2)
    told = tr.manifest()
    source, target = told["source"]["pieces"], told["target"]["pieces"]
    weights = tr["decoder.blocks.0.self_attention.pattern", 0].round(decimals=2)
    return Figure(
        [
            Panel(
                Text("encoder: padding", "编码器：填充"),
                SEEN,
                SEEING,
                ticks=source,
                rows=source,
                heat=tr["masks.encoder"].tolist(),
            ),
            Panel(
                Text("cross-attention: padding of the source", "交叉注意力：源句的填充"),
                SEEN,
                SEEING,
                ticks=source,
                rows=target,
                heat=tr["masks.cross"].tolist(),
            ),
            Panel(
                Text("decoder: causal", "解码器：因果"),
                SEEN,
                SEEING,
                ticks=target,
                rows=target,
                heat=tr["masks.decoder"].tolist(),
            ),
            Panel(
                Text("decoder, layer 0, head 0: the weights", "解码器第 0 层 0 号头：权重"),
                SEEN,
                SEEING,
                ticks=target,
                rows=target,
                heat=weights.tolist(),
            ),
        ],
        Text("1 may be seen, 0 is hidden.", "1 可见，0 被遮。"),
    )
