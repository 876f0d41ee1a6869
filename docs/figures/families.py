"""Who sees whom in the arrangements, found by changing one token and looking whose output moves."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from glassformer.labs.figures import Figure, Panel, Text
from glassformer.model import DecoderOnly, EncoderDecoder, ModelConfig

LENGTH, SOURCE = 6, 3
CONFIG = ModelConfig(vocab_size=20, d_model=16, heads=2, d_ff=32, layers=2, dropout=0.0)


def draw() -> Figure:
    both = EncoderDecoder(CONFIG).eval()

    def read(ids: Tensor) -> Tensor:
        """The encoder's vectors of the source, then the decoder's of the target."""
        memory = both.encode(ids[:, :SOURCE])
        return torch.cat((memory, both.decoder(ids[:, SOURCE:], None, memory)), dim=1)

    words = [f"s{i + 1}" for i in range(SOURCE)] + [f"t{i + 1}" for i in range(LENGTH - SOURCE)]
    plain = [str(i + 1) for i in range(LENGTH)]
    return Figure(
        panels=[
            panel(Text("Decoder only: GPT-2", "只有解码器：GPT-2"), plain, DecoderOnly(CONFIG).eval()),
            panel(Text("Both: Marian, BART, T5", "两者都有：Marian、BART、T5"), words, read),
        ],
        caption=Text(
            "1: the output of the row moves when the token of the column is another. s: source, t: target.",
            "1：把这一列的词元换掉，这一行的输出会变。s 是源，t 是目标。",
        ),
    )


def panel(title: Text, names: list[str], read: Callable[[Tensor], Tensor]) -> Panel:
    return Panel(title, Text("token", "词元"), Text("output", "输出"), ticks=names, rows=names, heat=influence(read))


@torch.no_grad()
def influence(read: Callable[[Tensor], Tensor]) -> list[list[float]]:
    ids = torch.arange(3, 3 + LENGTH).unsqueeze(0)
    before = read(ids)[0]
    moved = []
    for i in range(LENGTH):
        other = ids.clone()
        other[0, i] = 15
        moved.append(((read(other)[0] - before).abs().amax(-1) > 1e-6).float())
    return torch.stack(moved, dim=1).tolist()  # a row for each output, a column for each token
