"""The worked example in the terminal and in the handbook: the whole story, or single values by name. Matrices have
labelled rows and columns and stand side by side; they never wrap and are at most 80 columns wide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, groupby, zip_longest

from rich.console import Console
from rich.text import Text as Line
from torch import Tensor

from glassformer.common.strings import Language, Text, wrap
from glassformer.explain.activations import Value
from glassformer.explain.formulas import AXES, translated
from glassformer.explain.show import columns_or_two_lines, print_lines
from glassformer.explain.worked import WorkedExample
from glassformer.explain.worked.arithmetic import axis_labels, exact, loss_sum, number, short, write_calculation
from glassformer.explain.worked.texts import FRAME, STORY
from glassformer.explain.worked.weights import PAD, WORDS

WIDTH = 80  # columns of matrices
STYLES = {"0": "dim", "0.000": "dim", "-inf": "red", "·0": "red"}
EXACT = ("lookup", "visible")  # kinds of operation whose numbers are whole or halves
Matrix = list[Line]  # its lines, all of one width
PAGE = 100  # columns of prose
STAGES = {"q": "project", "k": "project", "v": "project", "products": "score", "scores": "score", "masked": "mask",
          "pattern": "softmax", "context": "mix", "merged": "mix", "output": "mix"}  # fmt: skip
PANELS = {"src": "batch.source", "src_mask": "batch.source", "tgt": "batch.target", "labels": "batch.target",
          "encoder.embedding.tokens.weight": "table", "masks.encoder": "encoder.self_attention.mask",
          "masks.decoder": "decoder.self_attention.mask", "masks.cross": "decoder.cross_attention.mask"}  # fmt: skip
# The sentences to draw where it is not the first alone: the second has padding to hide.
SENTENCES = {
    "encoder.self_attention.mask": (1,),
    "encoder.self_attention.softmax": (0, 1),
    "memory": (0, 1),
    "decoder.cross_attention.mask": (1,),
    "decoder.cross_attention.softmax": (0, 1),
}


def matrix(title: str, rows: Sequence[str], names: Sequence[str], cells: Sequence[Sequence[str]]) -> Matrix:
    """A title, the names of the columns, and the rows with their labels."""
    margin = max(map(len, rows))
    cell = 1 + max(map(len, chain(names, *cells)))
    lines = [
        Line(f"{'':{margin}}  {title}", style="bold cyan"),
        Line(" " * margin + "".join(name.rjust(cell) for name in names), style="dim"),
    ]
    for label, row in zip(rows, cells, strict=True):
        line = Line(label.ljust(margin))
        for text in row:
            line.append(text.rjust(cell), style=STYLES.get(text, ""))
        lines.append(line)
    width = max(line.cell_len for line in lines)
    for line in lines:
        line.pad_right(width - line.cell_len)
    return lines


def side_by_side(matrices: Sequence[Matrix]) -> list[Line]:
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


def formatted(cells: Tensor, format: Callable[[float], str]) -> list[list[str]]:
    return [[format(cell) for cell in row] for row in cells.tolist()]


def input_matrix(value: Value) -> Matrix:
    """A value of the whole batch: ids with their words, the mask as ones and zeros, or a weight, one row per input."""
    if value.op["kind"] == "weight":
        words = value.axes[0] == "vocab"
        table = value.value if words else value.value.reshape(len(value.value), -1).T
        title, cells = "E" if words else short(value.name), formatted(table, exact)
        rows = list(WORDS) if words else [str(i) for i in range(len(table))]
    else:
        title, rows = value.name, [f"s{i}" for i in range(len(value.value))]
        cells = formatted(value.value, exact if value.name == "src_mask" else lambda id: f"{id} {WORDS[int(id)]}")
    return matrix(title, rows, [str(i) for i in range(len(cells[0]))], cells)


def weight_matrix(example: WorkedExample, value: Value) -> Matrix:
    """The matrix of a linear value as its formula has it, one row per input; the module keeps its transpose."""
    start, end = value.op["rows"]
    weight = example.traces[0].weights.tensors[value.op["weight"]][start:end].T
    names = axis_labels(example.traces[0], value.axes[-1], weight.shape[1])
    return matrix(
        value.formula.rpartition(" ")[2], [str(i) for i in range(len(weight))], names, formatted(weight, exact)
    )


def traced_matrix(example: WorkedExample, name: str, sentence: int, head: int | None) -> Matrix:
    trace = example.traces[sentence]
    value = trace.value(name)
    part = slice(None) if head is None else head
    cells = formatted(trace[name, part], exact if value.op["kind"] in EXACT else number)
    if name.endswith(".pattern"):
        for i, j in trace[value.op["input"], part].isinf().nonzero().tolist():
            cells[i][j] = "·0"
    rows, names = (
        axis_labels(trace, axis, size) for axis, size in zip(value.axes[-2:], value.value.shape[-2:], strict=True)
    )
    title = f"{short(name)} s{sentence}" + ("" if head is None else f" h{head}")
    return matrix(title, rows, names, cells)


def matrices(example: WorkedExample, values: Sequence[Value], sentences: Sequence[int]) -> list[Line]:
    """Weights first; then each sentence, head by head where there are heads."""
    lines = side_by_side([input_matrix(value) for value in values if value.op["kind"] in ("given", "weight")])
    own = [value for value in values if value.name in example.traces[0]]
    lines += side_by_side([weight_matrix(example, value) for value in own if value.op["kind"] == "linear"])
    heads = range(example.traces[0].subject.config.heads)
    for sentence in sentences:
        for headed, group in groupby(own, key=lambda value: "head" in value.axes):
            names = [value.name for value in group]
            rows = [
                [traced_matrix(example, name, sentence, h) for name in names] for h in (heads if headed else [None])
            ]
            for row in rows if len(names) > 1 else [list(chain(*rows))]:
                lines += side_by_side(row)
    return lines


def panel_of(value: Value) -> str | None:
    """The key of the text that describes a value; None for a value that another one stands for."""
    place, _, part = value.name.replace(".blocks.0", "").rpartition(".")
    if value.name in PANELS:
        return PANELS[value.name]
    if value.op["kind"] in ("same", "weight") and value.name != "memory":
        return None
    if place.endswith("_attention"):
        return f"{place}.{STAGES[part]}"
    return place if place and part != "embedding" else value.name


def calculations(example: WorkedExample, values: Sequence[Value], sentence: int, width: int) -> list[Line]:
    """A cell of each value written out; one too long for the page goes on below, indented further."""
    trace, lines = example.traces[sentence], []
    for value in values:
        if value.name == "loss":
            written = [loss_sum(example.label_probabilities(), float(value.value))]
        elif value.name in trace:
            row = 2 if value.axes[-2].endswith("tgt") and sentence == 0 else 1  # und, or the sentence's second word
            written = write_calculation(trace, trace.value(value.name), row)
            if sentence:
                written = [line.replace("[", f"[s{sentence}, ", 1) for line in written]
        else:
            continue
        for whole in written:
            lines.append(Line("  " + wrap(whole, width - 6).replace("\n", "\n      "), style="green"))
    return lines


def headings(example: WorkedExample, values: Sequence[Value], lang: Language, width: int) -> list[Line]:
    """Name, axes of one sentence with their sizes, formula: a line each; on a narrow page the formula goes below."""
    rows, formulas = [], []
    for value in (example.traces[0].values.get(value.name, value) for value in values):
        names = value.axes if lang == "en" else [AXES[name] for name in value.axes]
        axes = ", ".join(f"{name} {size}" for name, size in zip(names, value.value.shape, strict=True))
        rows.append([(value.name, "bold cyan"), (f"({axes})", "")])
        formulas.append([(translated(value.formula, lang), "magenta")])
    return columns_or_two_lines(rows, formulas, width)


def prose(text: Text, lang: Language, width: int) -> list[Line]:
    return [Line(line) for line in wrap(text.say(lang), width).split("\n")]


def answers(example: WorkedExample, lang: Language) -> list[Line]:
    """What the model would write after each word, and the label."""
    lines = []
    for sentence, (trace, labels) in enumerate(zip(example.traces, example.labels, strict=True)):
        for before, label, row in zip(trace.written.reads, labels, trace["probabilities"], strict=True):
            if label != PAD:
                best, guess = (part.item() for part in row.max(-1))
                words = WORDS[before], WORDS[int(guess)], number(best), WORDS[label]
                lines.append(Line("  " + FRAME["answer.line"].say(lang, sentence, *words), style="bold"))
    return lines


def page_width(console: Console) -> int:
    return min(PAGE, console.width) if console.is_terminal else PAGE


def print_story(example: WorkedExample, lang: Language, console: Console) -> None:
    """Print the whole story, from ids to loss."""
    width, chapter = page_width(console), 0
    title = [Line(FRAME["title"].say(lang), style="bold"), Line("═" * width, style="dim")]
    print_lines(console, [*title, *prose(FRAME["intro"], lang, width), Line("")])
    for key, text in STORY.items():
        if key.startswith("chapter."):
            chapter += 1
            print_lines(console, [Line(f"{chapter}  {text.say(lang)}", style="bold"), Line("─" * width, style="dim")])
            continue
        values = [value for value in example.values.values() if panel_of(value) == key]
        sentences = SENTENCES.get(key, (0,))
        print_lines(console, [*headings(example, values, lang, width), *prose(text, lang, width)])
        print_lines(console, matrices(example, values, sentences))
        print_lines(console, [*calculations(example, values, sentences[0], width), Line("")])
    print_lines(console, [*prose(FRAME["answer"], lang, width), *answers(example, lang), Line("")])
    print_lines(console, prose(FRAME["outro"], lang, width))


def print_values(example: WorkedExample, pattern: str, lang: Language, console: Console) -> None:
    """Print the values whose names match: every sentence, every head."""
    width = page_width(console)
    for value in example.values.select(pattern):
        sentences = range(len(example.traces))
        print_lines(console, [*headings(example, [value], lang, width), *matrices(example, [value], sentences)])
        print_lines(console, [*calculations(example, [value], 0, width), Line("")])
