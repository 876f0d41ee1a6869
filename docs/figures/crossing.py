"""Where the demo looks while it writes: the last layer's cross-attention, mean of its heads."""

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Text


def draw(t: gf.Translator) -> Figure:
    tr = gf.trace(t, "twenty-one")
    pattern = tr["decoder.blocks.1.cross_attention.pattern"].mean(0)  # (T, S)
    pieces = t.tokenizer.source_pieces(t.tokenizer.encode_source(["twenty-one"])[0])
    written = [*t.translate(["twenty-one"])[0][0].tokens, "</s>"]
    return Figure(
        [
            Panel(
                Text("Where it looks while it writes", "写每一步时看着哪里"),
                Text("the English sentence", "英语原句"),
                Text("what is written", "写下的片段"),
                ticks=pieces,
                rows=written,
                heat=pattern.round(decimals=2).tolist(),
            )
        ]
    )
