"""A trace in the terminal: what was read and written, every value in a row, or some of them in full."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text as Line
from torch import Tensor
from torch.nn import functional as F

from glassformer.common.errors import InputError
from glassformer.common.strings import Language, Text
from glassformer.explain.activations import Value
from glassformer.explain.formulas import AXES, WHY, translated

SHADES = " ░▒▓█"
BARS = "▁▂▃▄▅▆▇█"
STRIP = 16  # cells of the strip that stands for a value in the overview
NUMBER = 8  # columns of a cell that shows its number
LABEL = 12  # columns kept for the names of rows
PAGE = 150  # where no terminal sets a width

WORDS: dict[str, Text] = {
    "name": Text("name", "名称"),
    "shape": Text("shape", "形状"),
    "axes": Text("axes", "各轴"),
    "formula": Text("formula", "公式"),
    "values": Text("values", "数值"),
    "step": Text("step", "步"),
    "reads": Text("reads", "读入"),
    "writes": Text("writes", "写出"),
    "probability": Text("probability", "概率"),
    "next best": Text("next best", "次选"),
    "head": Text("head {0}", "第 {0} 个头"),
    "range": Text("from {0} to {1}", "从 {0} 到 {1}"),
    "more": Text("{0} more columns", "还有 {0} 列"),
    "place": Text("place", "位置"),
    "gap": Text("holds", "原有"),
    "fits": Text("fits best", "最合适"),
    "label": Text("label", "标签"),
    "no gap": Text(
        "no token is masked: below, what the model would put in the place of each token that it can see",
        "没有被遮住的词元：下面是模型在每个它看得见的词元处会填什么",
    ),
    "changed": Text("changed: {0}", "改动：{0}"),
    "score": Text("score {0}, beam {1}", "分数 {0}，束宽 {1}"),
    "tag": Text("{0} tells the model to write {1}; the encoder reads: {2}", "{0} 告诉模型写出 {1}；编码器读入：{2}"),
    "cut": Text("stopped at the longest output allowed", "到达允许的最大长度而停止"),
    "cache": Text(
        "with the key/value cache: {0} multiply-adds instead of {1}; largest difference of a logit {2}",
        "使用键值缓存：乘加 {0} 次，不用则为 {1} 次；logit 最大相差 {2}",
    ),
    "no cache": Text(
        "written without a key/value cache, {1} multiply-adds: without the causal mask a cache would give other"
        " numbers, logits off by up to {2}",
        "未用键值缓存，乘加 {1} 次：没有因果掩码，缓存会给出不同的数（logit 最多相差 {2}）",
    ),
    "last step": Text(
        "values below: of the last step, which read the whole output; the steps are shown as they were written",
        "下面的数值来自最后一步，它读入了全部输出；各步则按写出时的情形列出",
    ),
    "hint": Text(
        "one value in full: --name '*.{0}.pattern', --layer 0, --head 1",
        "看某个值的全貌：--name '*.{0}.pattern'、--layer 0、--head 1",
    ),
    "legend": Text(
        "darker is larger; blue below zero, red above; · hidden by a mask, which a softmax turns into 0",
        "越深越大；蓝色为负，红色为正；· 表示被掩码遮住，过了 softmax 就是 0",
    ),
}


def check_head(values: Sequence[Value], head: int | None) -> None:
    heads = max((value.value.shape[0] for value in values if value.axes[0] == "head"), default=0)
    if head is not None and not 0 <= head < heads:
        span = f"the heads are numbered 0 to {heads - 1}" if heads else "none of the values chosen has heads"
        raise InputError(f"there is no head {head}; {span}")


class TracePrinter:
    """Prints the parts of a trace. `labels` gives the labels along an axis of a size; without `two_sides`, there is no
    source and target to tell apart."""

    def __init__(
        self, console: Console, lang: Language, labels: Callable[[str, int], list[str]], two_sides: bool
    ) -> None:
        self.console, self.lang, self.labels, self.two_sides = console, lang, labels, two_sides
        self.width = console.width if console.is_terminal else PAGE

    def print(self, *lines: Line) -> None:
        print_lines(self.console, lines)

    def say(self, key: str, *values: object, style: str = "") -> Line:
        return Line(WORDS[key].say(self.lang, *values), style=style)

    def titles(self, *keys: str) -> list[tuple[str, str]]:
        return [(WORDS[key].say(self.lang), "bold") for key in keys]

    def heading(self, text: str, output: Mapping[str, Any] | None, answer: Mapping[str, Any] | None, beam: int) -> None:
        """What was read, and what came out."""
        line = Line(text, style="bold")
        if output is None:
            result = "" if answer is None else answer["text"]
            self.print(line.append(f"  →  {result}") if result else line)
            if answer is not None and answer["kind"] == "fill" and not answer["masked"]:
                self.print(self.say("no gap", style="dim"))
            return
        score = "–" if output["score"] is None else f"{output['score']:.4f}"
        self.print(line.append("  →  ").append(output["text"]), self.say("score", score, beam, style="dim"))

    def cache(self, cache: Mapping[str, Any]) -> None:
        """What the key/value cache has saved."""
        spent = [f"{sum(step[kind] for step in cache['steps']):,}" for kind in ("with", "without")]
        key = "cache" if cache["used"] else "no cache"
        self.print(self.say(key, *spent, f"{cache['max_difference']:.1e}", style="dim"))

    def change(self, change: Mapping[str, Any]) -> None:
        fields = ", ".join(f"{k} {v}" for k, v in change.items() if v is not None and k != "kind")
        self.print(self.say("changed", f"{change['kind']} {fields}".strip(), style="yellow"))

    def overview(
        self, steps: Sequence[Mapping[str, Any]], answer: Mapping[str, Any] | None, values: Sequence[Value]
    ) -> None:
        """What the model wrote or answered, a row for every value, and how to see one in full."""
        self.print(Line(""))
        self.steps(steps)
        if answer is not None:
            self.answer(answer)
        self.values(values)
        kind = "cross_attention" if self.two_sides else "self_attention"
        self.print(Line(""), self.say("hint", kind, style="dim"))

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]]) -> None:
        self.print(*columns([self.titles(*titles), *rows]), Line(""))

    def steps(self, steps: Sequence[Mapping[str, Any]]) -> None:
        rows = []
        for step in steps:
            others = [row for row in step["top"] if row["id"] != step["chosen"]]
            rows.append([(str(step["step"] + 1), ""), (step["reads"], ""), (step["piece"], "bold")])
            rows[-1] += [bar(math.exp(step["chosen_log_probability"])), runners_up(others)]
        if rows:
            self.table(("step", "reads", "writes", "probability", "next best"), rows)

    def answer(self, answer: Mapping[str, Any]) -> None:
        """Of each gap the pieces that fit best, of a whole its labels."""
        if answer["kind"] == "label":
            labels = [[(one["piece"], "bold"), bar(one["probability"])] for one in answer["places"][0]["top"]]
            self.table(("label", "probability"), labels)
            return
        rows = []
        for place in answer["places"]:
            best, *others = place["top"]
            rows.append([(str(place["position"]), ""), (place["piece"], ""), (best["piece"], "bold")])
            rows[-1] += [bar(best["probability"]), runners_up(others)]
        self.table(("place", "gap", "fits", "probability", "next best"), rows)

    def values(self, values: Sequence[Value]) -> None:
        """A row for each value; on a narrow page, axes and formula go below its name."""
        rows, below = [self.titles("name", "shape", "values")], [self.titles("axes", "formula")]
        for value in values:
            rows.append([(value.name, "cyan"), (shape_of(value), ""), (strip(value.value), "")])
            below.append([(self.axes(value, " "), "dim"), (translated(value.formula, self.lang), "magenta")])
        self.print(*columns_or_two_lines(rows, below, self.width))

    def axes(self, value: Value, between: str) -> str:
        names = [name if self.two_sides else name.removesuffix(":src").removesuffix(":tgt") for name in value.axes]
        return between.join(names if self.lang == "en" else [AXES[name] for name in names])

    def in_full(self, values: Sequence[Value], head: int | None) -> None:
        """Each value's name, how it is computed, and a map of it, head by head."""
        self.print(self.say("legend", style="dim"), Line(""))
        for value in values:
            if head is not None and value.axes[0] != "head":
                continue
            span, why = value.span, WHY[value.op["kind"]].say(self.lang)
            self.print(
                Line.assemble((value.name, "bold cyan"), f"  {shape_of(value)}  ({self.axes(value, ', ')})"),
                Line.assemble((translated(value.formula, self.lang), "magenta"), f"   {why}"),
                self.say("range", *(f"{end:.4g}" for end in span), style="dim"),
            )
            if value.axes[0] != "head":
                self.heat_map(value.value, value.axes, span)
            else:
                for h in range(value.value.shape[0]) if head is None else [head]:
                    self.print(self.say("head", h, style="bold"))
                    self.heat_map(value.value[h], value.axes[1:], span)
            self.print(Line(""))

    def heat_map(self, matrix: Tensor, axes: Sequence[str], span: tuple[float, float]) -> None:
        rows, names = (self.labels(name, size) for name, size in zip(axes, matrix.shape, strict=True))
        tokens = ":" in axes[1]
        cell = max((min(10, cell_len(piece)) for piece in names), default=1) + 1
        cell = max(cell, NUMBER) if tokens else 1
        fit = max(1, (self.width - LABEL - 1) // cell)
        margin = " " * (LABEL + 1)
        if tokens:
            top = "".join(set_cell_size(piece, cell - 1) + " " for piece in names[:fit])
            self.print(Line(margin + top.rstrip(), style="dim"))
        for label, row in zip(rows, matrix[:, :fit].tolist(), strict=True):
            line = Line(set_cell_size(label, LABEL) + " ", style="dim")
            for x in row:
                line.append(*shade(x, span, cell))
            self.print(line)
        if len(names) > fit:
            self.print(Line(margin + WORDS["more"].say(self.lang, len(names) - fit), style="dim"))


def print_lines(console: Console, lines: Sequence[Line]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def columns(rows: Sequence[Sequence[tuple[str, str]]]) -> list[Line]:
    """Cells, each a text and its style, side by side and as wide as they need to be."""
    widths = [max(cell_len(row[i][0]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        line = Line()
        for (text, style), width in zip(row, widths, strict=True):
            line.append(text + " " * (width - cell_len(text) + 2), style=style)
        line.rstrip()
        lines.append(line)
    return lines


def columns_or_two_lines(
    rows: Sequence[Sequence[tuple[str, str]]], below: Sequence[Sequence[tuple[str, str]]], width: int
) -> list[Line]:
    """Each row and what belongs below it: as one line, or on a narrow page as two."""
    lines = columns([[*row, *more] for row, more in zip(rows, below, strict=True)])
    if max(line.cell_len for line in lines) <= width:
        return lines
    pairs = zip(columns(rows), columns(below), strict=True)
    return [line for row, more in pairs for line in (row, Line("    ").append_text(more))]


def bar(probability: float) -> tuple[str, str]:
    filled = round(10 * probability) if math.isfinite(probability) else 0
    return f"{probability:.3f} {SHADES[-1] * filled}", "green"


def runners_up(candidates: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    return "  ".join(f"{one['piece']} {one['probability']:.3f}" for one in candidates[:3]), "dim"


def shape_of(value: Value) -> str:
    return "×".join(map(str, value.value.shape))


def strip(value: Tensor) -> str:
    """The mean over all axes but the last, as a few bars."""
    row = value.reshape(-1, value.shape[-1])
    row = row.masked_fill(~row.isfinite(), 0.0).mean(0)
    if len(row) > STRIP:
        row = F.adaptive_avg_pool1d(row[None, None], STRIP)[0, 0]
    low, high = float(row.min()), float(row.max())
    return "".join(BARS[int(7.999 * (float(x) - low) / (high - low))] if high > low else BARS[0] for x in row)


def shade(x: float, span: tuple[float, float], cell: int) -> tuple[str, str]:
    """A block as dark as the value is large, in the colour of its sign, and the number where there is room."""
    if not math.isfinite(x):
        return "·".ljust(cell), "dim"
    largest = max(abs(span[0]), abs(span[1]), 1e-12)
    block = SHADES[min(4, round(4 * abs(x) / largest))]
    text = f"{block}{x:.2f}" if cell >= NUMBER else block
    return text.ljust(cell), "blue" if x < 0 else "red" if span[0] < 0 else "default"
