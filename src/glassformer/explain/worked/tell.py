"""The worked example on paper: the whole story, or single values by name."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text as Line

from glassformer.common.strings import Language, Text, wrap
from glassformer.explain.operations import Value
from glassformer.explain.show import axis, columns, print_lines
from glassformer.explain.words import formula
from glassformer.explain.worked.draw import drawn
from glassformer.explain.worked.example import WorkedExample
from glassformer.explain.worked.sums import loss_sum, number, write_out
from glassformer.explain.worked.texts import FRAME, STORY
from glassformer.explain.worked.weights import PAD, WORDS

PAGE = 100  # columns
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


def panel_of(value: Value) -> str | None:
    """The key of the text that a value is told under; none where it is told with another."""
    place, _, part = value.name.replace(".blocks.0", "").rpartition(".")
    if value.name in PANELS:
        return PANELS[value.name]
    if value.op["kind"] in ("same", "weight") and value.name != "memory":
        return None
    if place.endswith("_attention"):
        return f"{place}.{STAGES[part]}"
    return place if place and part != "embedding" else value.name


def sums(example: WorkedExample, values: Sequence[Value], sentence: int, width: int) -> list[Line]:
    """A cell of each value written out; one too long for the page goes on below, indented further."""
    trace, lines = example.traces[sentence], []
    for value in values:
        if value.name == "loss":
            written = [loss_sum(example.label_probabilities(), float(value.value))]
        elif value.name in trace:
            row = 2 if value.axes[-2].endswith("tgt") and sentence == 0 else 1  # und, or the sentence's second word
            written = write_out(trace, trace.value(value.name), row)
            if sentence:
                written = [told.replace("[", f"[s{sentence}, ", 1) for told in written]
        else:
            continue
        for told in written:
            first, *rest = wrap(told, width - 6).split("\n")
            lines += [Line(line, style="green") for line in (f"  {first}", *(f"      {more}" for more in rest))]
    return lines


def headings(example: WorkedExample, values: Sequence[Value], lang: Language, width: int) -> list[Line]:
    """Name, axes of one sentence with their sizes, formula: a line each; on a narrow page the formula goes below."""
    rows = []
    for value in (example.traces[0].values.get(value.name, value) for value in values):
        sizes = zip(value.axes, value.value.shape, strict=True)
        axes = ", ".join(f"{axis(name, lang)} {size}" for name, size in sizes)
        rows.append([(value.name, "bold cyan"), (f"({axes})", ""), (formula(value.formula, lang), "magenta")])
    lines = columns(rows)
    if max(line.cell_len for line in lines) <= width:
        return lines
    names = columns([row[:2] for row in rows])
    return [line for name, row in zip(names, rows, strict=True) for line in (name, Line(f"    {row[2][0]}", "magenta"))]


def prose(text: Text, lang: Language, width: int) -> list[Line]:
    return [Line(line) for line in wrap(text.say(lang), width).split("\n")]


def answers(example: WorkedExample, lang: Language) -> list[Line]:
    """What the model would write after each word, beside what it should."""
    lines = []
    for sentence, (trace, labels) in enumerate(zip(example.traces, example.labels, strict=True)):
        for before, label, row in zip(trace.written.reads, labels, trace["probabilities"], strict=True):
            if label != PAD:
                best, guess = (part.item() for part in row.max(-1))
                told = FRAME["answer.line"].say(
                    lang, sentence, WORDS[before], WORDS[int(guess)], number(best), WORDS[label]
                )
                lines.append(Line(f"  {told}", style="bold"))
    return lines


def page_width(console: Console) -> int:
    return min(PAGE, console.width) if console.is_terminal else PAGE


def tell(example: WorkedExample, lang: Language, console: Console) -> None:
    """The whole story, from ids to loss."""
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
        print_lines(
            console,
            [*headings(example, values, lang, width), *prose(text, lang, width), *drawn(example, values, sentences)],
        )
        print_lines(console, [*sums(example, values, sentences[0], width), Line("")])
    print_lines(console, [*prose(FRAME["answer"], lang, width), *answers(example, lang), Line("")])
    print_lines(console, prose(FRAME["outro"], lang, width))


def show(example: WorkedExample, pattern: str, lang: Language, console: Console) -> None:
    """The values whose names fit: every sentence, every head."""
    width = page_width(console)
    for value in example.values.select(pattern):
        sentences = range(len(example.traces))
        print_lines(console, [*headings(example, [value], lang, width), *drawn(example, [value], sentences)])
        print_lines(console, [*sums(example, [value], 0, width), Line("")])
