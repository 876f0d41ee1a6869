"""The whole model: two stacks side by side, the encoder's memory between them, the head below the decoder."""

from __future__ import annotations

from torch import nn

from glassformer.common.strings import Text
from glassformer.explain.schematic.canvas import SUM, WIDTH, Area, Canvas, Point
from glassformer.explain.schematic.layer import SUBLAYERS
from glassformer.explain.schematic.passing import Pass
from glassformer.explain.schematic.words import SAY, TITLES, Role

COLUMN, MIDDLE, TOP = 200, 220, 8  # the width of a stack, where memory runs, where all begins
PILL, THIN, TALL, GAP = 44, 26, 44, 16


class Column:
    """A stack, its stream on the outer side, so that memory comes in from the middle."""

    def __init__(self, canvas: Canvas, found: Pass, stack: str) -> None:
        self.canvas, self.found, self.stack = canvas, found, stack
        self.left = stack == "encoder"
        self.x = 8 if self.left else WIDTH - 8 - COLUMN
        self.stream = self.x + (26 if self.left else COLUMN - 26)
        self.near = self.stream + (SUM if self.left else -SUM)  # the side of a sum where a branch comes back
        self.indent = 52 if self.left else 14  # of the names of frames, beside the stream
        self.y = float(TOP)
        self.of, self.at = "", float(TOP)

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

    def pass_through(self, role: Role, part: str, area: Area, words: Text | str, note: Text | str = "") -> Area:
        """The stream goes into a box and comes out below it."""
        self.flow(part, area.y)
        self.canvas.box(role, part, area, words, note=note, centred=True)
        self.at, self.y = area.bottom, area.bottom + GAP
        return area

    def add(self, part: str, y: float, of: str, area: Area) -> None:
        """What comes from a box beside the stream is added to it."""
        self.flow(part, y - SUM)
        self.canvas.wire(of, part, [(self.edge(area), y), (self.near, y)])
        self.canvas.sum(part, (self.stream, y))
        self.at = y + SUM

    def draw(self, ids: str) -> None:
        canvas, stack, found = self.canvas, self.stack, self.found
        area = self.across(PILL, 0)
        canvas.box("ends", ids, area, SAY[ids], shape=found.taken(stack), centred=True)
        self.of, self.at = ids, area.bottom
        start = area.bottom + 20
        self.y = start + 32
        self.embedding()
        for part in ("rotary", "distance"):
            if f"{stack}.{part}" in found.calls:
                area = canvas.box("positions", f"{stack}.{part}", self.branch(THIN), SAY[part], centred=True)
                self.y = area.bottom + GAP
        self.blocks()
        norm = f"{stack}.norm"
        if not isinstance(found.model.get_submodule(norm), nn.Identity):
            self.pass_through("norm", norm, self.across(THIN), SAY[found.model.config.norm_type])
        canvas.frame("stack", stack, Area(self.x, start, COLUMN, self.y - 4 - start), SAY[stack], stack, self.indent)

    def embedding(self) -> None:
        canvas, found, name = self.canvas, self.found, f"{self.stack}.embedding"
        top, config = self.y, found.model.config
        self.y += 30
        words = SAY["tokens.scaled" if config.embedding_scale else "tokens"]
        self.pass_through("tokens", f"{name}.tokens", self.across(THIN + 4, 14), words)
        drawn_as: dict[str, Role] = {"segments": "tokens", "positions": "positions"}
        for part, role in drawn_as.items():
            if f"{name}.{part}" in found.calls:
                area = self.branch(THIN + 4)
                canvas.box(role, f"{name}.{part}", area, SAY[part], centred=True)
                self.add(f"{name}.{part}+", area.centre, f"{name}.{part}", area)
                self.y = area.bottom + GAP
        if not isinstance(found.model.get_submodule(f"{name}.norm"), nn.Identity):
            self.pass_through("norm", f"{name}.norm", self.across(THIN, 14), SAY[config.norm_type])
        self.pass_through("dropout", f"{name}.dropout", self.across(THIN - 4, 14), "dropout")
        canvas.frame(
            "embedding",
            name,
            Area(self.x + 6, top, COLUMN - 12, self.y - 6 - top),
            SAY["embedding"],
            indent=self.indent - 6,
        )
        self.y += 10

    def blocks(self) -> None:
        canvas, found, block = self.canvas, self.found, f"{self.stack}.blocks.0"
        top = self.y
        self.y += 32
        for sublayer in SUBLAYERS:
            if f"{block}.{sublayer}" in found.calls:
                self.sublayer(f"{block}.{sublayer}", sublayer)
        area = Area(self.x + 6, top, COLUMN - 12, self.y - 4 - top)
        canvas.frame("block", block, area, f"{canvas.said(SAY['layer.short'])} × N", indent=self.indent - 6)
        canvas.letters += "N"
        self.y += 12

    def sublayer(self, name: str, role: Role) -> None:
        canvas, found = self.canvas, self.found
        norm, plus, first = f"{name}_residual.norm", f"{name}_residual.+", found.normalised_first(f"{name}_residual")
        kind, of, enters = SAY[found.model.config.norm_type], self.of, name
        if first:
            area = self.branch(THIN)
            canvas.box("norm", norm, area, kind, centred=True)
            self.y = area.bottom + 14
            enters = norm
        box = self.branch(34 if first and role == "feed_forward" else TALL)
        note: Text | str = ""
        if role != "feed_forward":
            note = SAY["short.causal" if found.causal(name) else "short.padding"]
        canvas.box(role, name, box, SAY[role], note=note, centred=True)
        entry = area if first else box
        branch = entry.centre if first else box.y + 9
        canvas.wire(of, enters, [(self.stream, branch), (self.edge(entry), branch)])
        if first:
            canvas.wire(norm, name, [(box.middle, entry.bottom), (box.middle, box.y)])
        self.add(plus, box.centre if first else box.bottom - 10, name, box)
        self.y = box.bottom + GAP + 2
        if not first:
            self.pass_through("norm", norm, self.across(THIN), kind)
            self.y += 2
        if role == "cross_attention":
            self.crossed = box


def draw_model(found: Pass, language: str) -> Canvas:
    canvas = Canvas(TITLES["model"], language)
    encoder, decoder = (Column(canvas, found, stack) for stack in ("encoder", "decoder"))
    encoder.draw("source")
    decoder.draw("target")
    memory = Area(encoder.x, encoder.y + 16, COLUMN, PILL)
    canvas.box("memory", "memory", memory, SAY["memory"], shape=found.shape("encoder"), centred=True)
    encoder.flow("memory", memory.y)
    way: list[Point] = [(memory.right, memory.centre), (MIDDLE, memory.centre), (MIDDLE, decoder.crossed.centre)]
    way.append((decoder.crossed.x, decoder.crossed.centre))
    canvas.wire("memory", "decoder.blocks.0.cross_attention", way, "memory")
    canvas.note((memory.middle, memory.bottom + 18), SAY["memory.every"], anchor="middle")
    decoder.y += 16
    tied = SAY["tied"] if found.model.config.tied else ""
    decoder.pass_through("head", "head", decoder.across(TALL, 0), SAY["head"], note=tied)
    decoder.y += 4
    logits = decoder.across(PILL, 0)
    canvas.box("ends", "logits", logits, SAY["logits"], shape=found.shape("head"), centred=True)
    decoder.flow("logits", logits.y)
    return canvas
