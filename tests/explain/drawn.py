"""A schematic read back from its SVG, and what is wrong with it beside a pass of the model that it claims to show.

Nothing of the drawing code is used here: modules, nesting, order and shapes come from hooks of this file's own on a
model of other sizes, and every sum and product is computed again.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from xml.etree import ElementTree

import torch
from torch import Tensor, nn

import glassformer as gf
from glassformer.model.attention import Attention, AttentionMask
from glassformer.model.layer import FeedForward, Residual
from glassformer.model.norm import Norm
from glassformer.model.transformer import Head

SVG = "{http://www.w3.org/2000/svg}"
LETTERS = {2: "B", 9: "S", 6: "T", 5: "H", 8: "d", 40: "D", 48: "F", 61: "V", 1: "1", 96: "2F"}
ENDS = {"in", "out", "source", "target", "logits", "memory", "mask", "src_mask", "scores", "masked", "pattern"}
ROOTS = {
    "model": "",
    "encoder-layer": "encoder.blocks.0",
    "decoder-layer": "decoder.blocks.0",
    "attention": "decoder.blocks.0.cross_attention",
}


@dataclass
class Shown:
    """A part of the drawing: where it lies, and the shapes that it says."""

    kind: str
    name: str
    x: float
    y: float
    right: float
    bottom: float
    shapes: list[str]

    def holds(self, x: float, y: float, inner: float = 0.0) -> bool:
        return self.x + inner <= x <= self.right - inner and self.y + inner <= y <= self.bottom - inner

    def holds_all(self, other: Shown) -> bool:
        return self.holds(other.x, other.y) and self.holds(other.right, other.bottom)


@dataclass
class Wire:
    of: str
    to: str
    points: list[tuple[float, float]]


def read(svg: str) -> tuple[list[Shown], list[Wire]]:
    parts, wires = [], []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        if "data-from" in group.attrib:
            line, tip = (path.attrib["d"] for path in group.iter(f"{SVG}path"))
            # A bend is its corner; the last point is where the arrow's tip points.
            corners = re.findall(r"[MQ]([-\d.]+) ([-\d.]+)", line)
            end = re.match(r"M([-\d.]+) ([-\d.]+)", tip)
            assert end is not None
            points = [(float(x), float(y)) for x, y in (*corners, end.groups())]
            wires.append(Wire(group.attrib["data-from"], group.attrib["data-to"], points))
        elif "data-part" in group.attrib:
            kind = group.attrib["class"].split()[0]
            shapes = [
                text for one in group.iter(f"{SVG}text") if re.fullmatch(r"\(.*\)", text := "".join(one.itertext()))
            ]
            if (circle := group.find(f"{SVG}circle")) is not None:
                x, y, r = (float(circle.attrib[name]) for name in ("cx", "cy", "r"))
                area = (x - r, y - r, x + r, y + r)
            else:
                rect = group.findall(f"{SVG}rect")[-1]  # copies lie below it
                x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
                area = (x, y, x + w, y + h)
            parts.append(Shown(kind, group.attrib["data-part"], *area, shapes))
    return parts, wires


class Truth:
    """What the model does: its calls in order, each within another, with what they are given and give."""

    def __init__(self, config: gf.ModelConfig) -> None:
        sizes = {"vocab_size": 61, "d_model": 40, "heads": 5, "d_ff": 48, "layers": 1, "dropout": 0.3, "max_length": 12}
        self.model = gf.EncoderDecoder(replace(config, **sizes, seed=5)).eval()
        self.order: list[str] = []
        self.within: dict[str, str] = {}
        self.given: dict[str, list[Tensor]] = {}
        self.mask: dict[str, AttentionMask] = {}
        self.gave: dict[str, Tensor] = {}
        active: list[str] = []

        def enter(module: nn.Module, args: tuple, kwargs: dict, name: str) -> None:
            if active and active[0].partition(".")[0] != name.partition(".")[0]:
                name = (
                    active[0].partition(".")[0] + "." + name.partition(".")[2]
                )  # the embedding that both stacks share
            self.order.append(name)
            self.within[name] = active[-1] if active else ""
            given = [*args, *kwargs.values()]
            self.given[name] = [one for one in given if isinstance(one, Tensor)]
            self.mask.update((name, one) for one in given if isinstance(one, AttentionMask))
            active.append(name)

        def leave(_module: nn.Module, _args: tuple, gave: object) -> None:
            self.gave[active.pop()] = gave

        for name, module in self.model.named_modules():
            if name and not isinstance(module, nn.ModuleList):
                module.register_forward_pre_hook(
                    lambda module, args, kwargs, name=name: enter(module, args, kwargs, name), with_kwargs=True
                )
                module.register_forward_hook(leave)
        self.real = torch.tensor([[True] * 9, [True] * 6 + [False] * 3])
        with torch.no_grad():
            self.model(torch.randint(3, 61, (2, 9)), torch.randint(3, 61, (2, 6)), self.real)

    def shape(self, value: Tensor) -> str:
        return f"({', '.join(LETTERS[size] for size in value.shape)})"

    def expected(self, kind: str) -> set[str]:
        """The modules that a drawing of this kind must show, from the tree alone."""
        root, found = ROOTS[kind], set()
        closed = (Norm, Head) if kind == "attention" else (Norm, Head, Attention)
        closed += (FeedForward,) if kind == "model" else ()
        for name, module in self.model.named_modules(remove_duplicate=False):
            parents = [self.model.get_submodule(name[:i]) for i, sign in enumerate(name) if sign == "."]
            if not name.startswith(f"{root}." if root else "") or isinstance(module, nn.Identity | nn.ModuleList):
                continue
            inside = any(isinstance(parent, closed) for parent in parents)
            if kind == "model" and (isinstance(module, Residual) or name.endswith("_residual.dropout")):
                continue
            if name and not inside:
                found.add(name)
        return found | ({root} if kind.endswith("layer") else set())

    def edges(self, kind: str) -> set[tuple[str, str]]:
        """Which part hands a value to which: by the tensors themselves, sums and products computed again."""
        return self._attention_edges() if kind == "attention" else self._flow_edges(kind)

    def _flow_edges(self, kind: str) -> set[tuple[str, str]]:
        made: dict[int, str] = {}  # whose a tensor is
        stacks = ["encoder", "decoder"] if kind == "model" else [kind.partition("-")[0]]
        edges: set[tuple[str, str]] = set()
        for stack in stacks:
            block = f"{stack}.blocks.0"
            if kind == "model":
                edges |= self._embedding_edges(stack, made)
            else:
                made[id(self.given[block][0])] = "in"
            memory = self.gave["encoder"]
            made[id(memory)] = "memory"
            for sublayer in ("self_attention", "cross_attention", "feed_forward"):
                if f"{block}.{sublayer}" in self.gave:
                    edges |= self._residual_edges(f"{block}.{sublayer}", kind, made)
            if kind != "model":
                edges.add((made[id(self.gave[block])], "out"))
                continue
            end = f"{stack}.norm"
            last = made[id(self.given[end][0])]
            if not isinstance(self.model.get_submodule(end), nn.Identity):
                edges.add((last, end))
                last = end
            if stack == "encoder":
                edges.add((last, "memory"))
            else:
                assert self.given["head"][0] is self.gave["decoder"]
                edges |= {(last, "head"), ("head", "logits")}
        return edges

    def _embedding_edges(self, stack: str, made: dict[int, str]) -> set[tuple[str, str]]:
        name = f"{stack}.embedding"
        total = self.gave[f"{name}.tokens"] * self.model.get_submodule(name).scale
        edges, last = {("source" if stack == "encoder" else "target", f"{name}.tokens")}, f"{name}.tokens"
        if f"{name}.positions" in self.gave:
            total = total + self.gave[f"{name}.positions"]
            edges |= {(last, f"{name}.positions+"), (f"{name}.positions", f"{name}.positions+")}
            last = f"{name}.positions+"
        assert torch.equal(total, self.given[f"{name}.dropout"][0])
        made[id(self.gave[name])] = f"{name}.dropout"
        return {*edges, (last, f"{name}.dropout")}

    def _residual_edges(self, name: str, kind: str, made: dict[int, str]) -> set[tuple[str, str]]:
        residual, edges = f"{name}_residual", set()
        norm, dropout, plus = f"{residual}.norm", f"{residual}.dropout", f"{residual}.+"
        stream = self.given[residual][0]
        of = made[id(stream)]
        if self.given[norm][0] is stream:
            total, made[id(self.gave[norm])] = self.gave[residual], norm
            edges.add((of, norm))
            after = {id(total): plus}
        else:
            total = self.given[norm][0]
            assert self.gave[residual] is self.gave[norm]
            edges.add((plus, norm))
            after = {id(self.gave[norm]): norm}
        assert torch.equal(total, stream + self.gave[dropout]), "a residual adds what came in"
        opened = name.endswith("feed_forward") and kind != "model"
        entry, leaf = (f"{name}.up", f"{name}.down") if opened else (name, name)
        edges |= {(made[id(value)], entry) for value in self.given[entry]}
        if opened:
            up, curve = self.gave[f"{name}.up"], self.model.get_submodule(name).activated
            assert torch.equal(curve(up), self.gave[f"{name}.hidden"])
            assert torch.equal(self.given[f"{name}.dropout"][0], self.gave[f"{name}.hidden"])
            assert self.given[f"{name}.down"][0] is self.gave[f"{name}.dropout"]
            inside = ("up", "hidden", "dropout", "down")
            edges |= {(f"{name}.{a}", f"{name}.{b}") for a, b in pairwise(inside)}
        assert self.given[dropout][0] is self.gave[leaf]
        edges |= {(of, plus), (leaf, plus)} if kind == "model" else {(of, plus), (leaf, dropout), (dropout, plus)}
        made |= after
        return edges

    def _attention_edges(self) -> set[tuple[str, str]]:
        name = ROOTS["attention"]
        pairs = (
            "in projection.query, memory projection.key, memory projection.value, "
            "projection.query q, projection.key k, projection.value v, q products, k products, products scores, "
            "scores masked, mask masked, masked pattern, pattern context, v context, context merged, merged output, "
            "output out"
        )
        outside = {"in", "memory", "mask", "out"}
        full = {one: one if one in outside else f"{name}.{one}" for one in re.split(", | ", pairs)}
        return {(full[a], full[b]) for a, b in (pair.split() for pair in pairs.split(", "))}


def faults(svg: str, kind: str, truth: Truth) -> list[str]:
    """Everything in which the drawing is not what the model is."""
    parts, wires = read(svg)
    return [
        *_modules(parts, kind, truth),
        *_places(parts, truth),
        *_order(parts, truth),
        *_shapes(parts, truth),
        *_wires(wires, kind, truth),
        *_lines(parts, wires),
    ]


def _module(part: Shown, truth: Truth) -> bool:
    return part.name in truth.gave


def _modules(parts: list[Shown], kind: str, truth: Truth) -> list[str]:
    wanted, shown = truth.expected(kind), Counter(part.name for part in parts)
    known = {
        name for name in shown if not (name in ENDS or re.search(r"\+$|\.projection\.\w+$|\.merged$|\.heads$", name))
    }
    return [
        *(f"{name} is missing" for name in sorted(wanted - known)),
        *(f"{name} is no module here" for name in sorted(known - wanted)),
        *(f"{name} is shown {times} times" for name, times in shown.items() if times > 1),
    ]


def _places(parts: list[Shown], truth: Truth) -> list[str]:
    """Each module lies within the innermost of the drawn modules that call it, and within no other."""
    frames = {part.name: part for part in parts if part.kind == "frame"}
    found = []
    for part in parts:
        if not _module(part, truth):
            continue
        above = truth.within[part.name]
        while above and above not in frames:
            above = truth.within[above]
        around = [one for one in frames.values() if one is not part and one.holds_all(part) and _module(one, truth)]
        inner = min(around, key=lambda one: (one.right - one.x) * (one.bottom - one.y), default=None)
        lies = inner.name if inner else ""
        if lies != above:
            found.append(f"{part.name} lies in {lies or 'nothing'}, but is called in {above or 'nothing'}")
    return found


def _order(parts: list[Shown], truth: Truth) -> list[str]:
    """What is called later lies lower."""
    boxes = [part for part in parts if part.kind == "box" and part.name in truth.order]
    boxes.sort(key=lambda part: truth.order.index(part.name))
    found = []
    for stack in ("encoder", "decoder"):
        own = [part for part in boxes if part.name.startswith(stack)]
        found += [f"{b.name} is called after {a.name}" for a, b in pairwise(own) if b.y < a.y]
    return found


def _shapes(parts: list[Shown], truth: Truth) -> list[str]:
    found = []
    for part in parts:
        for shape in part.shapes:
            given = {
                "memory": truth.gave["encoder"], "logits": truth.gave["head"], "src_mask": truth.real,
                "source": truth.given["encoder"][0], "target": truth.given["decoder"][0],
                "mask": truth.mask[ROOTS["attention"]].bias,
            }  # fmt: skip
            name = part.name
            if name in ("in", "out"):
                side = "encoder" if any(one.name.startswith("encoder") for one in parts) else "decoder"
                value = truth.gave[f"{side}.blocks.0"]
            elif name.endswith(".merged"):
                value = truth.given[f"{name.removesuffix('merged')}output"][0]
            else:
                value = given[name] if name in given else truth.gave[name]
            if shape != truth.shape(value):
                found.append(f"{name} says {shape}, but gives {truth.shape(value)}")
    return found


def _wires(wires: list[Wire], kind: str, truth: Truth) -> list[str]:
    wanted, drawn = truth.edges(kind), Counter((wire.of, wire.to) for wire in wires)
    return [
        *(f"no wire from {a} to {b}" for a, b in sorted(wanted - set(drawn))),
        *(f"a wire from {a} to {b}, where nothing goes" for a, b in sorted(set(drawn) - wanted)),
        *(f"{times} wires from {a} to {b}" for (a, b), times in drawn.items() if times > 1),
    ]


def _lines(parts: list[Shown], wires: list[Wire]) -> list[str]:
    """Wires begin and end at what they join, run straight, and cross no box; boxes do not overlap."""
    by_name = {part.name: part for part in parts}
    boxes = [part for part in parts if part.kind != "frame"]
    found = []
    for wire in wires:
        told = f"the wire from {wire.of} to {wire.to}"
        if not by_name.keys() >= {wire.of, wire.to}:
            found.append(f"{told} leads nowhere")
            continue
        for a, b in pairwise(wire.points):
            if a[0] != b[0] and a[1] != b[1]:
                found.append(f"{told} is slanted")
            steps = [(a[0] + (b[0] - a[0]) * i / 60, a[1] + (b[1] - a[1]) * i / 60) for i in range(61)]
            crossed = {box.name for box in boxes for x, y in steps if box.holds(x, y, 1.0)}
            found += [f"{told} crosses {name}" for name in sorted(crossed)]
        branch = any(_on(wire.points[0], other) for other in wires if other.of == wire.of and other is not wire)
        if not branch and not _touches(by_name[wire.of], wire.points[0]):
            found.append(f"{told} does not begin there")
        if not _touches(by_name[wire.to], wire.points[-1]):
            found.append(f"{told} does not end there")
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            if one.x < other.right and other.x < one.right and one.y < other.bottom and other.y < one.bottom:
                found.append(f"{one.name} and {other.name} overlap")
    return found


def _touches(part: Shown, point: tuple[float, float]) -> bool:
    return part.holds(*point, -0.5) and not part.holds(*point, 0.5)


def _on(point: tuple[float, float], wire: Wire) -> bool:
    (x, y), pairs = point, pairwise(wire.points)
    return any(
        min(a[0], b[0]) - 0.1 <= x <= max(a[0], b[0]) + 0.1 and min(a[1], b[1]) - 0.1 <= y <= max(a[1], b[1]) + 0.1
        for a, b in pairs
    )
