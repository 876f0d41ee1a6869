"""One layer: the stream runs down on the left, each sublayer branches off it and is added to it again."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from glassformer.common.strings import Text
from glassformer.explain.schematic.canvas import SUM, Area, Canvas, Point
from glassformer.explain.schematic.passing import Pass
from glassformer.explain.schematic.words import SAY, TITLES, Role

STREAM, LEFT, RIGHT, MEMORY = 40, 80, 400, 424  # where the stream runs, where boxes begin and end, where memory runs
DOWN = 300  # where a branch runs from box to box, beside the names of frames
TOP, ROW, GAP, HEAD, APART = 12, 32, 18, 32, 12
WIDE = RIGHT - LEFT
SUBLAYERS: tuple[Role, ...] = ("self_attention", "cross_attention", "feed_forward")


class Step(NamedTuple):
    """What a branch passes: the box that it enters, the box that it leaves, and where all of it ends."""

    enters: str
    entry: Area
    leaves: str
    exit: Area
    bottom: float


def draw_layer(found: Pass, stack: str, language: str) -> Canvas:
    canvas = Canvas(TITLES[f"{stack}-layer"], language)
    block = f"{stack}.blocks.0"
    canvas.box("ends", "in", Area(12, TOP, 186, ROW), SAY["in"], shape=found.taken(block))
    if f"{block}.cross_attention" in found.calls:
        canvas.box("memory", "memory", Area(250, TOP, 182, ROW), SAY["memory"], shape=found.taken(block, 1))
    start = TOP + ROW + 22
    y, of, at = float(start + HEAD), "in", (float(STREAM), float(TOP + ROW))
    for sublayer in SUBLAYERS:
        if f"{block}.{sublayer}" in found.calls:
            y, of, at = Sublayer(canvas, found, block, sublayer).draw(y, of, at)
            y += APART
    canvas.frame("block", block, Area(4, start, 432, y - start), SAY[f"{stack}.layer"], block, LEFT - 4)
    canvas.box("ends", "out", Area(12, y + 24, 300, ROW), SAY["out"], shape=found.shape(block))
    canvas.wire(of, "out", [at, (STREAM, y + 24)], "stream")
    return canvas


class Sublayer:
    """A residual with what it wraps; pre or post as the pass had it."""

    def __init__(self, canvas: Canvas, found: Pass, block: str, sublayer: Role) -> None:
        self.canvas, self.found, self.sublayer = canvas, found, sublayer
        self.name = f"{block}.{sublayer}"
        self.residual = f"{self.name}_residual"
        self.norm = f"{self.residual}.norm"

    def draw(self, top: float, of: str, start: Point) -> tuple[float, str, Point]:
        """`of`: what the stream comes from, and where; gives the same of the next sublayer, below this one."""
        canvas, first = self.canvas, self.found.normalised_first(self.residual)
        plus, dropout = f"{self.residual}.+", f"{self.residual}.dropout"
        steps = [self.normed(Area(LEFT, top + HEAD, WIDE, ROW))] if first else []
        steps.append(self.body(steps[-1].bottom + GAP if first else top + HEAD))
        area = canvas.box("dropout", dropout, Area(LEFT, steps[-1].bottom + GAP, WIDE, ROW - 6), "", "dropout")
        steps.append(Step(dropout, area, dropout, area, area.bottom))
        branch = steps[0].entry
        canvas.wire(of, steps[0].enters, [(STREAM, branch.centre), (branch.x, branch.centre)])
        for one, other in pairwise(steps):
            canvas.wire(one.leaves, other.enters, [(DOWN, one.exit.bottom), (DOWN, other.entry.y)])
        canvas.wire(of, plus, [start, (STREAM, area.centre - SUM)], "stream")
        canvas.wire(dropout, plus, [(LEFT, area.centre), (STREAM + SUM, area.centre)])
        canvas.sum(plus, (STREAM, area.centre))
        end, after, at = area.bottom, plus, (float(STREAM), area.centre + SUM)
        if not first:
            norm = self.normed(Area(20, end + GAP + 2, RIGHT - 20, ROW))
            canvas.wire(plus, self.norm, [at, (STREAM, norm.entry.y)], "stream")
            end, after, at = norm.bottom, self.norm, (float(STREAM), norm.bottom)
        end += APART
        name = self.residual.rpartition(".")[2]
        canvas.frame("residual", self.residual, Area(12, top, RIGHT - 4, end - top), "", name, LEFT - 12)
        return end, after, at

    def normed(self, area: Area) -> Step:
        kind = SAY[self.found.model.config.norm_type]
        self.canvas.box("norm", self.norm, area, kind, "norm", self.found.shape(self.norm))
        return Step(self.norm, area, self.norm, area, area.bottom)

    def body(self, y: float) -> Step:
        if self.sublayer == "feed_forward":
            return self.feed_forward(y)
        area, shape = Area(LEFT, y, WIDE, 54), self.found.shape(self.name)
        note = SAY["mask.causal" if self.found.causal(self.name) else "mask.padding"]
        self.canvas.box(self.sublayer, self.name, area, SAY[self.sublayer], self.sublayer, shape, note)
        if self.sublayer == "cross_attention":
            way: list[Point] = [(MEMORY, TOP + ROW), (MEMORY, area.centre), (RIGHT, area.centre)]
            self.canvas.wire("memory", self.name, way, "memory")
        return Step(self.name, area, self.name, area, area.bottom)

    def feed_forward(self, y: float) -> Step:
        """Opened, for it is small enough."""
        canvas, found, name, config = self.canvas, self.found, self.name, self.found.model.config
        curve = config.activation.replace("_", " ")
        rows: list[tuple[Role, str, Text | str]] = [
            ("linear", "up", SAY["up"]),
            ("activation", "hidden", SAY["gated"].say(canvas.language, curve) if config.gated else curve),
            ("dropout", "dropout", ""),
            ("linear", "down", SAY["down"]),
        ]
        top, y = y, y + HEAD
        areas: list[Area] = []
        for role, part, words in rows:
            row = ROW - 6 if role == "dropout" else ROW - 2
            shape = "" if role == "dropout" else found.shape(f"{name}.{part}")
            area = Area(LEFT + 12, y, WIDE - 24, row)
            areas.append(canvas.box(role, f"{name}.{part}", area, words, part, shape))
            y += row + GAP - 2
        for (one, other), (above, below) in zip(pairwise(rows), pairwise(areas), strict=True):
            canvas.wire(f"{name}.{one[1]}", f"{name}.{other[1]}", [(DOWN, above.bottom), (DOWN, below.y)])
        tall = areas[-1].bottom + 12 - top
        canvas.frame("feed_forward", name, Area(LEFT, top, WIDE, tall), SAY["feed_forward"], "feed_forward")
        return Step(f"{name}.up", areas[0], f"{name}.down", areas[-1], top + tall)
