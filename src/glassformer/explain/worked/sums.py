"""Single cells written out, so that a pencil can follow: "1.841·0.5 + (-0.540)·1 = 0.381".

One function per kind of step. Each takes the example, the step and a cell, and writes the arithmetic from the very
digits the matrices show. Terms whose weight is zero are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from glassformer.explain.worked.example import Step, WorkedExample
from glassformer.explain.worked.steps import Kind


@dataclass(frozen=True)
class Sum:
    """`cell = expression = result`."""

    cell: str
    expression: str
    result: str

    def __str__(self) -> str:
        return f"{self.cell} = {self.expression} = {self.result}"


@dataclass(frozen=True)
class Cell:
    """Where to look: a sentence, a head where there are any, a row and a column."""

    sentence: int = 0
    head: int = 0
    row: int = 1
    column: int = 0


def number(value: float) -> str:
    """A value as the matrices show it: three decimals, and no minus before a zero."""
    return "-inf" if value == -math.inf else f"{value:.3f}".replace("-0.000", "0.000")


def weight(value: float) -> str:
    """A weight is a whole or a half, shown in full."""
    return f"{value:g}"


def signed(text: str) -> str:
    """A negative number inside an expression goes in brackets."""
    return f"({text})" if text.startswith("-") else text


def dot(left: Sequence[float], right: Sequence[float], show: Callable[[float], str] = number) -> str:
    terms = [f"{signed(number(a))}·{signed(show(b))}" for a, b in zip(left, right, strict=True) if b]
    return " + ".join(terms) or "0"


def softmax(scores: Sequence[float], chosen: int) -> str:
    """A share of e^score; a key behind the mask has e^(-inf) = 0 and drops out."""
    powers = " + ".join(f"e^{signed(number(score))}" for score in scores if score != -math.inf)
    return f"e^{signed(number(scores[chosen]))} / ({powers})"


def row_of(step: Step, cell: Cell) -> list[float]:
    value = step.value[cell.sentence] if step.axes[0] == "sentence" else step.value
    values: list[float] = (value[cell.head, cell.row] if "head" in step.axes else value[cell.row]).tolist()
    return values


def short(name: str) -> str:
    """The last part of a name that still says what it is."""
    parts = name.split(".")
    return ".".join(parts[-2:]) if parts[-1] == "input" else parts[-1]


def place(example: WorkedExample, step: Step, cell: Cell, column: str | None = None) -> str:
    """How a cell is called: `pattern[h0, one, twenty]`."""
    words = [axis.split(":")[-1] for axis in step.axes if axis.split(":")[-1] in ("src", "tgt")]
    at = [f"s{cell.sentence}"] if cell.sentence else []
    at += [f"h{cell.head}"] if "head" in step.axes else []
    at.append(example.words(words[0], cell.sentence)[cell.row])
    if column is not None:
        at.append(column)
    elif step.axes[-1] == "vocabulary":
        at.append(example.vocabulary[cell.column])
    elif len(words) == 2:
        at.append(example.words(words[1], cell.sentence)[cell.column])
    else:
        at.append(str(cell.column))
    return f"{short(step.name)}[{', '.join(at)}]"


Writer = Callable[[WorkedExample, Step, Cell], list[Sum]]


def one(write: Callable[[WorkedExample, Step, Cell], str]) -> Writer:
    """A step whose cell takes one expression."""

    def sums(example: WorkedExample, step: Step, cell: Cell) -> list[Sum]:
        result = row_of(step, cell)[cell.column]
        return [Sum(place(example, step, cell), write(example, step, cell), number(result))]

    return sums


def linear(example: WorkedExample, step: Step, cell: Cell) -> str:
    given, matrix = (example[name] for name in step.inputs)
    width = example.config.d_model
    part = "qkv".find(step.name[-1]) if "qkv" in matrix.axes else 0  # W_Q, W_K, W_V lie one after the other
    inside = cell.head * example.config.d_head if "head" in step.axes else 0
    column: Tensor = matrix.value[part * width + inside + cell.column]
    return dot(row_of(given, cell), column.tolist(), weight)


def sinusoid(_example: WorkedExample, _step: Step, cell: Cell) -> str:
    wave = "cos" if cell.column % 2 else "sin"
    return f"{wave}({cell.row} / 100)" if cell.column > 1 else f"{wave}({cell.row})"


def embed(example: WorkedExample, step: Step, cell: Cell) -> str:
    token, position = (row_of(example[name], cell)[cell.column] for name in step.inputs)
    return f"√4·{signed(weight(token))} + {signed(number(position))}"


def products(example: WorkedExample, step: Step, cell: Cell) -> str:
    queries, keys = (example[name] for name in step.inputs)
    return dot(row_of(queries, cell), keys.value[cell.sentence, cell.head, cell.column].tolist())


def scale(example: WorkedExample, step: Step, cell: Cell) -> str:
    return f"{signed(number(row_of(example[step.inputs[0]], cell)[cell.column]))} / √2"


def mask(example: WorkedExample, step: Step, cell: Cell) -> str:
    hidden = row_of(step, cell)[cell.column] == -math.inf
    return f"{number(row_of(example[step.inputs[0]], cell)[cell.column])} + {'(-inf)' if hidden else '0'}"


def share(example: WorkedExample, step: Step, cell: Cell) -> str:
    return softmax(row_of(example[step.inputs[0]], cell), cell.column)


def mix(example: WorkedExample, step: Step, cell: Cell) -> str:
    pattern, values = (example[name] for name in step.inputs)
    shares = row_of(pattern, cell)
    column = values.value[cell.sentence, cell.head, :, cell.column].tolist()
    seen = [(a, b) for a, b in zip(shares, column, strict=True) if a]
    return dot([a for a, _ in seen], [b for _, b in seen])


def add(example: WorkedExample, step: Step, cell: Cell) -> str:
    return " + ".join(signed(number(row_of(example[name], cell)[cell.column])) for name in step.inputs)


def relu(example: WorkedExample, step: Step, cell: Cell) -> str:
    return f"max(0, {number(row_of(example[step.inputs[0]], cell)[cell.column])})"


def norm(example: WorkedExample, step: Step, cell: Cell) -> list[Sum]:
    """Mean and variance of the row first, then the cell."""
    given = row_of(example[step.inputs[0]], cell)
    mean = sum(given) / len(given)
    variance = sum((value - mean) ** 2 for value in given) / len(given)
    minus = f"+ {number(-mean)}" if number(mean).startswith("-") else f"- {number(mean)}"
    parts = " + ".join(signed(number(value)) for value in given)
    squares = " + ".join(f"({number(value)} {minus})²" for value in given)
    result = row_of(step, cell)[cell.column]
    return [
        Sum("μ", f"({parts}) / {len(given)}", number(mean)),
        Sum("σ²", f"({squares}) / {len(given)}", number(variance)),
        Sum(
            place(example, step, cell),
            f"({number(given[cell.column])} {minus}) / √({number(variance)} + {example.config.norm_eps:.5f})",
            number(result),
        ),
    ]


def logits(example: WorkedExample, step: Step, cell: Cell) -> str:
    hidden, table = (example[name] for name in step.inputs)
    return dot(row_of(hidden, cell), table.value[cell.column].tolist(), weight)


def loss(example: WorkedExample, step: Step, _cell: Cell) -> list[Sum]:
    shares, labels = (example[name] for name in step.inputs)
    chosen = [
        shares.value[s, t, label].item()
        for s, row in enumerate(labels.value.tolist())
        for t, label in enumerate(row)
        if label != example.config.pad_id
    ]
    terms = " + ".join(f"ln {number(p)}" for p in chosen)
    return [Sum("loss", f"-({terms}) / {len(chosen)}", number(step.value.item()))]


WRITERS: dict[Kind, Writer] = {
    "sinusoid": one(sinusoid),
    "embed": one(embed),
    "linear": one(linear),
    "products": one(products),
    "scale": one(scale),
    "mask": one(mask),
    "softmax": one(share),
    "mix": one(mix),
    "add": one(add),
    "norm": norm,
    "relu": one(relu),
    "logits": one(logits),
    "probabilities": one(share),
    "loss": loss,
}


def write_out(example: WorkedExample, step: Step, cell: Cell) -> list[Sum]:
    """The arithmetic of one cell; nothing for a step that only copies or is given."""
    return WRITERS[step.kind](example, step, cell) if step.kind in WRITERS else []
