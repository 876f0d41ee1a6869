"""Single cells written out, so that a pencil can follow: "1.841·0.5 + (-0.540)·1 = 0.381".

One rule for every kind of operation of a trace. It writes the arithmetic of a cell from the operation's inputs and
weights, with the digits that the matrices show. Terms whose weight is zero are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glassformer.explain.activations import Op, Value
from glassformer.explain.formulas import Expression, format_expression
from glassformer.explain.trace import Trace


def number(value: float) -> str:
    """A value as the matrices show it: three decimals, and no minus before a zero."""
    return "-inf" if value == -math.inf else f"{value:.3f}".replace("-0.000", "0.000")


def exact(value: float) -> str:
    """A weight is a whole or a half, shown in full."""
    return f"{value:g}"


def signed(text: str) -> str:
    """A negative number inside an expression goes in brackets."""
    return f"({text})" if text.startswith("-") else text


def dot(left: Sequence[float], right: Sequence[float], show: Callable[[float], str]) -> str:
    terms = [f"{signed(number(a))}·{signed(show(b))}" for a, b in zip(left, right, strict=True) if a and b]
    return " + ".join(terms) or "0"


def short(name: str) -> str:
    """The last part of a name that still says what it is."""
    return name if name.startswith("masks.") else name.rpartition(".")[2]


def axis_labels(trace: Trace, axis: str, size: int) -> list[str]:
    """Words along an axis that has any, numbers along the others."""
    return trace.subject.pieces(range(size), source=False) if axis == "vocab" else trace.labels(axis, size)


@dataclass(frozen=True)
class Cell:
    """A cell of one traced value; `head` counts only where there are heads."""

    trace: Trace
    value: Value
    head: int
    row: int
    column: int

    @property
    def op(self) -> Op:
        return self.value.op

    @property
    def result(self) -> float:
        return self.row_of(self.value.name)[self.column]

    def row_of(self, name: str) -> list[float]:
        """The same row, of the same head, of another value."""
        matrix = self.trace[name]
        row: list[float] = (matrix[self.head] if matrix.dim() == 3 else matrix)[self.row].tolist()
        return row

    def operand(self, name: str) -> str:
        """The same cell of another value, as an operand of an expression."""
        return signed(number(self.row_of(name)[self.column]))

    def __str__(self) -> str:
        """Its name: `pattern[h0, one, twenty]`."""
        rows, columns = (
            axis_labels(self.trace, axis, size)
            for axis, size in zip(self.value.axes[-2:], self.value.value.shape[-2:], strict=True)
        )
        head = f"h{self.head}, " if "head" in self.value.axes else ""
        return f"{short(self.value.name)}[{head}{rows[self.row]}, {columns[self.column]}]"


def scale(cell: Cell) -> str:
    factor, times = cell.op["by"], cell.operand(cell.op["input"])
    if math.isclose(factor**2, round(factor**2), rel_tol=1e-6):
        return f"√{factor**2:.0f}·{times}"
    return f"{times} / √{factor**-2:g}"


def positions(cell: Cell) -> str:
    wave, width = "cos" if cell.column % 2 else "sin", cell.value.value.shape[-1]
    slower = 10_000 ** (cell.column // 2 * 2 / width)
    return f"{wave}({cell.row}{'' if slower == 1 else f' / {slower:g}'})"


def linear(cell: Cell) -> str:
    start, end = cell.op["rows"]  # of the matrix, which holds a row per output, head after head
    if cell.op["heads"]:
        start += cell.head * (end - start) // cell.op["heads"]
    weight = cell.trace.weights.tensors[cell.op["weight"]][start + cell.column]
    return dot(cell.row_of(cell.op["input"]), weight.tolist(), exact)


def products(cell: Cell) -> str:
    return dot(cell.row_of(cell.op["q"]), cell.trace[cell.op["k"], cell.head, cell.column].tolist(), number)


def mask(cell: Cell) -> str:
    return f"{cell.operand(cell.op['input'])} + {'(-inf)' if cell.result == -math.inf else '0'}"


def softmax(cell: Cell) -> str:
    """A share of e^score; a key behind the mask has e^(-inf) = 0 and drops out."""
    scores = [number(score) for score in cell.row_of(cell.op["input"]) if score != -math.inf]
    return f"e^{cell.operand(cell.op['input'])} / ({' + '.join(f'e^{signed(score)}' for score in scores)})"


def context(cell: Cell) -> str:
    column = cell.trace[cell.op["v"], cell.head, :, cell.column].tolist()
    return dot(cell.row_of(cell.op["pattern"]), column, number)


def activation(cell: Cell) -> str:
    return format_expression(substitute(cell.op["expression"], {"u": cell.operand(cell.op["input"])}))


def add(cell: Cell) -> str:
    return " + ".join(cell.operand(name) for name in cell.op["inputs"])


def layer_norm(cell: Cell) -> str:
    g, b = (cell.trace.weights.tensors[cell.op[name]].tolist()[cell.column] for name in ("weight", "bias"))
    numbers = {"x": cell.row_of(cell.op["input"])[cell.column]} | moments(cell)[1]
    symbols = {name: signed(number(value)) for name, value in numbers.items()}
    symbols |= {"g": exact(g), "b": exact(b), "ε": f"{cell.op['eps']:.5f}"}
    return format_expression(substitute(cell.op["expression"], symbols))


def moments(cell: Cell) -> tuple[list[str], dict[str, float]]:
    """The mean and the variance of the whole row that a norm reads: written out, and by name."""
    row = cell.row_of(cell.op["input"])
    mean = sum(row) / len(row)
    variance = sum((x - mean) ** 2 for x in row) / len(row)
    terms = [signed(number(x)) for x in row]
    squares = [f"({x} - {signed(number(mean))})²" for x in terms]
    lines = [
        f"mean = ({' + '.join(terms)}) / {len(row)} = {number(mean)}",
        f"variance = ({' + '.join(squares)}) / {len(row)} = {number(variance)}",
    ]
    return lines, {"mean": mean, "variance": variance}


def substitute(expression: Expression, symbols: Mapping[str, str]) -> Expression:
    """The expression with numbers in the place of symbols."""
    if isinstance(expression, tuple):
        return tuple(substitute(part, symbols) for part in expression)
    return symbols.get(expression, expression) if isinstance(expression, str) else expression


OPERATIONS = (scale, positions, add, linear, products, mask, softmax, context, activation, layer_norm)
RULES: dict[str, Callable[[Cell], str]] = {rule.__name__: rule for rule in OPERATIONS}


def write_calculation(trace: Trace, value: Value, row: int) -> list[str]:
    """The arithmetic of one cell of a row, of the first head; empty for a value that is only looked up or copied.

    The column is the one with most to show: one behind a mask, else without a zero, of most terms, the largest.
    """
    if (rule := RULES.get(value.op["kind"])) is None:
        return []
    cells = [Cell(trace, value, 0, row, column) for column in range(value.value.shape[-1])]

    def interest(cell: Cell) -> tuple[bool, bool, int, float]:
        terms = rule(cell)
        return cell.result == -math.inf, "0.000" not in terms, terms.count(" "), cell.result

    cell = max(cells, key=interest)
    before = moments(cell)[0] if rule is layer_norm else []
    return [*before, f"{cell} = {rule(cell)} = {number(cell.result)}"]


def loss_sum(probabilities: Sequence[float], loss: float) -> str:
    return f"loss = -({' + '.join(f'ln {number(p)}' for p in probabilities)}) / {len(probabilities)} = {number(loss)}"
