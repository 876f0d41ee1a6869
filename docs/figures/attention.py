"""One head of the encoder's first layer on our sentence: its scores, and the weights softmax makes of them."""

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Text

HEAD = 3


def draw(t: gf.Translator) -> Figure:
    tr = gf.trace(t, "twenty-one")
    name = "encoder.blocks.0.self_attention"
    pieces = t.tokenizer.source_pieces(t.tokenizer.encode_source(["twenty-one"])[0])
    titles = {"scores": Text("Scores", "分数"), "pattern": Text("Weights", "权重")}
    return Figure(
        [
            Panel(
                title,
                Text("keys: what is looked at", "键：被看的词元"),
                Text("queries: who looks", "查询：在看的词元"),
                ticks=pieces,
                rows=pieces,
                heat=tr[f"{name}.{part}"][HEAD].round(decimals=2).tolist(),
            )
            for part, title in titles.items()
        ]
    )
