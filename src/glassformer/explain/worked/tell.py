"""The worked example on paper: the whole story, or single steps by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from glassformer.explain.worked.draw import Block, beside, blocks, shape_of
from glassformer.explain.worked.example import Step, WorkedExample
from glassformer.explain.worked.story import STORY, Panel, cell_for
from glassformer.explain.worked.sums import number, write_out
from glassformer.explain.worked.texts import TEXTS
from glassformer.text.strings import Language, wrap

PAGE = 100


def page_width(console: Console) -> int:
    return min(PAGE, console.width) if console.is_terminal else PAGE


def put(console: Console, lines: Iterable[Text]) -> None:
    """Print lines as they are: never folded, never cropped, no colours of rich's own choosing."""
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def prose(key: str, lang: Language, width: int) -> list[Text]:
    return [Text(line) for line in wrap(TEXTS[key].say(lang), width).split("\n")]


def heading(title: str, width: int) -> list[Text]:
    return [Text(title, style="bold"), Text("─" * width, style="dim")]


def head_lines(steps: Sequence[Step], width: int) -> list[Text]:
    """Name, shape and formula, one line per step; the formula goes below where the page is narrow."""
    shapes = [shape_of(step) for step in steps]
    wide, long = max(len(step.name) for step in steps), max(map(len, shapes))
    narrow = wide + long + max(len(step.formula) for step in steps) + 4 > width
    lines: list[Text] = []
    for step, shape in zip(steps, shapes, strict=True):
        line = Text.assemble((step.name.ljust(wide), "bold cyan"), f"  {shape.ljust(long)}  ")
        formula = Text.assemble("    " if narrow else "", (step.formula, "magenta"))
        lines += [line, formula] if narrow else [line + formula]
    for line in lines:
        line.rstrip()
    return lines


def sum_lines(example: WorkedExample, names: Sequence[str], width: int) -> list[Text]:
    written = [str(done) for name in names for done in write_out(example, example[name], cell_for(name))]
    return [Text(line, style="green") for done in written for line in break_sum(done, width)]


def break_sum(written: str, width: int) -> list[str]:
    """A sum too long for the page goes on below, indented further."""
    first, *rest = wrap(written, width - 6).split("\n")
    return [f"  {first}", *(f"      {line}" for line in rest)]


def panel_lines(example: WorkedExample, panel: Panel, lang: Language, width: int) -> list[Text]:
    lines = [*head_lines([example[name] for name in panel.names], width), *prose(panel.key, lang, width)]
    for row in panel.rows:
        drawn = [block for one in row for block in blocks(example, example[one.name], one.sentence, one.head)]
        lines += beside(drawn)
    return lines + sum_lines(example, panel.written, width)


def answers(example: WorkedExample, lang: Language) -> list[Text]:
    """What the model would write after each word, beside what it should."""
    shares = example["probabilities"].value
    lines = []
    for s in range(len(shares)):
        words = zip(example.words("tgt", s), example.words("labels", s), shares[s], strict=True)
        for before, label, row in words:
            if label == example.vocabulary[example.config.pad_id or 0]:
                continue
            share, best = row.max(-1)
            guess, p = example.vocabulary[int(best)], number(share.item())
            told = TEXTS["answer.line"].say(lang).format(sentence=s, before=before, guess=guess, p=p, label=label)
            lines.append(Text(f"  {told}", style="bold"))
    return lines


def tell(example: WorkedExample, lang: Language, console: Console) -> None:
    """The whole story, from ids to loss."""
    width = page_width(console)
    title = [Text(TEXTS["title"].say(lang), style="bold"), Text("═" * width, style="dim")]
    put(console, [*title, *prose("intro", lang, width), Text("")])
    for count, chapter in enumerate(STORY, start=1):
        put(console, heading(f"{count}  {TEXTS[f'chapter.{chapter.key}'].say(lang)}", width))
        for panel in chapter.panels:
            put(console, [*panel_lines(example, panel, lang, width), Text("")])
    put(console, [*prose("answer", lang, width), *answers(example, lang)])
    put(console, [Text(""), *prose("outro", lang, width)])


def show(example: WorkedExample, steps: Sequence[Step], console: Console) -> None:
    """Single steps: every sentence, every head."""
    width = page_width(console)
    for step in steps:
        heads = example.config.heads if "head" in step.axes else 1
        put(console, head_lines([step], width))
        if step.axes and step.axes[0] == "sentence" and step.kind != "given":
            for s in range(step.shape[0]):
                drawn: list[Block] = [block for h in range(heads) for block in blocks(example, step, s, h)]
                put(console, beside(drawn))
        else:
            put(console, beside(blocks(example, step)))
        put(console, [*sum_lines(example, [step.name], width), Text("")])
