"""What a run tells while it goes on: one live line on a terminal, plain lines elsewhere, and `metrics.jsonl`."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from glassformer.bundle import replacing, write_text
from glassformer.errors import RunError
from glassformer.text.strings import cells, cut_to


class Report:
    """Speaks on `stream` (stderr, so that a command's own output stays clean) and keeps the metrics file."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self.live = not quiet and self.stream.isatty()
        self.width = 0
        self.last = 0.0
        self.metrics: Path | None = None
        self.board: Any = None

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self.quiet:
            self.clear()
            print(text, file=self.stream, flush=True)

    def show(self, text: str, every: float = 0.1) -> None:
        """The live line; it is only drawn on a terminal, and not too often."""
        if self.live and time.monotonic() - self.last >= every:
            self.last = time.monotonic()
            text = cut_to(text, self.room())
            rest = " " * (min(self.width, self.room()) - cells(text))
            print(f"\r{text}{rest}", end="", file=self.stream, flush=True)
            self.width = cells(text)

    def clear(self) -> None:
        if self.live and self.width:
            print("\r" + " " * min(self.width, self.room()) + "\r", end="", file=self.stream, flush=True)
            self.width = 0

    def room(self) -> int:
        """Letters that fit into a line of the terminal now; one in its last column could start the next line."""
        try:
            columns = os.get_terminal_size(self.stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return (columns or 80) - 1

    def counting(self, what: str) -> Any:
        """A callback that shows a growing number."""
        return lambda count: self.show(f"{what}: {count:,}")

    def open(self, folder: Path, step: int, tensorboard: bool) -> None:
        """Go on with the metrics of `folder`, forgetting what was written after `step`."""
        self.metrics = folder / "metrics.jsonl"
        kept = [row for row in read_metrics(folder) if row["step"] <= step] if step else []
        write_text(self.metrics, "".join(json.dumps(row) + "\n" for row in kept))
        if not tensorboard:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise RunError("train.tensorboard needs tensorboard: pip install 'glassformer[log]'") from None
        self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=step)

    def row(self, step: int, **values: float) -> None:
        """One line of metrics.jsonl, and the same for TensorBoard where it is installed."""
        if self.metrics is not None:
            with self.metrics.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **values}) + "\n")
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(name, value, step)

    def close(self) -> None:
        self.clear()
        if self.board is not None:
            self.board.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run's metrics; a line cut off by an interruption is left out."""
    rows = []
    path = folder / "metrics.jsonl"
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
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
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for key, label, colour in (("loss", "training", "#8aa6c1"), ("valid_loss", "validation", "#c0392b")):
        points = [(row["step"], row[key]) for row in rows if key in row]
        if points:
            axes.plot(
                *zip(*points, strict=True),
                label=f"{label} loss",
                color=colour,
                marker="o" if key != "loss" else "",
                markersize=4,
            )
    axes.set(xlabel="step", ylabel="cross-entropy, nats per token", yscale="log")
    axes.grid(alpha=0.25)
    rates = [(row["step"], row["lr"]) for row in rows if "lr" in row]
    if rates:
        right = axes.twinx()
        right.plot(*zip(*rates, strict=True), color="#7f8c8d", linewidth=0.8, linestyle=":", label="learning rate")
        right.set_ylabel("learning rate")
        axes.legend(handles=[h for ax in (axes, right) for h in ax.get_legend_handles_labels()[0]], loc="upper right")
    with replacing(folder / "curve.png") as file:
        figure.savefig(file, format="png", dpi=140)
    return folder / "curve.png"
