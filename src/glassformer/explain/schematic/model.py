"""The whole model, two stacks side by side; and one layer of it.

In the whole model, memory runs between the stacks, and the head lies below the decoder. In a layer, the stream runs
down on the left; each sublayer branches off it and is added to it again.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from torch import nn

from glassformer.common.strings import Text
from glassformer.explain.schematic.canvas import SAY, SUM, TITLES, WIDTH, Area, Canvas, Point, Role
from glassformer.explain.schematic.forward_pass import ForwardPass

SUBLAYERS: tuple[Role, ...] = ("self_attention", "cross_attention", "feed_forward")
# Of the whole model:
COLUMN, MIDDLE, START = 200, 220, 8.0  # the width of a stack; where memory runs; where a column begins
PILL, THIN, TALL, SPACE = 44, 26, 44, 16
# Of a layer:
STREAM, LEFT, RIGHT, MEMORY = 40, 80, 400, 424  # where the stream runs, where boxes begin and end, where memory runs
DOWN = 300  # where a branch runs from box to box, beside the names of frames
TOP, ROW, GAP, HEAD, APART = 12, 32, 18, 32, 12
WIDE = RIGHT - LEFT


class Column:
    """A stack, its stream on the outer side, so that memory comes in from the middle."""

    def __init__(self, canvas: Canvas, run: ForwardPass, stack: str) -> None:
        self.canvas, self.run, self.stack = canvas, run, stack
        self.left = stack == "encoder"
        self.x = 8 if self.left else WIDTH - 8 - COLUMN
        self.stream = self.x + (26 if self.left else COLUMN - 26)
        self.near = self.stream + (SUM if self.left else -SUM)  # the side of a sum where a branch comes back
        self.indent = 52 if self.left else 14  # of the names of frames, beside the stream
        self.y = START
        self.of, self.at = "", START

    def branch(self, tall: float) -> Area:
        """Beside the stream."""
        return Area(self.x + self.indent, self.y, COLUMN - 66, tall)

    def across(self, tall: float, inset: float = 14) -> Area:
        """On the stream."""
        return Area(self.x + inset, self.y, COLUMN - 2 * inset, tall)

    def edge(self, area: Area) -> float:
        """The side of a box that the stream is on."""
        return area.x if self.left else area.right

    def flow(self, to: str, y: float) -> None:
        self.canvas.wire(self.of, to, [(self.stream, self.at), (self.stream, y)], "stream")
        self.of = to

    def pass_through(self, role: Role, part: str, area: Area, words: Text | str, note: Text | str = "") -> None:
        """The stream goes into a box and comes out below it."""
        self.flow(part, area.y)
        self.canvas.box(role, part, area, words, note=note, centred=True)
        self.at, self.y = area.bottom, area.bottom + SPACE

    def add(self, part: str, y: float, of: str, area: Area) -> None:
        """What comes from a box beside the stream is added to it."""
        self.flow(part, y - SUM)
        self.canvas.wire(of, part, [(self.edge(area), y), (self.near, y)])
        self.canvas.sum(part, (self.stream, y))
        self.at = y + SUM

    def draw(self, ids: str) -> None:
        canvas, stack, run = self.canvas, self.stack, self.run
        area = self.across(PILL, 0)
        canvas.box("ends", ids, area, SAY[ids], shape=run.input_shape(stack), centred=True)
        self.of, self.at = ids, area.bottom
        start = area.bottom + 20
        self.y = start + 32
        self.embedding()
        for part in ("rotary", "distance"):
            if f"{stack}.{part}" in run.inputs:
                area = canvas.box("positions", f"{stack}.{part}", self.branch(THIN), SAY[part], centred=True)
                self.y = area.bottom + SPACE
        self.blocks()
        norm = f"{stack}.norm"
        if not isinstance(run.model.get_submodule(norm), nn.Identity):
            self.pass_through("norm", norm, self.across(THIN), SAY[run.model.config.norm_type])
        canvas.frame("stack", stack, Area(self.x, start, COLUMN, self.y - 4 - start), SAY[stack], stack, self.indent)

    def embedding(self) -> None:
        canvas, run, name = self.canvas, self.run, f"{self.stack}.embedding"
        top, config = self.y, run.model.config
        self.y += 30
        words = SAY["tokens.scaled" if config.embedding_scale else "tokens"]
        self.pass_through("tokens", f"{name}.tokens", self.across(THIN + 4, 14), words)
        drawn_as: dict[str, Role] = {"segments": "tokens", "positions": "positions"}
        for part, role in drawn_as.items():
            if f"{name}.{part}" in run.inputs:
                area = self.branch(THIN + 4)
                canvas.box(role, f"{name}.{part}", area, SAY[part], centred=True)
                self.add(f"{name}.{part}+", area.centre, f"{name}.{part}", area)
                self.y = area.bottom + SPACE
        if not isinstance(run.model.get_submodule(f"{name}.norm"), nn.Identity):
            self.pass_through("norm", f"{name}.norm", self.across(THIN, 14), SAY[config.norm_type])
        self.pass_through("dropout", f"{name}.dropout", self.across(THIN - 4, 14), "dropout")
        area = Area(self.x + 6, top, COLUMN - 12, self.y - 6 - top)
        canvas.frame("embedding", name, area, SAY["embedding"], indent=self.indent - 6)
        self.y += 10

    def blocks(self) -> None:
        canvas, run, block = self.canvas, self.run, f"{self.stack}.blocks.0"
        top = self.y
        self.y += 32
        for sublayer in SUBLAYERS:
            if f"{block}.{sublayer}" in run.inputs:
                self.sublayer(f"{block}.{sublayer}", sublayer)
        area = Area(self.x + 6, top, COLUMN - 12, self.y - 4 - top)
        canvas.frame("block", block, area, f"{canvas.say(SAY['layer.short'])} × N", indent=self.indent - 6)
        canvas.letters += "N"
        self.y += 12

    def sublayer(self, name: str, role: Role) -> None:
        canvas, run = self.canvas, self.run
        norm, plus, first = f"{name}_residual.norm", f"{name}_residual.+", run.is_pre_norm(f"{name}_residual")
        kind, of, enters = SAY[run.model.config.norm_type], self.of, name
        if first:
            area = self.branch(THIN)
            canvas.box("norm", norm, area, kind, centred=True)
            self.y = area.bottom + 14
            enters = norm
        box = self.branch(34 if first and role == "feed_forward" else TALL)
        note: Text | str = ""
        if role != "feed_forward":
            note = SAY["short.causal" if run.causal(name) else "short.padding"]
        canvas.box(role, name, box, SAY[role], note=note, centred=True)
        entry = area if first else box
        branch = entry.centre if first else box.y + 9
        canvas.wire(of, enters, [(self.stream, branch), (self.edge(entry), branch)])
        if first:
            canvas.wire(norm, name, [(box.middle, entry.bottom), (box.middle, box.y)])
        self.add(plus, box.centre if first else box.bottom - 10, name, box)
        self.y = box.bottom + SPACE + 2
        if not first:
            self.pass_through("norm", norm, self.across(THIN), kind)
            self.y += 2
        if role == "cross_attention":
            self.crossed = box


def draw_model(run: ForwardPass, language: str) -> Canvas:
    canvas = Canvas(TITLES["model"], language)
    encoder, decoder = (Column(canvas, run, stack) for stack in ("encoder", "decoder"))
    encoder.draw("source")
    decoder.draw("target")
    memory = Area(encoder.x, encoder.y + 16, COLUMN, PILL)
    canvas.box("memory", "memory", memory, SAY["memory"], shape=run.output_shape("encoder"), centred=True)
    encoder.flow("memory", memory.y)
    way: list[Point] = [(memory.right, memory.centre), (MIDDLE, memory.centre), (MIDDLE, decoder.crossed.centre)]
    way.append((decoder.crossed.x, decoder.crossed.centre))
    canvas.wire("memory", "decoder.blocks.0.cross_attention", way, "memory")
    canvas.note((memory.middle, memory.bottom + 18), SAY["memory.every"], anchor="middle")
    decoder.y += 16
    tied = SAY["tied"] if run.model.config.tied else ""
    decoder.pass_through("head", "head", decoder.across(TALL, 0), SAY["head"], note=tied)
    decoder.y += 4
    logits = decoder.across(PILL, 0)
    canvas.box("ends", "logits", logits, SAY["logits"], shape=run.output_shape("head"), centred=True)
    decoder.flow("logits", logits.y)
    return canvas


class Step(NamedTuple):
    """What a branch passes: the box that it enters, the box that it leaves, and where all of it ends."""

    enters: str
    entry: Area
    leaves: str
    exit: Area
    bottom: float


def draw_layer(run: ForwardPass, stack: str, language: str) -> Canvas:
    canvas = Canvas(TITLES[f"{stack}-layer"], language)
    block = f"{stack}.blocks.0"
    canvas.box("ends", "in", Area(12, TOP, 186, ROW), SAY["in"], shape=run.input_shape(block))
    if f"{block}.cross_attention" in run.inputs:
        canvas.box("memory", "memory", Area(250, TOP, 182, ROW), SAY["memory"], shape=run.input_shape(block, 1))
    start = TOP + ROW + 22
    y, of, at = float(start + HEAD), "in", (float(STREAM), float(TOP + ROW))
    for sublayer in SUBLAYERS:
        if f"{block}.{sublayer}" in run.inputs:
            y, of, at = Sublayer(canvas, run, block, sublayer).draw(y, of, at)
            y += APART
    canvas.frame("block", block, Area(4, start, 432, y - start), SAY[f"{stack}.layer"], block, LEFT - 4)
    canvas.box("ends", "out", Area(12, y + 24, 300, ROW), SAY["out"], shape=run.output_shape(block))
    canvas.wire(of, "out", [at, (STREAM, y + 24)], "stream")
    return canvas


class Sublayer:
    """A residual with the sublayer that it wraps; Pre-LN or Post-LN, as the pass had it."""

    def __init__(self, canvas: Canvas, run: ForwardPass, block: str, sublayer: Role) -> None:
        self.canvas, self.run, self.sublayer = canvas, run, sublayer
        self.name = f"{block}.{sublayer}"
        self.residual = f"{self.name}_residual"
        self.norm = f"{self.residual}.norm"

    def draw(self, top: float, of: str, start: Point) -> tuple[float, str, Point]:
        """`of` and `start`: the part that the stream comes from, and where; returns the bottom, and the next ones."""
        canvas, first = self.canvas, self.run.is_pre_norm(self.residual)
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
        kind = SAY[self.run.model.config.norm_type]
        self.canvas.box("norm", self.norm, area, kind, "norm", self.run.output_shape(self.norm))
        return Step(self.norm, area, self.norm, area, area.bottom)

    def body(self, y: float) -> Step:
        if self.sublayer == "feed_forward":
            return self.feed_forward(y)
        area, shape = Area(LEFT, y, WIDE, 54), self.run.output_shape(self.name)
        note = SAY["mask.causal" if self.run.causal(self.name) else "mask.padding"]
        self.canvas.box(self.sublayer, self.name, area, SAY[self.sublayer], self.sublayer, shape, note)
        if self.sublayer == "cross_attention":
            way: list[Point] = [(MEMORY, TOP + ROW), (MEMORY, area.centre), (RIGHT, area.centre)]
            self.canvas.wire("memory", self.name, way, "memory")
        return Step(self.name, area, self.name, area, area.bottom)

    def feed_forward(self, y: float) -> Step:
        """Drawn with its inside, which is small."""
        canvas, run, name, config = self.canvas, self.run, self.name, self.run.model.config
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
            shape = "" if role == "dropout" else run.output_shape(f"{name}.{part}")
            area = Area(LEFT + 12, y, WIDE - 24, row)
            areas.append(canvas.box(role, f"{name}.{part}", area, words, part, shape))
            y += row + GAP - 2
        for (one, other), (above, below) in zip(pairwise(rows), pairwise(areas), strict=True):
            canvas.wire(f"{name}.{one[1]}", f"{name}.{other[1]}", [(DOWN, above.bottom), (DOWN, below.y)])
        tall = areas[-1].bottom + 12 - top
        canvas.frame("feed_forward", name, Area(LEFT, top, WIDE, tall), SAY["feed_forward"], "feed_forward")
        return Step(f"{name}.up", areas[0], f"{name}.down", areas[-1], top + tall)
