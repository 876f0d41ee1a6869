"""Metrics of a run: `metrics.jsonl`, TensorBoard, the learning curve, and contention for the CPU.

Contention is only reported: another number of threads rounds differently, and a resumed run must equal a whole one.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

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


WINDOW = 2.0  # seconds at least between two answers
CONTENDED = 0.25  # seconds of waiting in a second; a quiet machine shows hundredths


class CpuContention:
    """How long this process's threads wait for a core to run on."""

    def __init__(self) -> None:
        self.begin, self.waited = time.perf_counter(), thread_waits()

    def waiting(self) -> float | None:
        """Seconds waited in each second since the last answer, all threads together; none if that was just now."""
        now = time.perf_counter()
        if now - self.begin < WINDOW:
            return None
        before, self.waited = self.waited, thread_waits()
        passed, self.begin = now - self.begin, now
        return sum(waited - before[thread] for thread, waited in self.waited.items() if thread in before) / passed


def thread_waits() -> dict[str, float]:
    """The seconds each thread has waited for a core so far; none where the system does not tell."""
    found = {}
    for file in Path("/proc/self/task").glob("*/schedstat"):
        try:
            found[file.parent.name] = int(file.read_text(encoding="ascii").split()[1]) / 1e9
        except (OSError, ValueError, IndexError):  # the thread has ended, or the system does not count
            continue
    return found


def contention_advice(cores: CpuContention, threads: int, folder: Path) -> str:
    """What to do about busy cores; nothing if they are not, or if there is nothing to do."""
    if threads < 2 or (cores.waiting() or 0.0) < CONTENDED:
        return ""
    return (
        f"other processes keep the cores busy, and the {threads} threads of this run wait for one another; one thread "
        f"may be faster: stop the others, or this run (Ctrl-C) and go on with: "
        f"OMP_NUM_THREADS=1 glassformer train --resume --out {folder}"
    )


def threads_by_default(device: torch.device) -> int:
    """The threads a step is shared by, where the user has not said how many."""
    return torch.get_num_threads() if device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ else 1
