"""How every value is computed. `GraphBuilder` walks a model from its embedding to its logits and gives each value its
axes, its formula and an operation that computes the same numbers from other named values and the weights.

Shapes: S source, T target, H heads, G key/value heads, D model width, d head width, C channels of an image, P width of
a patch, L labels, V vocabulary. There is no batch axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict

import torch
from torch import Tensor, nn

from glassformer.explain.activations import ActivationCache, Op, Value, Values, record_activations
from glassformer.explain.formulas import ACTIVATIONS, NORMS
from glassformer.explain.weights import Weights
from glassformer.model import EncoderDecoder, EncoderOnly, Model
from glassformer.model.attention import Attention, AttentionMask
from glassformer.model.config import ModelConfig
from glassformer.model.embedding import Alibi, Embedding, PatchEmbedding, relative_bucket
from glassformer.model.layer import Block, FeedForward, Residual
from glassformer.model.norm import Norm
from glassformer.model.transformer import Head, Stack, Transform

Axes = tuple[str, ...]
PATCHES, FIRST = "square", "first"  # the positions of an image's patches; the position that labels are read from


class Side:
    """The names of the axes of the source, of the target, or of the positions of one `part`."""

    def __init__(self, target: bool, part: str | None = None) -> None:
        self.short, self.ids = ("tgt", "target") if target else ("src", "source")
        self.short = part or self.short
        self.stream = (f"position:{self.short}", "channel")
        self.hidden = (f"position:{self.short}", "hidden")
        self.query, self.key = f"query:{self.short}", f"key:{self.short}"


class GraphBuilder:
    """The computation graph of a run: all its values, in the order of computation.

    `replaced` holds the values that a change has set: for them, the cause stands in the place of a formula. `shift` is
    the number of padding tokens before a text. Every method returns the name of the value that it has added last.
    """

    def __init__(
        self, config: ModelConfig, cache: ActivationCache, weights: Weights, replaced: Mapping[str, Op], shift: int = 0
    ) -> None:
        self.config, self.cache, self.weights, self.replaced, self.shift = config, cache, weights, replaced, shift
        self.values = Values()

    def record(self, name: str, axes: Axes, op: Op, formula: str, value: Tensor | None = None) -> str:
        if name in self.replaced:
            cause: Op = {"kind": "replaced"} | self.replaced[name]
            text = f"set by {cause['by']['kind']}"
            if heads := ", ".join(map(str, cause.get("heads", ()))):  # the other heads are computed as usual
                cause["otherwise"], text = op, f"{formula}, but heads {heads} {text}"
            op, formula = cause, text
        elif op["kind"] == "same":
            self.values[name] = Value(name, axes, op, formula, self.values[op["input"]].value)
            return name
        value = self.cache.values[name] if value is None else value
        value = value[0] if value.dim() > len(axes) else value
        self.values[name] = Value(name, axes, op, formula, value.detach().float().cpu().contiguous())
        return name

    def alias(self, name: str, of: str, formula: str) -> str:
        return self.record(name, self.values[of].axes, {"kind": "same", "input": of}, formula)

    def add(self, name: str, axes: Axes, parts: list[str], formula: str, value: Tensor | None = None) -> str:
        return self.record(name, axes, {"kind": "add", "inputs": parts}, formula, value)

    def linear(
        self, name: str, axes: Axes, module: nn.Linear, given: str, formula: str, rows: tuple[int, int] | None = None,
        heads: int | None = None, value: Tensor | None = None,
    ) -> str:  # fmt: skip
        """`rows`: the part of the matrix that computes this value, `heads` of them side by side."""
        span = [0, len(module.weight)] if rows is None else list(rows)
        weight, bias = self.weights.name(module.weight), self.weights.name(module.bias)
        op = {"kind": "linear", "input": given, "weight": weight, "bias": bias, "rows": span, "heads": heads}
        return self.record(name, axes, op, with_bias(formula, bias), value)

    def norm(self, name: str, axes: Axes, module: Norm, given: str) -> str:
        kind, (weight, bias) = self.config.norm_type, map(self.weights.name, (module.weight, module.bias))
        part = NORMS[kind]
        op: Op = {"kind": f"{kind}_norm", "input": given, "weight": weight, "bias": bias, "eps": module.eps}
        op |= {"expression": part.expression, "row": part.row, "why": asdict(part.why)}
        return self.record(name, axes, op, part.formula)

    def activation(self, given: str, gated: bool) -> Op:
        kind = self.config.activation
        op = {"kind": "activation", "name": kind, "input": given, "gated": gated}
        return op | {"expression": ACTIVATIONS[kind].expression}

    def embedding(self, at: str, module: Embedding, side: Side) -> str:
        axes = side.stream
        if isinstance(module, PatchEmbedding):
            parts, terms = [self.patches(at, module, side)], ["x"]
        else:
            parts = [self.tokens(at, module, side)]
            terms = [self.values[parts[0]].formula]
        if module.segments is not None:
            ids = [0] * self.values[parts[0]].value.shape[0]
            rows = {"kind": "lookup", "weight": self.weights.name(module.segments.weight), "ids": ids}
            parts.append(self.record(f"{at}.segments", axes, rows, "G[segment]"))
            terms.append("G[segment]")
        if module.positions is not None:
            computed = id(module.positions.table) not in self.weights.names  # the paper's sinusoid
            weight = None if computed else self.weights.name(module.positions.table)
            op: Op = {"kind": "positions", "scheme": self.config.positions, "weight": weight, "shift": self.shift}
            formula = "sin, cos(t / 10000^(2i / d_model))" if computed else "P[t]"
            parts.append(self.record(f"{at}.positions", axes, op, formula))
            terms.append("P[t]")
        total = " + ".join(terms)
        if isinstance(module.norm, Norm):
            summed = self.add(f"{at}.sum", axes, parts, total, self.cache.inputs[f"{at}.norm"][0])
            return self.alias(at, self.norm(f"{at}.norm", axes, module.norm, summed), "norm of the sum")
        return self.alias(at, parts[0], total) if len(parts) == 1 else self.add(at, axes, parts, total)

    def tokens(self, at: str, module: Embedding, side: Side) -> str:
        """A row of the table for each token, scaled."""
        lookup = {"kind": "lookup", "weight": self.weights.name(module.tokens.weight), "ids": side.ids}
        rows = self.record(f"{at}.tokens", side.stream, lookup, "E[token]")
        if module.scale == 1.0:
            return self.alias(f"{at}.scaled", rows, "E[token]")
        scale = {"kind": "scale", "input": rows, "by": module.scale}
        value = self.cache.values[rows][0] * module.scale
        return self.record(f"{at}.scaled", side.stream, scale, "√d_model · E[token]", value)

    def patches(self, at: str, module: PatchEmbedding, side: Side) -> str:
        """The patches of an image, each by one matrix; before them a learnt vector, which gathers the whole."""
        own, name = Side(target=False, part=PATCHES), f"{at}.projection"
        axes, pixels = (own.stream[0], "pixel"), self.cache.inputs[name][0]
        given = self.record(f"{at}.pixels", axes, {"kind": "pixels"}, "pixels of the square", pixels)
        self.linear(name, own.stream, module.projection, given, "pixels W")
        op = {"kind": "prepend", "weight": self.weights.name(module.first), "input": name}
        value = torch.cat((module.first.unsqueeze(0), self.cache.values[name][0]))  # (T, D)
        return self.record(f"{at}.tokens", side.stream, op, "first, then the squares", value)

    def mask(self, name: str, axes: tuple[str, str], given: AttentionMask, shape: tuple[int, int], op: Op) -> str:
        """What the queries of a stack can see, read from the mask that its attention was given."""
        if given.bias is not None:
            visible = (given.bias > float("-inf")).expand(-1, -1, *shape)[0].any(0)
        else:
            visible = torch.ones(shape).tril(0 if given.causal else shape[1]).bool()
        rules = ["key ≤ query"] * op["causal"] + ["the key is a real token"] * (op["padding"] is not None)
        formula = f"1 where {' and '.join(rules)}" if rules else "1 everywhere"
        return self.record(name, axes, {"kind": "visible"} | op, formula, visible)

    def attention(
        self, at: str, module: Attention, sides: tuple[Side, Side], inputs: tuple[str, str], mask: str,
        distance: str | None, rotation: str | None,
    ) -> str:  # fmt: skip
        """`inputs`: what queries are computed from, and what keys and values are."""
        projection, d = module.projection, module.d_head
        query, key = ("head", sides[0].query, "dim"), ("head", sides[1].key, "dim")
        cells = ("head", sides[0].query, sides[1].key)
        source = "x" if inputs[0] == inputs[1] else "memory"
        start, sources = 0, (inputs[0], inputs[1], inputs[1])
        for part, axes, given, size in zip("qkv", (query, key, key), sources, projection.rows, strict=True):
            formula = f"{'x' if part == 'q' else source} W_{part.upper()}"
            rows, heads = (start, start + size), size // d
            if rotation is not None and part != "v":
                plain = f"{at}.{part}_plain"
                value = self.cache.values[f"{at}.projection"][0, :, start : start + size]  # (T, H d)
                value = value.unflatten(-1, (heads, d)).transpose(0, 1)  # (H, T, d)
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
        hide, row = {"kind": "mask", "input": scores, "mask": mask, "bias": distance}, sides[0].stream
        further = " + distance" if distance else ""
        self.record(products, cells, {"kind": "products", "q": q, "k": k}, "Q Kᵀ")
        self.record(scores, cells, scale, "Q Kᵀ / √d_head" if root else f"Q Kᵀ · {module.scale:g}")
        self.record(masked, cells, hide, f"scores{further} where visible, else -∞")
        self.record(pattern, cells, {"kind": "softmax", "input": masked, "temperature": 1.0}, "softmax(masked)")
        self.record(context, query, {"kind": "context", "pattern": pattern, "v": v}, "pattern V")
        merge = {"kind": "merge", "input": context}
        self.record(merged, row, merge, "heads side by side", self.cache.inputs[output][0])
        return self.linear(output, row, module.output, merged, "merged W_O")

    def sublayer(self, at: str, module: Residual, side: Side, stream: str, compute: Callable[[str], str]) -> str:
        """A sublayer and its residual, Pre-LN or Post-LN; `compute` adds the sublayer's values, given its input."""
        axes = side.stream
        if module.pre:
            given = self.norm(f"{at}.norm", axes, module.norm, stream)
            return self.add(at, axes, [stream, compute(given)], "x + sublayer(norm(x))")
        parts = [stream, compute(stream)]
        summed = self.add(f"{at}.sum", axes, parts, "x + sublayer(x)", self.cache.inputs[f"{at}.norm"][0])
        return self.alias(at, self.norm(f"{at}.norm", axes, module.norm, summed), "norm(x + sublayer(x))")

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
        at_self, at_cross, at_ff = f"{at}.self_attention", f"{at}.cross_attention", f"{at}.feed_forward"
        stream = self.sublayer(
            f"{at_self}_residual", block.self_attention_residual, side, stream,
            lambda x: self.attention(at_self, block.self_attention, (side, side), (x, x), *own),
        )  # fmt: skip
        cross = block.cross_attention
        if memory is not None and cross is not None:
            sides = (side, Side(target=False))
            stream = self.sublayer(
                f"{at_cross}_residual", block.cross_attention_residual, side, stream,
                lambda x: self.attention(at_cross, cross, sides, (x, memory), "masks.cross", None, None),
            )  # fmt: skip
        stream = self.sublayer(
            f"{at_ff}_residual", block.feed_forward_residual, side, stream,
            lambda x: self.feed_forward(at_ff, block.feed_forward, side, x),
        )  # fmt: skip
        return self.alias(at, stream, "the stream after this layer")

    def shared_inputs(self, at: str, stack: Stack, side: Side, visible: Op) -> tuple[str, str | None, str | None]:
        """What the layers of a stack share: its mask, distances and rotation."""
        given, length = self.cache.masks[f"{at}.blocks.0.self_attention"], self.values[f"{at}.embedding"].value.shape[0]
        mask = self.mask(f"masks.{at}", (side.query, side.key), given, (length, length), visible)
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
            for part, value in zip(("cos", "sin"), self.cache.values[f"{at}.rotary"], strict=True):
                op = {"kind": "rotation", "part": part, "base": rotary.base, "d_head": d, "pace": pace}
                self.record(f"{rotation}.{part}", axes, op, f"{part}({angle})", value)
        return mask, distance, rotation

    def stack(self, at: str, stack: Stack, visible: Op, memory: str | None = None, cross: Op | None = None) -> str:
        side = Side(target=at == "decoder")
        stream = self.embedding(f"{at}.embedding", stack.embedding, side)
        if len(stack.blocks):
            own = self.shared_inputs(at, stack, side, visible)
            if memory is not None and cross is not None:
                shape = (self.values[stream].value.shape[0], self.values[memory].value.shape[0])
                given = self.cache.masks[f"{at}.blocks.0.cross_attention"]
                self.mask("masks.cross", (side.query, "key:src"), given, shape, cross)
            for i, block in enumerate(stack.blocks):
                assert isinstance(block, Block)
                stream = self.block(f"{at}.blocks.{i}", block, side, stream, own, memory)
        if isinstance(stack.norm, Norm):
            stream = self.norm(f"{at}.norm", side.stream, stack.norm, stream)
        return stream

    def head(self, head: Head, side: Side, stream: str, temperature: float) -> str:
        config, values = self.config, self.cache.values
        size = "label" if config.labels or config.patch_size else "vocab"
        if config.labels:  # read from the first position alone
            side = Side(target=False, part=FIRST)
            row = self.values[stream].value[:1]
            stream = self.record("head.first", side.stream, {"kind": "first", "input": stream}, "x at place 0", row)
        if isinstance(head.transform, Transform):
            at, last = "head.transform", head.transform
            dense = self.linear(f"{at}.dense", side.stream, last.dense, stream, "x W")
            act, value = self.activation(dense, gated=False), self.cache.inputs[f"{at}.norm"]
            value = value if config.labels else value[0]
            active = self.record(f"{at}.activated", side.stream, act, f"{config.activation}(dense)", value)
            stream = self.alias(at, self.norm(f"{at}.norm", side.stream, last.norm, active), "norm(activated)")
        axes, weight, bias = (side.stream[0], size), *map(self.weights.name, (head.weight, head.bias))
        op: Op = {"kind": "linear", "input": stream, "weight": weight, "bias": bias, "rows": [0, len(head.weight)]}
        formula = "x Eᵀ" if config.tied else "x W_vocab" if size == "vocab" else "x W_label"
        logits = self.record("logits", axes, op | {"heads": None}, with_bias(formula, bias), values["head"])
        op = {"kind": "softmax", "input": logits, "temperature": temperature}
        formula = "softmax(logits)" if temperature == 1 else f"softmax(logits / {temperature:g})"
        value = (self.values[logits].value / temperature).softmax(-1)
        return self.record("probabilities", axes, op, formula, value)


def with_bias(formula: str, bias: str | None) -> str:
    """`x W_Q` as `x W_Q + b_Q` where there is a bias."""
    matrix = formula.rpartition(" ")[2]
    return formula if bias is None else f"{formula} + b{matrix[1:] if matrix.startswith('W') else ''}"


def whole_mask(mask: Tensor, length: int) -> Tensor:
    """The prompt's mask, followed by the tokens that were written, which are real."""
    return torch.cat((mask, mask.new_ones(1, length - mask.shape[1])), dim=1)


@torch.no_grad()
def record_forward(
    model: Model, src: Tensor, mask: Tensor, tgt: Tensor, graph: GraphBuilder, open_mask: bool = False,
    temperature: float = 1.0,
) -> Tensor | None:  # fmt: skip
    """One forward pass over `src` (1, S) and `tgt` (1, T), every value of it added to the graph; returns the memory.

    `open_mask`: the model sees padding too.
    """
    cache = graph.cache
    padding: Op = {"causal": False, "padding": None if open_mask else "source"}
    memory: Tensor | None = None
    if isinstance(model, EncoderDecoder):
        with record_activations(model, cache, "encoder"):
            memory = model.encode(src, mask)
        with record_activations(model, cache, "decoder"), record_activations(model, cache, "head"):
            model.decode(tgt, memory, mask)
        stream = graph.stack("encoder", model.encoder, padding)
        named = graph.alias("memory", stream, "what cross-attention reads")
        causal: Op = {"causal": model.decoder.causal, "padding": None}
        stream = graph.stack("decoder", model.decoder, causal, named, padding)
    elif isinstance(model, EncoderOnly):
        with record_activations(model, cache, "encoder"), record_activations(model, cache, "head"):
            model(src, mask if model.config.patch_size is None else None)
        everything: Op = {"causal": False, "padding": None}
        stream = graph.stack("encoder", model.encoder, padding if model.config.patch_size is None else everything)
    else:
        with record_activations(model, cache, "decoder"), record_activations(model, cache, "head"):
            model(tgt, whole_mask(mask, tgt.shape[1]))
        stream = graph.stack("decoder", model.decoder, padding | {"causal": model.decoder.causal})
    graph.head(model.head, Side(not isinstance(model, EncoderOnly)), stream, temperature)
    return memory
