"""What each sublayer adds to the stream of a Pre-LN stack, and how long the stream becomes."""

from __future__ import annotations

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Series, Text

SUBLAYERS = {
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}
SHORT = {"self_attention": "self", "cross_attention": "cross", "feed_forward": "ffn"}
STACKS = {"encoder": Text("encoder", "编码器"), "decoder": Text("decoder", "解码器")}


def draw(t: gf.Translator) -> Figure:
    tr = gf.trace(t, "twenty-one")

    def length(name: str) -> float:
        return float(tr[name].norm(dim=-1).mean())  # over the tokens

    panels = []
    for stack, parts in SUBLAYERS.items():
        names, added, stream = ["embed"], [length(f"{stack}.embedding")], [length(f"{stack}.embedding")]
        for layer in range(t.model.config.layers):
            for part in parts:
                block = f"{stack}.blocks.{layer}"
                names.append(f"{SHORT[part]} {layer}")
                added.append(length(f"{block}.{part}.{'down' if part == 'feed_forward' else 'output'}"))
                stream.append(length(f"{block}.{part}_residual"))
        places = range(len(names))
        panels.append(
            Panel(
                title=STACKS[stack],
                x=Text("sublayer and its layer", "子层及所在层"),
                y=Text("length of the vector", "向量长度"),
                ticks=names,
                series=[
                    Series(Text("what it adds", "加上去的"), places, added, "bars"),
                    Series(Text("the stream after it", "之后的残差流"), places, stream),
                ],
            )
        )
    return Figure(
        panels,
        Text(
            "Mean length over the tokens of `twenty-one`: what each sublayer adds, and the stream it leaves.",
            "对 `twenty-one` 的各词元取平均：每个子层加上去的长度，以及之后残差流的长度。",
        ),
    )
