"""Metrics of a run: `metrics.jsonl`, TensorBoard, and the learning curve."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from glassformer.common.files import atomic_write, write_text


class Metrics:
    """The metrics of the run in `folder`, gone on with at `step`: what was written after it is forgotten."""

    def __init__(self, folder: Path, step: int, tensorboard: bool) -> None:
        self.file = folder / "metrics.jsonl"
        self.board: Any = None
        kept = [row for row in read_metrics(folder) if row["step"] <= step] if step else []
        write_text(self.file, "".join(json.dumps(row) + "\n" for row in kept))
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=step)

    def row(self, step: int, **values: float) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(name, value, step)

    def close(self) -> None:
        if self.board is not None:
            self.board.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run's metrics; a line cut off by an interruption is left out."""
    rows = []
    path = folder / "metrics.jsonl"
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        with suppress(json.JSONDecodeError):
            row = json.loads(line)
            if isinstance(row, dict) and isinstance(row.get("step"), int):
                rows.append(row)
    return rows


def draw_curve(folder: Path) -> Path | None:
    """`curve.png`: loss and learning rate over the steps; None where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    rows = read_metrics(folder)
    figure = Figure(figsize=(8, 4.5))
    FigureCanvasAgg(figure)
    axes = figure.subplots(gridspec_kw={"left": 0.1, "right": 0.89, "bottom": 0.12, "top": 0.97})
    for key, label, colour in (("loss", "training", "#8aa6c1"), ("valid_loss", "validation", "#c0392b")):
        points = [(row["step"], row[key]) for row in rows if key in row]
        if points:
            marker = "" if key == "loss" else "o"
            axes.plot(*zip(*points, strict=True), label=f"{label} loss", color=colour, marker=marker, markersize=4)
    axes.set(xlabel="step", ylabel="cross-entropy, nats per token", yscale="log")
    axes.grid(alpha=0.25)
    rates = [(row["step"], row["lr"]) for row in rows if "lr" in row]
    if rates:
        right = axes.twinx()
        right.plot(*zip(*rates, strict=True), color="#7f8c8d", linewidth=0.8, linestyle=":", label="learning rate")
        right.set_ylabel("learning rate")
        axes.legend(handles=[h for ax in (axes, right) for h in ax.get_legend_handles_labels()[0]], loc="upper right")
    with atomic_write(folder / "curve.png") as file:
        figure.savefig(file, format="png", dpi=140)
    return folder / "curve.png"
