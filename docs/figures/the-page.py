"""What the page shows as ribbons and as a what-if, as a matrix and as bars."""

from __future__ import annotations

from glassformer.explain.trace import trace
from glassformer.explain.what_if import what_if
from glassformer.labs.figures import Figure, Panel, Series, Text
from glassformer.pipelines.translator import Translator

SENTENCE, TARGET = "twenty-one", "einundzwanzig"


def draw(t: Translator) -> Figure:
    found = trace(t, SENTENCE, TARGET)
    layers, heads = len(t.model.decoder.blocks), t.model.config.heads
    patterns = [found[f"decoder.blocks.{layer}.cross_attention.pattern"].mean(0) for layer in range(layers)]
    pieces = found.manifest()
    written = [*pieces["target"]["pieces"][1:], "</s>"]
    lost = [
        Series(
            Text(f"decoder layer {layer}", f"解码器第 {layer} 层"),
            range(heads),
            [without(t, layer, head) for head in range(heads)],
            kind="bars",
        )
        for layer in range(layers)
    ]
    return Figure(
        panels=[
            Panel(
                Text("Where it looks while writing", "写的时候看哪里"),
                Text("source", "源"),
                Text("written piece", "写出的片段"),
                ticks=pieces["source"]["pieces"],
                rows=written,
                heat=(sum(patterns[1:], patterns[0]) / layers).tolist(),
            ),
            Panel(
                Text("What a head of cross-attention is worth", "交叉注意力的每个头值多少"),
                Text("head removed", "去掉的头"),
                Text("log-probability lost", "损失的对数概率"),
                lost,
                ticks=[str(head) for head in range(heads)],
            ),
        ],
        caption=Text(
            "Left: shares of cross-attention, mean of all heads of both layers. Right: one head taken away at a time.",
            "左：交叉注意力的份额，两层所有头的平均。右：每次去掉一个头。",
        ),
    )


def without(t: Translator, layer: int, head: int) -> float:
    change = {"kind": "remove_head", "stack": "decoder", "layer": layer, "attention": "cross", "head": head}
    difference = what_if(t, SENTENCE, changes=[change]).difference
    return difference.total_before - difference.total_after
