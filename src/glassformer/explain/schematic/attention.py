"""One attention, written out: three projections, the heads, what each of them computes, and how they are merged."""

from __future__ import annotations

from itertools import pairwise

from glassformer.explain.schematic.canvas import Area, Canvas
from glassformer.explain.schematic.passing import Pass
from glassformer.explain.schematic.words import SAY, TITLES, Role

COLUMNS = (Area(16, 0, 124, 0), Area(152, 0, 124, 0), Area(288, 0, 124, 0))
LETTER: tuple[Role, ...] = ("query", "key", "value")
DOWN = 116  # where the scores run down
PILL, ROW, GAP = 44, 46, 18
STEPS: tuple[tuple[str, Role], ...] = (
    ("products", "step"), ("scores", "step"), ("masked", "mask"), ("pattern", "pattern"),
)  # fmt: skip


def wire(column: Area) -> float:
    """Where a column's wires run: beside the names of frames."""
    return column.right - 24


def draw_attention(found: Pass, language: str) -> Canvas:
    """Cross-attention, where queries and keys have axes of their own; in self-attention both are the same."""
    canvas = Canvas(TITLES["attention"], language)
    name = "decoder.blocks.0.cross_attention"
    x = canvas.box("ends", "in", Area(16, 8, 124, PILL), "x", shape=found.taken(name), centred=True)
    wide = Area(152, 8, 260, PILL)
    memory = canvas.box("memory", "memory", wide, SAY["memory.or"], shape=found.taken(name, 1), centred=True)

    top = memory.bottom + 22
    canvas.frame("projection", f"{name}.projection", Area(8, top, 412, 84), SAY["projection"], "projection", beside=120)
    for column, role, of, given in zip(COLUMNS, LETTER, ("in", "memory", "memory"), (x, memory, memory), strict=True):
        area = Area(column.x, top + 32, column.w, 40)
        part = f"{name}.projection.{role}"
        canvas.box(role, part, area, SAY[f"W.{role}"], centred=True)
        canvas.wire(of, part, [(wire(column), given.bottom), (wire(column), area.y)])

    start = top + 84 + 34
    y = start + 32
    for column, role in zip(COLUMNS, LETTER, strict=True):
        part, area = f"{name}.{role[0]}", Area(column.x, y, column.w, PILL)
        canvas.box(role, part, area, SAY[role], shape=found.shape(part), centred=True)
        canvas.wire(f"{name}.projection.{role}", part, [(wire(column), top + 72), (wire(column), area.y)])
    y += PILL
    bottom = y
    y += 26
    steps: list[tuple[str, Area]] = []
    for part, role in STEPS:
        area, shape = Area(16, y, 260, ROW), found.shape(f"{name}.{part}")
        scale = found.model.config.score_scale if part == "scores" else None
        words = SAY[part].say(language) if scale is None else SAY["scores.scaled"].say(language, f"{scale:g}")
        canvas.box(role, f"{name}.{part}", area, words, part, note=shape)
        steps.append((f"{name}.{part}", area))
        y += ROW + GAP
    first = steps[0][1]
    for column, role in zip(COLUMNS[:2], LETTER, strict=False):
        canvas.wire(f"{name}.{role[0]}", f"{name}.products", [(wire(column), bottom), (wire(column), first.y)])
    for (a, above), (b, below) in pairwise(steps):
        canvas.wire(a, b, [(DOWN, above.bottom), (DOWN, below.y)])
    masked = steps[2][1]
    bias = found.mask(name).bias
    assert bias is not None, "the source was padded"
    pill = Area(292, masked.y, 80, ROW)
    canvas.box("mask", "mask", pill, SAY["mask"], shape=found.letters(bias.shape), centred=True)
    canvas.wire("mask", f"{name}.masked", [(pill.x, pill.centre), (masked.right, pill.centre)], "mask")

    context = Area(16, y, 396, ROW)
    canvas.box("heads", f"{name}.context", context, SAY["context"], "context", note=found.shape(f"{name}.context"))
    canvas.wire(f"{name}.pattern", f"{name}.context", [(DOWN, steps[-1][1].bottom), (DOWN, context.y)])
    canvas.wire(f"{name}.v", f"{name}.context", [(wire(COLUMNS[2]), bottom), (wire(COLUMNS[2]), context.y)])
    end = context.bottom + 12
    canvas.frame(
        "heads",
        f"{name}.heads",
        Area(8, start, 412, end - start),
        SAY["heads"],
        canvas.said(SAY["heads.apart"]),
        copies=2,
        beside=120,
    )

    merged = Area(16, end + 24, 396, 36)
    canvas.box("merged", f"{name}.merged", merged, SAY["merged"], "merged", shape=found.taken(f"{name}.output"))
    canvas.wire(f"{name}.context", f"{name}.merged", [(DOWN, context.bottom), (DOWN, merged.y)])
    output = Area(16, merged.bottom + GAP, 396, 36)
    canvas.box("linear", f"{name}.output", output, SAY["W.output"], "output", found.shape(f"{name}.output"))
    canvas.wire(f"{name}.merged", f"{name}.output", [(DOWN, merged.bottom), (DOWN, output.y)])
    done = Area(16, output.bottom + GAP + 2, 396, 32)
    canvas.box("ends", "out", done, SAY["to.sum"], shape=found.shape(name))
    canvas.wire(f"{name}.output", "out", [(DOWN, output.bottom), (DOWN, done.y)])
    return canvas
