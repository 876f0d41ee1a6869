"""How it looks: matrices with labelled rows and columns, side by side; never folded, at most 80 columns wide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, groupby, zip_longest

from rich.text import Text as Line
from torch import Tensor

from glassformer.explain.operations import Value
from glassformer.explain.worked.example import WorkedExample
from glassformer.explain.worked.sums import axis_labels, exact, number, short
from glassformer.explain.worked.weights import WORDS

WIDTH = 80
STYLES = {"0": "dim", "0.000": "dim", "-inf": "red", "·0": "red"}
EXACT = ("lookup", "visible")  # kinds of operation whose numbers are whole or halves
Matrix = list[Line]  # its lines, all of one width


def matrix(title: str, rows: Sequence[str], names: Sequence[str], cells: Sequence[Sequence[str]]) -> Matrix:
    """Title, names of the columns, and the rows with theirs."""
    margin = max(map(len, rows))
    cell = 1 + max(map(len, chain(names, *cells)))
    lines = [
        Line(f"{'':{margin}}  {title}", style="bold cyan"),
        Line(" " * margin + "".join(name.rjust(cell) for name in names), style="dim"),
    ]
    for label, row in zip(rows, cells, strict=True):
        line = Line(label.ljust(margin))
        for shown in row:
            line.append(shown.rjust(cell), style=STYLES.get(shown, ""))
        lines.append(line)
    width = max(line.cell_len for line in lines)
    for line in lines:
        line.pad_right(width - line.cell_len)
    return lines


def beside(matrices: Sequence[Matrix]) -> list[Line]:
    """Matrices next to one another, as many as fit, the rest below them."""
    rows: list[list[Matrix]] = []
    for one in matrices:
        if not rows or sum(each[0].cell_len + 3 for each in [*rows[-1], one]) - 1 > WIDTH:
            rows.append([])
        rows[-1].append(one)
    lines = []
    for row in rows:
        blank = [Line(" " * one[0].cell_len) for one in row]
        for parts in zip_longest(*row):
            line = Line("  ") + Line("   ").join(part or empty for part, empty in zip(parts, blank, strict=True))
            line.rstrip()
            lines.append(line)
    return lines


def shown(cells: Tensor, show: Callable[[float], str]) -> list[list[str]]:
    return [[show(cell) for cell in row] for row in cells.tolist()]


def given_matrix(value: Value) -> Matrix:
    """What belongs to no sentence alone: ids with their words, the mask as ones and zeros, a weight row by input."""
    if value.op["kind"] == "weight":
        words = value.axes[0] == "vocab"
        table = value.value if words else value.value.reshape(len(value.value), -1).T
        title, cells = "E" if words else short(value.name), shown(table, exact)
        rows = list(WORDS) if words else [str(i) for i in range(len(table))]
    else:
        title, rows = value.name, [f"s{i}" for i in range(len(value.value))]
        cells = shown(value.value, exact if value.name == "src_mask" else lambda id: f"{id} {WORDS[int(id)]}")
    return matrix(title, rows, [str(i) for i in range(len(cells[0]))], cells)


def weight_matrix(example: WorkedExample, value: Value) -> Matrix:
    """Of a linear value, as its formula has it: one row per input. The module keeps it the other way round."""
    start, end = value.op["rows"]
    weight = example.traces[0].weights.tensors[value.op["weight"]][start:end].T
    names = axis_labels(example.traces[0], value.axes[-1], weight.shape[1])
    return matrix(value.formula.rpartition(" ")[2], [str(i) for i in range(len(weight))], names, shown(weight, exact))


def traced_matrix(example: WorkedExample, name: str, sentence: int, head: int | None) -> Matrix:
    trace = example.traces[sentence]
    value = trace.value(name)
    part = slice(None) if head is None else head
    cells = shown(trace[name, part], exact if value.op["kind"] in EXACT else number)
    if name.endswith(".pattern"):
        for i, j in trace[value.op["input"], part].isinf().nonzero().tolist():
            cells[i][j] = "·0"
    rows, names = (
        axis_labels(trace, axis, size) for axis, size in zip(value.axes[-2:], value.value.shape[-2:], strict=True)
    )
    title = f"{short(name)} s{sentence}" + ("" if head is None else f" h{head}")
    return matrix(title, rows, names, cells)


def drawn(example: WorkedExample, values: Sequence[Value], sentences: Sequence[int]) -> list[Line]:
    """Weights first; then each sentence, head by head where there are heads."""
    lines = beside([given_matrix(value) for value in values if value.op["kind"] in ("given", "weight")])
    own = [value for value in values if value.name in example.traces[0]]
    lines += beside([weight_matrix(example, value) for value in own if value.op["kind"] == "linear"])
    heads = range(example.traces[0].subject.config.heads)
    for sentence in sentences:
        for headed, group in groupby(own, key=lambda value: "head" in value.axes):
            names = [value.name for value in group]
            rows = [
                [traced_matrix(example, name, sentence, h) for name in names] for h in (heads if headed else [None])
            ]
            for row in rows if len(names) > 1 else [list(chain(*rows))]:
                lines += beside(row)
    return lines
