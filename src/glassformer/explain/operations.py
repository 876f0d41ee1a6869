"""How every value is made: walking a model from its embedding to its logits, each named value gets its axes, its
formula and an operation that gives the same numbers again from other named values and the weights.

Shapes: S source, T target, H heads, G key/value heads, D model width, d head width. There is no batch axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.explain.ends import embedding, with_bias
from glassformer.explain.parts import ACTIVATIONS, NORMS
from glassformer.explain.record import Seen
from glassformer.explain.weights import Weights
from glassformer.model.attention import Attention, AttentionMask
from glassformer.model.config import ModelConfig
from glassformer.model.layer import Block, FeedForward, Residual
from glassformer.model.norm import Norm
from glassformer.model.position import Alibi, relative_bucket
from glassformer.model.transformer import Stack

Op = dict[str, Any]
LINKS = ("input", "q", "k", "v", "pattern", "cos", "sin", "mask")  # where an operation names one other value


@dataclass(frozen=True, eq=False)
class Value:
    """One named value: `axes` names each dimension, `op` says how it is made, `formula` says it for a reader."""

    name: str
    axes: tuple[str, ...]
    op: Op
    formula: str
    value: Tensor

    @property
    def inputs(self) -> list[str]:
        """The values it is made from."""
        op = self.op.get("otherwise", self.op)
        links = (*LINKS, "bias") if op["kind"] == "mask" else LINKS  # elsewhere a bias is a weight
        return [*op.get("inputs", ()), *(op[link] for link in links if op.get(link) is not None)]


class Side:
    """Names of the axes on the source's or the target's side, and of the ids there; `part`: of some of its places."""

    def __init__(self, target: bool, part: str | None = None) -> None:
        self.short, self.ids = ("tgt", "target") if target else ("src", "source")
        self.short = part or self.short
        self.stream = (f"position:{self.short}", "channel")
        self.hidden = (f"position:{self.short}", "hidden")
        self.query, self.key = f"query:{self.short}", f"key:{self.short}"


class Account:
    """All values of a run, in the order in which they come to be.

    `replaced` names the values that a change has set: they have no equation, only a cause.
    """

    def __init__(
        self, config: ModelConfig, seen: Seen, weights: Weights, replaced: Mapping[str, Op], shift: int = 0
    ) -> None:
        self.config, self.seen, self.weights, self.replaced, self.shift = config, seen, weights, replaced, shift
        self.values: dict[str, Value] = {}

    def record(self, name: str, axes: tuple[str, ...], op: Op, formula: str, value: Tensor | None = None) -> str:
        if name in self.replaced:
            cause: Op = {"kind": "replaced"} | self.replaced[name]
            told = f"set by {cause['by']['kind']}"
            if heads := ", ".join(map(str, cause.get("heads", ()))):  # the others are computed as ever
                cause["otherwise"], told = op, f"{formula}, but heads {heads} {told}"
            op, formula = cause, told
        elif op["kind"] == "same":
            self.values[name] = Value(name, axes, op, formula, self.values[op["input"]].value)
            return name
        if value is None:
            value = self.seen.values[name]
        value = value[0] if value.dim() > len(axes) else value
        self.values[name] = Value(name, axes, op, formula, value.detach().float().cpu().contiguous())
        return name

    def same(self, name: str, of: str, formula: str) -> str:
        return self.record(name, self.values[of].axes, {"kind": "same", "input": of}, formula)

    def linear(
        self,
        name: str,
        axes: tuple[str, ...],
        module: nn.Linear,
        given: str,
        formula: str,
        rows: tuple[int, int] | None = None,
        heads: int | None = None,
        value: Tensor | None = None,
    ) -> str:
        """`rows`: the part of the matrix that makes this value, `heads` of them side by side."""
        span = [0, len(module.weight)] if rows is None else list(rows)
        weight, bias = self.weights.name(module.weight), self.weights.name(module.bias)
        op = {"kind": "linear", "input": given, "weight": weight, "bias": bias, "rows": span, "heads": heads}
        return self.record(name, axes, op, with_bias(formula, bias), value)

    def norm(self, name: str, axes: tuple[str, ...], module: Norm, given: str) -> str:
        kind, (weight, bias) = self.config.norm_type, map(self.weights.name, (module.weight, module.bias))
        part = NORMS[kind]
        op = {"kind": f"{kind}_norm", "input": given, "weight": weight, "bias": bias, "eps": module.eps}
        told = {"expression": part.expression, "row": part.row, "why": asdict(part.why)}
        return self.record(name, axes, op | told, part.formula)

    def activation(self, given: str, gated: bool) -> Op:
        kind = self.config.activation
        op = {"kind": "activation", "name": kind, "input": given, "gated": gated}
        return op | {"expression": ACTIVATIONS[kind].expression}

    def added(self, name: str, axes: tuple[str, ...], parts: list[str], formula: str, value: Tensor | None) -> str:
        return self.record(name, axes, {"kind": "add", "inputs": parts}, formula, value)

    def mask(self, name: str, axes: tuple[str, str], seen: AttentionMask, shape: tuple[int, int], op: Op) -> str:
        """What a stack's queries could really see, read from what its attention was given."""
        if seen.bias is not None:
            visible = (seen.bias > float("-inf")).expand(-1, -1, *shape)[0].any(0)
        else:
            visible = torch.ones(shape).tril(0 if seen.causal else shape[1]).bool()
        rules = ["key ≤ query"] * op["causal"] + ["the key is a real token"] * (op["padding"] is not None)
        formula = f"1 where {' and '.join(rules)}" if rules else "1 everywhere"
        return self.record(name, axes, {"kind": "visible"} | op, formula, visible)

    def attention(
        self, at: str, module: Attention, sides: tuple[Side, Side], reads: tuple[str, str], mask: str,
        distance: str | None, rotation: str | None,
    ) -> str:  # fmt: skip
        """`reads`: where queries come from, and keys and values."""
        projection, d = module.projection, module.d_head
        query, key = ("head", sides[0].query, "dim"), ("head", sides[1].key, "dim")
        cells = ("head", sides[0].query, sides[1].key)
        source = "x" if reads[0] == reads[1] else "memory"
        start = 0
        for part, axes, given, size in zip("qkv", (query, key, key), (reads[0], *[reads[1]] * 2), projection.rows,
                                           strict=True):  # fmt: skip
            formula = f"{'x' if part == 'q' else source} W_{part.upper()}"
            rows, heads = (start, start + size), size // d
            if rotation is not None and part != "v":
                turned = self.seen.values[f"{at}.projection"][0, :, start : start + size]  # (T, H d)
                plain = f"{at}.{part}_plain"
                value = turned.unflatten(-1, (heads, d)).transpose(0, 1)  # (H, T, d)
                self.linear(plain, axes, projection, given, formula, rows=rows, heads=heads, value=value)
                op = {"kind": "rotate", "input": plain, "cos": f"{rotation}.cos", "sin": f"{rotation}.sin"}
                self.record(f"{at}.{part}", axes, op, f"{part}_plain turned by its position")
            else:
                self.linear(f"{at}.{part}", axes, projection, given, formula, rows=rows, heads=heads)
            start += size
        q, k, v, products, scores, masked, pattern, context, merged, output = (
            f"{at}.{part}"
            for part in ("q", "k", "v", "products", "scores", "masked", "pattern", "context", "merged", "output")
        )
        root, scale = abs(module.scale - d**-0.5) < 1e-9, {"kind": "scale", "input": products, "by": module.scale}
        hide = {"kind": "mask", "input": scores, "mask": mask, "bias": distance}
        further = " + distance" if distance else ""
        self.record(products, cells, {"kind": "products", "q": q, "k": k}, "Q Kᵀ")
        self.record(scores, cells, scale, "Q Kᵀ / √d_head" if root else f"Q Kᵀ · {module.scale:g}")
        self.record(masked, cells, hide, f"scores{further} where visible, else -∞")
        self.record(pattern, cells, {"kind": "softmax", "input": masked, "temperature": 1.0}, "softmax(masked)")
        self.record(context, query, {"kind": "context", "pattern": pattern, "v": v}, "pattern V")
        row = sides[0].stream
        self.record(merged, row, {"kind": "merge", "input": context}, "heads side by side", self.seen.inputs[output][0])
        return self.linear(output, row, module.output, merged, "merged W_O")

    def residual(self, at: str, module: Residual, side: Side, stream: str, added: str) -> str:
        """What follows a sublayer; with Pre-LN its norm has come before."""
        if module.pre:
            return self.added(at, side.stream, [stream, added], "x + sublayer(norm(x))", None)
        summed = self.added(
            f"{at}.sum", side.stream, [stream, added], "x + sublayer(x)", self.seen.inputs[f"{at}.norm"][0]
        )
        return self.same(at, self.norm(f"{at}.norm", side.stream, module.norm, summed), "norm(x + sublayer(x))")

    def before(self, at: str, module: Residual, side: Side, stream: str) -> str:
        """What a sublayer reads."""
        return self.norm(f"{at}.norm", side.stream, module.norm, stream) if module.pre else stream

    def feed_forward(self, at: str, module: FeedForward, side: Side, given: str) -> str:
        up = self.linear(f"{at}.up", side.hidden, module.up, given, "x W_up")
        formula = self.config.activation + ("(gate) · value, the halves of up" if module.gated else "(up)")
        hidden = self.record(f"{at}.hidden", side.hidden, self.activation(up, module.gated), formula)
        return self.linear(f"{at}.down", side.stream, module.down, hidden, "hidden W_down")

    def block(
        self, at: str, block: Block, side: Side, stream: str, own: tuple[str, str | None, str | None],
        memory: str | None,
    ) -> str:  # fmt: skip
        """`own`: the names of the stack's mask, distance and rotation."""
        where, after = f"{at}.self_attention", f"{at}.self_attention_residual"
        given = self.before(after, block.self_attention_residual, side, stream)
        added = self.attention(where, block.self_attention, (side, side), (given, given), *own)
        stream = self.residual(after, block.self_attention_residual, side, stream, added)
        if memory is not None and block.cross_attention is not None:
            where, after = f"{at}.cross_attention", f"{at}.cross_attention_residual"
            given = self.before(after, block.cross_attention_residual, side, stream)
            sides = (side, Side(target=False))
            added = self.attention(where, block.cross_attention, sides, (given, memory), "masks.cross", None, None)
            stream = self.residual(after, block.cross_attention_residual, side, stream, added)
        after = f"{at}.feed_forward_residual"
        given = self.before(after, block.feed_forward_residual, side, stream)
        added = self.feed_forward(f"{at}.feed_forward", block.feed_forward, side, given)
        stream = self.residual(after, block.feed_forward_residual, side, stream, added)
        return self.same(at, stream, "the stream after this layer")

    def surroundings(self, at: str, stack: Stack, side: Side, visible: Op) -> tuple[str, str | None, str | None]:
        """What the layers of a stack share: its mask, distances and rotation."""
        seen, length = self.seen.masks[f"{at}.blocks.0.self_attention"], self.values[f"{at}.embedding"].value.shape[0]
        mask = self.mask(f"masks.{at}", (side.query, side.key), seen, (length, length), visible)
        distance = rotation = None
        if stack.distance is not None:
            if isinstance(stack.distance, Alibi):
                op: Op = {"kind": "alibi", "slopes": stack.distance.slopes}
                formula = "-slope · |key - query|"
            else:
                table, rule = stack.distance.table, (stack.distance.furthest, stack.distance.both_ways)
                buckets = relative_bucket(torch.arange(1 - length, length), len(table), *rule).tolist()
                op = {"kind": "relative", "weight": self.weights.name(table), "furthest": rule[0], "both_ways": rule[1]}
                op, formula = op | {"buckets": buckets}, "table[bucket(key - query), head]"  # lowest offset first
            distance = self.record(f"{at}.distance", ("head", side.query, side.key), op, formula)
        if (rotary := stack.rotary) is not None:
            rotation, axes, d = f"{at}.rotation", (f"position:{side.short}", "dim"), rotary.width
            pace = None if rotary.factor == 1 else rotary.pace(rotary.base ** (-torch.arange(0, d, 2) / d)).tolist()
            angle = f"t · {rotary.base:g}^(-2i / d_head){' · pace' if pace else ''}"
            for part, value in zip(("cos", "sin"), self.seen.values[f"{at}.rotary"], strict=True):
                op = {"kind": "rotation", "part": part, "base": rotary.base, "d_head": d, "pace": pace}
                self.record(f"{rotation}.{part}", axes, op, f"{part}({angle})", value)
        return mask, distance, rotation

    def stack(self, at: str, stack: Stack, visible: Op, memory: str | None = None, cross: Op | None = None) -> str:
        side = Side(target=at == "decoder")
        stream = embedding(self, f"{at}.embedding", stack.embedding, side)
        if len(stack.blocks):
            own = self.surroundings(at, stack, side, visible)
            if memory is not None and cross is not None:
                shape = (self.values[stream].value.shape[0], self.values[memory].value.shape[0])
                seen = self.seen.masks[f"{at}.blocks.0.cross_attention"]
                self.mask("masks.cross", (side.query, "key:src"), seen, shape, cross)
            for i, block in enumerate(stack.blocks):
                assert isinstance(block, Block)
                stream = self.block(f"{at}.blocks.{i}", block, side, stream, own, memory)
        if isinstance(stack.norm, Norm):
            stream = self.norm(f"{at}.norm", side.stream, stack.norm, stream)
        return stream
