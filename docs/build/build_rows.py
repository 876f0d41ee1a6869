"""One row for each step: how well the file of that step does on the held-out pairs, and what the step changed.

A verdict is computed, never written: by the same seeds before and after the step, with the 95 % interval of the mean
difference. Where the interval holds zero, the row says that nothing clear has changed.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import growing

from glassformer.common.strings import Text

PARTS = {
    "frequent": Text("guess by frequency", "按频率猜"),
    "average": Text("embed, and average the past", "嵌入，再对前文取平均"),
    "attention": Text("attention in place of the average", "用注意力代替平均"),
    "scale": Text("divide the scores by √d", "分数除以 √d"),
    "positions": Text("positions", "位置"),
    "heads": Text("four heads", "四个头"),
    "residual_and_norm": Text("residual and norm", "残差与归一化"),
    "feed_forward": Text("feed-forward network", "前馈网络"),
    "layers": Text("a second layer", "第二层"),
    "encoder": Text("encoder and cross-attention", "编码器与交叉注意力"),
    "padding": Text("masks for padding", "填充掩码"),
    "smoothing": Text("label smoothing", "标签平滑"),
    "adam": Text("Adam by hand, the paper's schedule", "手写 Adam，论文的学习率公式"),
    "greedy": Text("greedy search", "贪心搜索"),
    "beam": Text("beam search", "束搜索"),
}
VERDICTS = {
    "first": Text("the start", "起点"),
    "helps": Text("helps", "有用"),
    "hurts": Text("hurts here", "在这里反而变差"),
    "unclear": Text("no clear change here", "在这里看不出变化"),
    "writes": Text("now it writes", "会写了"),
}
HEADS = Text(
    "step | part added | weights | loss | change | verdict | right",
    "步 | 加上的零件 | 权重数 | 损失 | 变化 | 结论 | 全对",
)
# Student's t for a 95 % interval, by the number of seeds.
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
WRITING = ("greedy", "beam")
MEASURED = growing.FOLDER / "measured.json"


@dataclass(frozen=True)
class Row:
    step: int
    part: str
    weights: int
    losses: list[float]  # one for each seed
    curves: list[list[tuple[int, float]]]
    right: list[float] | None = None  # the share of held-out pairs written without a fault, for each seed

    @property
    def loss(self) -> float:
        return statistics.fmean(self.losses)


def part_of(step: int) -> str:
    return growing.STEPS[step - 1].stem[3:]


def measured(step: int, task: Any, seeds: Sequence[int], training: int, models: dict[int, Any]) -> Row:
    """Train what the file is after `step`; `models` keeps those of each seed, for steps that only write with them."""
    part = part_of(step)
    names: Any = growing.names_after(growing.STEPS[:step])
    curves, right = [], []
    for seed in seeds:
        if part not in WRITING:
            models[seed] = names["learn"](task, training, seed)
        model, curve = models[seed]
        curves.append(curve)
        if part in WRITING:
            right.append(share_right(written(part, names, model, task), task))
    return Row(
        step=step,
        part=part,
        weights=sum(weight.numel() for weight in models[seeds[0]][0].parameters()),
        losses=[curve[-1][1] for curve in curves],
        curves=curves,
        right=right or None,
    )


def written(part: str, names: Any, model: Any, task: Any) -> list[list[int]]:
    src, _, _ = task.batch(task.held_out)
    if part == "greedy":
        return list(names["greedy"](model, src))
    return [names["beam"](model, names["table"]([ids])) for ids, _ in task.held_out]


def share_right(targets: Sequence[Sequence[int]], task: Any) -> float:
    return sum(list(ids) == list(wanted) for ids, (_, wanted) in zip(targets, task.held_out, strict=True)) / len(
        task.held_out
    )


def change(row: Row, before: Row | None) -> tuple[str, float, float]:
    """The verdict, the mean change (of the loss, or of the share that is right) and half its interval's width."""
    if before is None:
        return "first", 0.0, 0.0
    if row.right is not None and before.right is None:
        return "writes", 0.0, 0.0
    now, then = (one.right if row.right is not None else one.losses for one in (row, before))
    assert now is not None
    assert then is not None
    differences = [a - b for a, b in zip(now, then, strict=True)]
    mean = statistics.fmean(differences)
    if len(differences) < 2:
        return "unclear", mean, math.inf
    half = STUDENT[len(differences)] * statistics.stdev(differences) / math.sqrt(len(differences))
    if abs(mean) <= half:
        return "unclear", mean, half
    return "helps" if (mean > 0) == (row.right is not None) else "hurts", mean, half


def cells(row: Row, before: Row | None, language: str) -> list[str]:
    verdict, mean, half = change(row, before)
    told = VERDICTS[verdict].say(language)
    if verdict in ("first", "writes"):
        moved = "–"
    else:
        unit = 100 if row.right is not None else 1
        digits = 1 if row.right is not None else 3
        moved = f"{unit * mean:+.{digits}f}".replace("-", "−") + (" %" if unit == 100 else "")
        if math.isinf(half):
            told = "–"  # one seed says nothing of chance
        else:
            moved += f" ± {unit * half:.{digits}f}"
    right = "–" if row.right is None else f"{100 * statistics.fmean(row.right):.1f} %"
    return [str(row.step), PARTS[row.part].say(language), f"{row.weights:,}", f"{row.loss:.3f}", moved, told, right]


def markdown(rows: Sequence[Row], language: str, first: int, last: int) -> str:
    """The rows of these steps, as a table of Markdown."""
    told = [cells(row, before, language) for row, before in zip(rows, [None, *rows[:-1]], strict=True)]
    lines = [HEADS.say(language).split(" | "), ["---:", "---", "---:", "---:", "---:", "---", "---:"]]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *told[first - 1 : last]]) + "\n"


def as_dict(row: Row) -> dict[str, Any]:
    """For JSON; five decimal places are more than any two machines agree on."""
    values = asdict(row)
    values["losses"] = [round(loss, 5) for loss in row.losses]
    values["curves"] = [[(step, round(loss, 5)) for step, loss in curve] for curve in row.curves]
    values["right"] = row.right and [round(share, 5) for share in row.right]
    return values


def kept() -> list[Row]:
    """The rows that the pages show."""
    return [Row(**row) for row in json.loads(MEASURED.read_text(encoding="utf-8"))["rows"]]
