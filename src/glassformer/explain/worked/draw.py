"""How it looks: matrices with labelled rows and columns, side by side.

A matrix never exceeds 80 columns and is never folded. Colour is `rich`'s: it appears on a terminal and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from glassformer.explain.worked.example import Step, WorkedExample
from glassformer.explain.worked.sums import number, short, weight

MATRIX_WIDTH = 80
LETTERS = {"sentence": "B", "src": "S", "tgt": "T", "head": "H", "model": "D", "d": "d", "ff": "F",
           "vocabulary": "V", "qkv": "3D"}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """One matrix ready to draw; `hidden` marks the cells behind a mask."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    hidden: frozenset[tuple[int, int]] = frozenset()

    @property
    def label_width(self) -> int:
        return max(len(label) for label in self.rows)

    @property
    def column_width(self) -> int:
        return 1 + max(len(text) for text in (*self.columns, *(cell for row in self.cells for cell in row)))

    def width(self, labelled: bool) -> int:
        body = max(self.column_width * len(self.columns), len(self.title) + 2)
        return body + (self.label_width if labelled else 0)


def shape_of(step: Step) -> str:
    """(B=2, S=3, D=4), in the letters the model's own files use."""
    axes = (LETTERS[axis.split(":")[-1]] for axis in step.axes)
    return f"({', '.join(f'{letter}={size}' for letter, size in zip(axes, step.shape, strict=True))})"


def labels(example: WorkedExample, axis: str, size: int, sentence: int) -> list[str]:
    kind = axis.split(":")[-1]
    if kind in ("src", "tgt"):
        return example.words(kind, sentence)
    return list(example.vocabulary) if kind == "vocabulary" else [str(i) for i in range(size)]


def blocks(example: WorkedExample, step: Step, sentence: int = 0, head: int = 0) -> list[Block]:
    """The matrices to draw for one sentence (and one head); a weight belongs to no sentence."""
    if step.kind == "given":
        return [given(example, step)]
    if step.kind == "loss":
        return []
    if step.kind == "weight":
        return weights_of(example, step)
    value = step.value[sentence] if step.axes[0] == "sentence" else step.value
    title = f"{short(step.name)} s{sentence}" if step.axes[0] == "sentence" else short(step.name)
    if "head" in step.axes:
        value, title = value[head], f"{title} h{head}"
    rows, columns = (
        labels(example, axis, size, sentence) for axis, size in zip(step.axes[-2:], value.shape, strict=True)
    )
    show = weight if step.kind == "lookup" else number
    cells = [[show(cell) for cell in row] for row in value.tolist()]
    hidden: set[tuple[int, int]] = set()
    if step.kind in ("mask", "softmax"):
        masked = example[step.inputs[0]] if step.kind == "softmax" else step
        hidden = {(int(i), int(j)) for i, j in masked.value[sentence, head].isinf().nonzero().tolist()}
        if step.kind == "softmax":
            for i, j in hidden:
                cells[i][j] = f"·{weight(value[i, j].item())}"
    return [Block(title, rows, columns, cells, frozenset(hidden))]


def given(example: WorkedExample, step: Step) -> Block:
    """Ids with their words; the mask as ones and zeros."""
    values = step.value.tolist()
    if step.name == "src_mask":
        cells = [[str(int(cell)) for cell in row] for row in values]
    else:
        cells = [[f"{cell} {example.vocabulary[cell]}" for cell in row] for row in values]
    sentences = [f"s{i}" for i in range(len(values))]
    return Block(step.name, sentences, [str(i) for i in range(len(values[0]))], cells)


def weights_of(example: WorkedExample, step: Step) -> list[Block]:
    """A weight as the formula has it, one row per input; the module keeps it the other way round."""
    vocabulary = step.axes[0] == "vocabulary"
    value = step.value if vocabulary else step.value.T
    rows = list(example.vocabulary) if vocabulary else [str(i) for i in range(len(value))]
    parts = value.split(example.config.d_model, dim=1)
    return [
        Block(title, rows, [str(i) for i in range(part.shape[1])], [[weight(c) for c in row] for row in part.tolist()])
        for title, part in zip(step.formula.split(", "), parts, strict=True)
    ]


def beside(matrices: Sequence[Block]) -> list[Text]:
    """Matrices next to one another, as many as fit, the rest below them."""
    lines: list[Text] = []
    row: list[tuple[Block, bool]] = []
    used = 2
    for block in matrices:
        labelled = not row or block.rows != row[0][0].rows
        if row and used + 3 + block.width(labelled) > MATRIX_WIDTH:
            lines += draw_row(row)
            row, used, labelled = [], 2, True
        used += block.width(labelled) + (3 if row else 0)
        row.append((block, labelled))
    return lines + draw_row(row) if row else lines


def draw_row(row: Sequence[tuple[Block, bool]]) -> list[Text]:
    height = 2 + max(len(block.rows) for block, _ in row)
    columns = [draw(block, labelled, height) for block, labelled in row]
    lines = [Text("   ").join(parts) for parts in zip(*columns, strict=True)]
    for line in lines:
        line.rstrip()
    return [Text("  ") + line for line in lines]


def draw(block: Block, labelled: bool, height: int) -> list[Text]:
    width, margin = block.width(labelled), block.label_width if labelled else 0
    lines = [
        Text(" " * margin + "  ") + Text(block.title, style="bold cyan"),
        Text(" " * margin + "".join(label.rjust(block.column_width) for label in block.columns), style="dim"),
    ]
    for i, (label, cells) in enumerate(zip(block.rows, block.cells, strict=True)):
        line = Text(label.ljust(margin) if labelled else "", style="")
        for j, cell in enumerate(cells):
            style = "red" if (i, j) in block.hidden else "dim" if cell in ("0", "0.000") else ""
            line.append(cell.rjust(block.column_width), style=style)
        lines.append(line)
    lines += [Text("")] * (height - len(lines))
    for k, line in enumerate(lines):
        lines[k] = line + Text(" " * (width - line.cell_len))
    return lines
