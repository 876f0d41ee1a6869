"""Which neurons of a feed-forward layer fire, and which of them push towards the next piece."""

from __future__ import annotations

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Series, Text

LAYER = "decoder.blocks.1.feed_forward"
STEP = 1  # reads `▁ein`, and is about to write the tens
SHOWN = 10


def draw(t: gf.Translator) -> Figure:
    tr = gf.trace(t, "twenty-one")
    reads = tr.manifest()["target"]["pieces"]
    up, hidden = tr[f"{LAYER}.up"], tr[f"{LAYER}.hidden"]  # (T, F) each
    chosen = tr.steps[STEP]["chosen"]
    (piece,) = t.tokenizer.target_pieces([chosen])
    values = t.model.decoder.blocks[1].feed_forward.down.weight.detach().T  # (F, D)
    push = hidden[STEP] * (values @ t.model.head.weight.detach()[chosen])
    strongest = push.topk(SHOWN)
    return Figure(
        [
            Panel(
                Text("decoder, layer 1: before the activation", "解码器第 1 层：激活之前"),
                Text("neurons, sorted", "神经元（已排序）"),
                Text("value; below zero it is cut off", "数值；零以下被截去"),
                [
                    Series(Text(f"reading {word}", f"读到 {word}"), range(up.shape[1]), row.sort().values.tolist())
                    for word, row in zip(reads, up, strict=True)
                ],
            ),
            Panel(
                Text(f"having read {reads[STEP]}: who pushes towards {piece}", f"读完 {reads[STEP]}：谁在推向 {piece}"),
                Text("number of the neuron", "神经元编号"),
                Text("activation times (value · embedding)", "激活 ×（值 · 嵌入）"),
                [Series(Text("push", "推力"), range(SHOWN), strongest.values.tolist(), "bars")],
                ticks=[str(i) for i in strongest.indices.tolist()],
            ),
        ],
        Text("A neuron fires where its line lies above zero.", "线在零以上的神经元才会激活。"),
    )
