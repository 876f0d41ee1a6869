"""What the denoiser of the recipe numerals-t5 writes for the gaps of a text, and what it reads while it writes."""

from pathlib import Path

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Text

RECIPE = "numerals-t5"
PARTS = ("seven", "<extra_id_0>", "and twenty-one")


def draw(folder: Path) -> Figure:
    t = gf.Translator.load(folder)
    marks = {piece: id for id, piece in t.tokenizer.pieces[1].items() if piece.startswith("<extra_id_")}
    ids = [id for part in PARTS for id in ([marks[part]] if part in marks else t.tokenizer.encode_target([part])[0])]
    tr = gf.trace(t.model, ids)
    read = [piece.replace("<extra_id_0>", "<0>") for piece in t.tokenizer.source_pieces(ids)]
    written = [piece.replace("<extra_id_0>", "<0>") for piece in t.tokenizer.target_pieces(tr.output["ids"])]
    panels = []
    for layer in range(t.model.config.layers):
        pattern = tr[f"decoder.blocks.{layer}.cross_attention.pattern"].mean(0)  # (T, S)
        panels.append(
            Panel(
                Text(f"Cross-attention, layer {layer}", f"交叉注意力，第 {layer} 层"),
                Text("the encoder has read", "编码器读到的"),
                Text("the decoder writes next", "解码器接着写的"),
                ticks=read,
                rows=written,
                heat=pattern[: len(written)].double().round(decimals=2).tolist(),
            )
        )
    return Figure(
        panels,
        Text(
            "<0> is the sentinel <extra_id_0>. The mean of four heads, a row for each token that is written.",
            "<0> 是哨兵 <extra_id_0>。四个头的平均，每写一个词元一行。",
        ),
    )
