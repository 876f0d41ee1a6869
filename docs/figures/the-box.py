"""How a translator in the box learnt: the losses that its run wrote down in both parts, kept beside this file."""

from __future__ import annotations

import json
from pathlib import Path

from glassformer.labs.figures import Figure, Panel, Series, Text

RUNS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def draw() -> Figure:
    return Figure(
        [
            panel("training", Text("Training", "训练集"), Text("loss, smoothed labels", "损失（标签平滑）")),
            panel("validation", Text("Validation", "验证集"), Text("loss, no smoothing", "损失（不平滑）")),
        ],
        Text(
            "The loss of en-de by step, in nats per token; the second part, with translated texts, begins at 9,010.",
            "en-de 逐步的损失（每词元，奈特）：第二段从第 9,010 步开始，加入了回译的文本。",
        ),
    )


def panel(kind: str, title: Text, y: Text) -> Panel:
    series = [
        Series(Text(name, name), [int(step) for step in run[kind]], list(run[kind].values()))
        for name, run in RUNS.items()
    ]
    return Panel(title, Text("step", "步"), y, series)
