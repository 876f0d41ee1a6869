"""What a process must hold, and what few shapes of batches cost in padding."""

from __future__ import annotations

import tempfile
from pathlib import Path

from glassformer.data import Batches, BatchOptions, Corpus, prepare
from glassformer.labs.figures import Figure, Panel, Series, Text
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.pipelines.translator import Translator

WIDTHS = (128, 256, 512, 768, 1024)
SHAPES = (1, 2, 3, 4, 6, 8, 10, 16, 24)
BYTES = 16  # of a weight: itself, its gradient and two moments, float32


def draw(t: Translator) -> Figure:
    state = [BYTES * weights(width) / 2**30 for width in WIDTHS]
    return Figure(
        panels=[
            Panel(
                Text("Weights and optimizer in each process", "每个进程里的权重与优化器状态"),
                Text("d_model", "d_model"),
                Text("GiB", "GiB"),
                [
                    Series(Text("DDP, any number", "DDP，进程数不限"), WIDTHS, state),
                    Series(Text("FSDP, 8 processes", "FSDP，8 个进程"), WIDTHS, [size / 8 for size in state]),
                ],
                log_y=True,
            ),
            Panel(
                Text("Few shapes are enough", "几种形状就够"),
                Text("train.shapes", "train.shapes"),
                Text("padding, % of all positions", "填充占全部位置的百分比"),
                [Series(Text("4,000 pairs of the demo", "演示的 4,000 个句对"), SHAPES, padding(t))],
            ),
        ],
        caption=Text(
            "Left: 6+6 layers, d_ff = 4 d_model, 32,000 pieces; activations come on top. Right: 1,024 tokens a batch.",
            "左：6+6 层，d_ff 为 d_model 的 4 倍，词表 32,000；激活值另算。右：每批 1,024 个词元。",
        ),
    )


def weights(width: int) -> int:
    """Counted on one layer of each stack: the others are alike."""
    one, two = (
        sum(
            p.numel()
            for p in EncoderDecoder(
                ModelConfig(vocab_size=320, d_model=width, heads=8, d_ff=4 * width, layers=layers)
            ).parameters()
        )
        for layers in (1, 2)
    )
    return one + 5 * (two - one) + (32_000 - 320) * width


def padding(t: Translator) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        store = prepare([Corpus(builtin="numerals", size=4000)], t.tokenizer, Path(folder) / "store")
        return [
            100 * Batches(store, BatchOptions(tokens=1024, shapes=count)).epoch(0).padding_share for count in SHAPES
        ]
