"""A trace in the terminal: what was read and written, every value in a row, or some of them in full."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text
from torch import Tensor
from torch.nn import functional as F

from glassformer.common.errors import InputError
from glassformer.common.strings import Language
from glassformer.explain.ends import SQUARES
from glassformer.explain.operations import Value
from glassformer.explain.words import AXES, WHY, formula, say

if TYPE_CHECKING:
    from glassformer.explain.traced import Trace

SHADES = " ░▒▓█"
BARS = "▁▂▃▄▅▆▇█"
STRIP = 16  # cells of the strip that stands for a value in the overview
NUMBER = 8  # columns of a cell that shows its number
LABEL = 12  # columns kept for the names of rows
PAGE = 150  # where no terminal sets a width


def show(
    trace: Trace, console: Console, pattern: str | None, layer: int | None, head: int | None, lang: Language
) -> None:
    width = console.width if console.is_terminal else PAGE
    chosen = trace.select(pattern, layer)
    heads = max((value.value.shape[0] for value in chosen if value.axes[0] == "head"), default=0)
    if head is not None and not 0 <= head < heads:
        span = f"the heads are numbered 0 to {heads - 1}" if heads else "none of the values chosen has heads"
        raise InputError(f"there is no head {head}; {span}")
    if pattern is None and head is None:
        print_lines(console, heading(trace, lang))
        print_lines(console, [Text(""), *steps_table(trace, lang), *answer_table(trace, lang)])
        print_lines(console, values_table(chosen, lang, width, two_sides(trace)))
        kind = "cross_attention" if two_sides(trace) else "self_attention"
        print_lines(console, [Text(""), Text(say("hint", lang, kind), style="dim")])
        return
    print_lines(console, [*heading(trace, lang), Text(say("legend", lang), style="dim"), Text("")])
    for value in chosen:
        if head is None or value.axes[0] == "head":
            print_lines(console, [*in_full(trace, value, head, lang, width), Text("")])


def print_lines(console: Console, lines: Sequence[Text]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def heading(trace: Trace, lang: Language) -> list[Text]:
    output = trace.output
    line = Text(trace.text, style="bold")
    if output is None:
        lines = [line.append(f"  →  {trace.said}") if trace.said else line]
        if trace.answer is not None and trace.answer["kind"] == "fill" and not trace.answer["masked"]:
            lines.append(Text(say("no gap", lang), style="dim"))
    else:
        line.append("  →  ").append(output["text"])
        score = "–" if output["score"] is None else f"{output['score']:.4f}"
        lines = [line, Text(say("score", lang, score, trace.options.search.beam), style="dim")]
        if not output["finished"] and trace.steps:
            lines.append(Text(say("cut", lang), style="yellow"))
    if trace.subject.tag is not None:
        pieces = trace.subject.pieces(trace.source, source=True)
        lines.append(Text(say("tag", lang, pieces[0], trace.subject.tag, " ".join(pieces)), style="dim"))
    if trace.cache is not None:
        spent = [f"{sum(step[kind] for step in trace.cache['steps']):,}" for kind in ("with", "without")]
        told = "cache" if trace.cache["used"] else "no cache"
        lines.append(Text(say(told, lang, *spent, f"{trace.cache['max_difference']:.1e}"), style="dim"))
    for change in trace.changes:
        told = ", ".join(f"{k} {v}" for k, v in change.items() if v is not None and k != "kind")
        lines.append(Text(say("changed", lang, f"{change['kind']} {told}".strip()), style="yellow"))
    if not trace.one_pass:
        lines.append(Text(say("last step", lang), style="yellow"))
    return lines


def columns(rows: Sequence[Sequence[tuple[str, str]]]) -> list[Text]:
    """Cells, each a text and its style, side by side and as wide as they need to be."""
    widths = [max(cell_len(row[i][0]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        line = Text()
        for (told, style), width in zip(row, widths, strict=True):
            line.append(told + " " * (width - cell_len(told) + 2), style=style)
        line.rstrip()
        lines.append(line)
    return lines


def titles(lang: Language, *keys: str) -> list[tuple[str, str]]:
    return [(say(key, lang), "bold") for key in keys]


def steps_table(trace: Trace, lang: Language) -> list[Text]:
    rows = [titles(lang, "step", "reads", "writes", "probability", "next best")]
    for step in trace.steps:
        own = math.exp(step["chosen_log_probability"])
        others = [row for row in step["top"] if row["id"] != step["chosen"]][:3]
        rest = "  ".join(f"{row['piece']} {row['probability']:.3f}" for row in others)
        bar = f"{own:.3f} {SHADES[-1] * round(10 * own if math.isfinite(own) else 0)}"
        rows.append(
            [(str(step["step"] + 1), ""), (step["reads"], ""), (step["piece"], "bold"), (bar, "green"), (rest, "dim")]
        )
    return [*columns(rows), Text("")] if trace.steps else []


def answer_table(trace: Trace, lang: Language) -> list[Text]:
    """Of each gap the pieces that fit best, of a whole its labels."""
    if trace.answer is None:
        return []
    if trace.answer["kind"] == "label":
        rows = [titles(lang, "label", "probability")]
        for one in trace.answer["places"][0]["top"]:
            own = one["probability"]
            rows.append([(one["piece"], "bold"), (f"{own:.3f} {SHADES[-1] * round(10 * own)}".rstrip(), "green")])
        return [*columns(rows), Text("")]
    rows = [titles(lang, "place", "gap", "fits", "probability", "next best")]
    for place in trace.answer["places"]:
        best, *others = place["top"]
        rest = "  ".join(f"{one['piece']} {one['probability']:.3f}" for one in others[:3])
        rows.append([(str(place["position"]), ""), (place["piece"], ""), (best["piece"], "bold")])
        bar = f"{best['probability']:.3f} {SHADES[-1] * round(10 * best['probability'])}"
        rows[-1] += [(bar, "green"), (rest, "dim")]
    return [*columns(rows), Text("")]


def two_sides(trace: Trace) -> bool:
    """Whether there is a source and a target; else there is no need to say which is meant."""
    return trace.subject.task == "translate"


def axis(name: str, lang: Language, sides: bool = True) -> str:
    name = name if sides else name.removesuffix(":src").removesuffix(":tgt")
    return name if lang == "en" else AXES[name]


def values_table(values: Sequence[Value], lang: Language, width: int, sides: bool = True) -> list[Text]:
    """A row for each value; on a narrow page, axes and formula go below its name."""
    rows, below = [titles(lang, "name", "shape", "values")], [titles(lang, "axes", "formula")]
    for value in values:
        shape = "×".join(map(str, value.value.shape))
        rows.append([(value.name, "cyan"), (shape, ""), (strip(value.value), "")])
        axes = " ".join(axis(name, lang, sides) for name in value.axes)
        below.append([(axes, "dim"), (formula(value.formula, lang), "magenta")])
    both = columns([[*row, *more] for row, more in zip(rows, below, strict=True)])
    if max(line.cell_len for line in both) <= width:
        return both
    pairs = zip(columns(rows), columns(below), strict=True)
    return [line for row, more in pairs for line in (row, Text("    ").append_text(more))]


def strip(value: Tensor) -> str:
    """The last axis, averaged over the others, in a few bars."""
    row = value.reshape(-1, value.shape[-1])
    row = row.masked_fill(~row.isfinite(), 0.0).mean(0)
    if len(row) > STRIP:
        row = F.adaptive_avg_pool1d(row[None, None], STRIP)[0, 0]
    low, high = float(row.min()), float(row.max())
    return "".join(BARS[int(7.999 * (float(x) - low) / (high - low))] if high > low else BARS[0] for x in row)


def in_full(trace: Trace, value: Value, head: int | None, lang: Language, width: int) -> list[Text]:
    """A value's name, how it is made, and a map of it, head by head."""
    shape = "×".join(map(str, value.value.shape))
    axes = ", ".join(axis(name, lang, two_sides(trace)) for name in value.axes)
    finite = value.value[value.value.isfinite()]
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)
    lines = [
        Text.assemble((value.name, "bold cyan"), f"  {shape}  ({axes})"),
        Text.assemble((formula(value.formula, lang), "magenta"), f"   {WHY[value.op['kind']].say(lang)}"),
        Text(say("range", lang, f"{low:.4g}", f"{high:.4g}"), style="dim"),
    ]
    if value.axes[0] != "head":
        return lines + heat_map(trace, value.value, value.axes, (low, high), lang, width)
    for h in range(value.value.shape[0]) if head is None else [head]:
        lines.append(Text(say("head", lang, h), style="bold"))
        lines += heat_map(trace, value.value[h], value.axes[1:], (low, high), lang, width)
    return lines


def labels(trace: Trace, name: str, size: int) -> list[str]:
    """The tokens along an axis; its numbers where it has none."""
    side = name.partition(":")[2]
    if not side:
        return trace.subject.answers(range(size)) if name == "label" else [str(i) for i in range(size)]
    if side == "tgt":
        return trace.subject.pieces(trace.written.reads, source=False)
    pieces = trace.subject.source_pieces(trace.source)
    return pieces[1:] if side == SQUARES else pieces[:size]


def heat_map(
    trace: Trace, matrix: Tensor, axes: Sequence[str], span: tuple[float, float], lang: Language, width: int
) -> list[Text]:
    rows, names = (labels(trace, name, size) for name, size in zip(axes, matrix.shape, strict=True))
    tokens = ":" in axes[1]
    cell = max((min(10, cell_len(piece)) for piece in names), default=1) + 1 if tokens else 1
    cell = max(cell, NUMBER) if tokens else 1
    fit = max(1, (width - LABEL - 1) // cell)
    lines = []
    if tokens:
        top = "".join(set_cell_size(piece, cell - 1) + " " for piece in names[:fit])
        lines.append(Text(" " * (LABEL + 1) + top.rstrip(), style="dim"))
    for label, row in zip(rows, matrix[:, :fit].tolist(), strict=True):
        line = Text(set_cell_size(label, LABEL) + " ", style="dim")
        for x in row:
            line.append(*shade(x, span, cell))
        lines.append(line)
    if len(names) > fit:
        lines.append(Text(" " * (LABEL + 1) + say("more", lang, len(names) - fit), style="dim"))
    return lines


def shade(x: float, span: tuple[float, float], cell: int) -> tuple[str, Any]:
    """A block as dark as the value is large, in the colour of its sign, and the number where there is room."""
    wide = cell >= NUMBER
    if not math.isfinite(x):
        return "·".ljust(cell), "dim"
    largest = max(abs(span[0]), abs(span[1]), 1e-12)
    block = SHADES[min(4, round(4 * abs(x) / largest))]
    told = f"{block}{x:.2f}" if wide else block
    return told.ljust(cell), "blue" if x < 0 else "red" if span[0] < 0 else "default"
