"""One attention, written out: three projections, the heads, what each of them computes, how they are merged; and the
masks of the model's three attentions."""

from __future__ import annotations

from itertools import pairwise

from glassformer.explain.schematic.canvas import SAY, TITLES, Area, Canvas, Role
from glassformer.explain.schematic.forward_pass import PADDING, SOURCE, ForwardPass

COLUMNS = (Area(16, 0, 124, 0), Area(152, 0, 124, 0), Area(288, 0, 124, 0))
LETTER: tuple[Role, ...] = ("query", "key", "value")
DOWN = 116  # where the scores run down
PILL, ROW, GAP = 44, 46, 18
STEPS: tuple[tuple[str, Role], ...] = (
    ("products", "step"), ("scores", "step"), ("masked", "mask"), ("pattern", "pattern"),
)  # fmt: skip
# Of the masks:
CELL, TRUNK, LEFT, RIGHT = 17, 20, 36, 432
ATTENTIONS = (("encoder", "self_attention"), ("decoder", "self_attention"), ("decoder", "cross_attention"))


def wire(column: Area) -> float:
    """Where a column's wires run: beside the names of frames."""
    return column.right - 24


def draw_attention(run: ForwardPass, language: str) -> Canvas:
    """Cross-attention, where queries and keys have axes of their own; in self-attention both are the same."""
    canvas = Canvas(TITLES["attention"], language)
    name = "decoder.blocks.0.cross_attention"
    x = canvas.box("ends", "in", Area(16, 8, 124, PILL), "x", shape=run.input_shape(name), centred=True)
    wide = Area(152, 8, 260, PILL)
    memory = canvas.box("memory", "memory", wide, SAY["memory.or"], shape=run.input_shape(name, 1), centred=True)

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
        canvas.box(role, part, area, SAY[role], shape=run.output_shape(part), centred=True)
        canvas.wire(f"{name}.projection.{role}", part, [(wire(column), top + 72), (wire(column), area.y)])
    y += PILL
    bottom = y
    y += 26
    steps: list[tuple[str, Area]] = []
    for part, role in STEPS:
        area, shape = Area(16, y, 260, ROW), run.output_shape(f"{name}.{part}")
        scale = run.model.config.score_scale if part == "scores" else None
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
    bias = run.masks[name].bias
    assert bias is not None, "the source was padded"
    pill = Area(292, masked.y, 80, ROW)
    canvas.box("mask", "mask", pill, SAY["mask"], shape=run.letters(bias.shape), centred=True)
    canvas.wire("mask", f"{name}.masked", [(pill.x, pill.centre), (masked.right, pill.centre)], "mask")

    context = Area(16, y, 396, ROW)
    canvas.box("heads", f"{name}.context", context, SAY["context"], "context", note=run.output_shape(f"{name}.context"))
    canvas.wire(f"{name}.pattern", f"{name}.context", [(DOWN, steps[-1][1].bottom), (DOWN, context.y)])
    canvas.wire(f"{name}.v", f"{name}.context", [(wire(COLUMNS[2]), bottom), (wire(COLUMNS[2]), context.y)])
    end = context.bottom + 12
    heads, apart = Area(8, start, 412, end - start), canvas.say(SAY["heads.apart"])
    canvas.frame("heads", f"{name}.heads", heads, SAY["heads"], apart, copies=2, beside=120)

    merged = Area(16, end + 24, 396, 36)
    canvas.box("merged", f"{name}.merged", merged, SAY["merged"], "merged", shape=run.input_shape(f"{name}.output"))
    canvas.wire(f"{name}.context", f"{name}.merged", [(DOWN, context.bottom), (DOWN, merged.y)])
    output = Area(16, merged.bottom + GAP, 396, 36)
    canvas.box("linear", f"{name}.output", output, SAY["W.output"], "output", run.output_shape(f"{name}.output"))
    canvas.wire(f"{name}.merged", f"{name}.output", [(DOWN, merged.bottom), (DOWN, output.y)])
    done = Area(16, output.bottom + GAP + 2, 396, 32)
    canvas.box("ends", "out", done, SAY["to.sum"], shape=run.output_shape(name))
    canvas.wire(f"{name}.output", "out", [(DOWN, output.bottom), (DOWN, done.y)])
    return canvas


def draw_masks(run: ForwardPass, language: str) -> Canvas:
    canvas = Canvas(TITLES["masks"], language)
    source = Area(8, 8, 264, 44)
    shape = run.letters(run.real.shape)
    canvas.box("mask", "src_mask", source, SAY["src_mask"], shape=shape, note="src_mask")
    y = source.bottom + 22
    for stack, attention in ATTENTIONS:
        y = draw_mask(canvas, run, f"{stack}.blocks.0.{attention}", source, y) + 16
    steps: tuple[tuple[str, str, Role], ...] = (
        ("scores", "mask.scores", "step"), ("masked", "mask.masked", "mask"), ("pattern", "mask.pattern", "pattern"),
    )  # fmt: skip
    canvas.note((8, y + 12), SAY["mask.within"])
    within = [(part, Area(8 + 148 * i, y + 22, 128, 48), role, words) for i, (part, words, role) in enumerate(steps)]
    for part, area, role, words in within:
        canvas.box(role, part, area, SAY[words], note=part, centred=True)
    for (a, left, *_), (b, right, *_) in pairwise(within):
        canvas.wire(a, b, [(left.right, left.centre), (right.x, right.centre)])
    return canvas


def draw_mask(canvas: Canvas, run: ForwardPass, name: str, source: Area, y: float) -> float:
    """One attention: which it is, which mask it gets, and the mask; returns where its frame ends."""
    stack = name.split(".")[0]
    role: Role = "cross_attention" if name.endswith("cross_attention") else "self_attention"
    seen = run.visible(name)
    rows, columns = seen.shape
    tall = 44 + CELL * rows + 26
    area = Area(LEFT, y, RIGHT - LEFT, tall)
    causal, bias = run.causal(name), run.masks[name].bias
    canvas.frame(role, name, area, SAY[role], stack)
    kind = "causal" if causal else "padding"
    shape = run.letters(bias.shape if bias is not None else seen.shape)
    canvas.letters += shape
    at = y + 48
    for line in (canvas.say(SAY[f"short.{kind}"]), shape, *canvas.say(SAY[f"why.{kind}"]).split("\n")):
        canvas.note((LEFT + 12, at), line, "shape" if line is shape else "note")
        at += 19
    left, top = RIGHT - 14 - CELL * columns, y + 40
    for truth, look in ((True, "seen"), (False, "hidden")):
        path = "".join(
            f"M{left + CELL * j + 1:g} {top + CELL * i + 1:g}h{CELL - 2}v{CELL - 2}h-{CELL - 2}z"
            for i in range(rows)
            for j in range(columns)
            if bool(seen[i, j]) is truth
        )
        if path:
            canvas.parts.append(f'<path class="{look} {stack}" d="{path}"/>')
    keys, queries = ("T" if causal else "S"), run.letters(seen.shape)[1]
    canvas.note((left, y + 32), canvas.say(SAY["keys.axis"]).format(keys))
    canvas.note((left - 8, top + 13), canvas.say(SAY["queries.axis"]).format(queries), anchor="end")
    if columns == SOURCE:
        canvas.note((RIGHT - 14 - CELL * PADDING / 2, top + CELL * rows + 15), SAY["padding"], anchor="middle")
    if not causal:
        canvas.wire("src_mask", name, [(TRUNK, source.bottom), (TRUNK, area.y + 21), (LEFT, area.y + 21)], "mask")
    return area.bottom
