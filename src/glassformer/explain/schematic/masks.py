"""Where masks act: the three attentions of the model, each with what its queries may see, as the pass had it."""

from __future__ import annotations

from itertools import pairwise

from glassformer.explain.schematic.canvas import Area, Canvas
from glassformer.explain.schematic.passing import PADDING, SOURCE, Pass
from glassformer.explain.schematic.words import SAY, TITLES, Role

CELL, TRUNK, LEFT, RIGHT = 17, 20, 36, 432
ATTENTIONS = (("encoder", "self_attention"), ("decoder", "self_attention"), ("decoder", "cross_attention"))


def draw_masks(found: Pass, language: str) -> Canvas:
    canvas = Canvas(TITLES["masks"], language)
    source = Area(8, 8, 264, 44)
    shape = found.letters(found.real.shape)
    canvas.box("mask", "src_mask", source, SAY["src_mask"], shape=shape, note="src_mask")
    y = source.bottom + 22
    for stack, attention in ATTENTIONS:
        y = plate(canvas, found, f"{stack}.blocks.0.{attention}", source, y) + 16
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


def plate(canvas: Canvas, found: Pass, name: str, source: Area, y: float) -> float:
    """One attention: which it is, which mask it gets, and the mask; gives where the plate ends."""
    stack = name.split(".")[0]
    role: Role = "cross_attention" if name.endswith("cross_attention") else "self_attention"
    seen = found.seen(name)
    rows, columns = seen.shape
    tall = 44 + CELL * rows + 26
    area = Area(LEFT, y, RIGHT - LEFT, tall)
    causal, bias = found.causal(name), found.mask(name).bias
    canvas.frame(role, name, area, SAY[role], stack)
    kind = "causal" if causal else "padding"
    shape = found.letters(bias.shape if bias is not None else seen.shape)
    canvas.letters += shape
    at = y + 48
    for line in (canvas.said(SAY[f"short.{kind}"]), shape, *canvas.said(SAY[f"why.{kind}"]).split("\n")):
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
            canvas.picture(f'<path class="{look} {stack}" d="{path}"/>')
    keys, queries = ("T" if causal else "S"), found.letters(seen.shape)[1]
    canvas.note((left, y + 32), canvas.said(SAY["keys.axis"]).format(keys))
    canvas.note((left - 8, top + 13), canvas.said(SAY["queries.axis"]).format(queries), anchor="end")
    if columns == SOURCE:
        canvas.note((RIGHT - 14 - CELL * PADDING / 2, top + CELL * rows + 15), SAY["padding"], anchor="middle")
    if not causal:
        canvas.wire("src_mask", name, [(TRUNK, source.bottom), (TRUNK, area.y + 21), (LEFT, area.y + 21)], "mask")
    return area.bottom
