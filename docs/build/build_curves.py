"""The figures of the build pages, drawn from the rows in docs/build/measured.json."""

from __future__ import annotations

import statistics

import build_rows

from glassformer.labs.figures import Figure, Panel, Series, Text


def curves(first: int, last: int) -> Figure:
    """The loss along training after each of these steps, and dashed that of the step before them."""
    rows = build_rows.kept()
    shown = rows[max(0, first - 2) : last]
    seeds = len(rows[0].losses)
    panel = Panel(
        Text("Held-out loss while each step trains", "每一步训练时的留出损失"),
        Text("training step", "训练步数"),
        Text("nats per piece", "每个词元（奈特）"),
        [series(row, dashed=row.step < first) for row in shown],
    )
    caption = Text(f"Means of {seeds} seeds.", f"{seeds} 个随机种子的平均。")
    return Figure([panel], caption)


def series(row: build_rows.Row, dashed: bool) -> Series:
    part = build_rows.PARTS[row.part]
    places = [place for place, _ in row.curves[0]]
    means = [statistics.fmean(values) for values in zip(*([y for _, y in curve] for curve in row.curves), strict=True)]
    return Series(Text(f"{row.step} {part.en}", f"{row.step} {part.zh}"), places, means, dashed=dashed)


def staircase() -> Figure:
    """The loss that each step ends with."""
    rows = [row for row in build_rows.kept() if row.right is None]
    panel = Panel(
        Text("The loss after each step", "每一步之后的损失"),
        Text("step", "步"),
        Text("nats per piece", "每个词元（奈特）"),
        [Series(Text("loss", "损失"), [row.step for row in rows], [row.loss for row in rows], "bars")],
    )
    return Figure([panel])


def right() -> Figure:
    """The share of held-out numbers that each way of writing gets right, for each seed."""
    rows = [row for row in build_rows.kept() if row.right is not None]
    panel = Panel(
        Text("Held-out numbers written without a fault", "留出的数里，写得一字不差的"),
        Text("seed", "随机种子"),
        Text("share, %", "占比（%）"),
        [
            Series(
                build_rows.PARTS[row.part],
                list(range(len(row.right or []))),
                [100 * share for share in row.right or []],
                "bars",
            )
            for row in rows
        ],
    )
    return Figure([panel])
