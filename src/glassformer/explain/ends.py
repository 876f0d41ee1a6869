"""Both ends of a model: how what is read becomes vectors, and how vectors become logits.

Shapes: T positions, D model width, C channels of an image, P width of a square, L labels, V vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from glassformer.model.embedding import Embedding, PatchEmbedding
from glassformer.model.norm import Norm
from glassformer.model.transformer import Head, Transform

if TYPE_CHECKING:
    from glassformer.explain.operations import Account, Op, Side

SQUARES, FIRST = "square", "first"  # the places of an image's squares; the place that labels are read off


def embedding(account: Account, at: str, module: Embedding, side: Side) -> str:
    axes = side.stream
    if isinstance(module, PatchEmbedding):
        parts, terms = [squares(account, at, module, side)], ["x"]
    else:
        parts = [tokens(account, at, module, side)]
        terms = [account.values[parts[0]].formula]
    if module.segments is not None:
        ids = [0] * account.values[parts[0]].value.shape[0]
        rows = {"kind": "lookup", "weight": account.weights.name(module.segments.weight), "ids": ids}
        parts.append(account.record(f"{at}.segments", axes, rows, "G[segment]"))
        terms.append("G[segment]")
    if module.positions is not None:
        paper = id(module.positions.table) not in account.weights.names
        weight = None if paper else account.weights.name(module.positions.table)
        op: Op = {"kind": "positions", "scheme": account.config.positions, "weight": weight, "shift": account.shift}
        formula = "sin, cos(t / 10000^(2i / d_model))" if paper else "P[t]"
        parts.append(account.record(f"{at}.positions", axes, op, formula))
        terms.append("P[t]")
    total = " + ".join(terms)
    if isinstance(module.norm, Norm):
        summed = account.added(f"{at}.sum", axes, parts, total, account.seen.inputs[f"{at}.norm"][0])
        return account.same(at, account.norm(f"{at}.norm", axes, module.norm, summed), "norm of the sum")
    return account.same(at, parts[0], total) if len(parts) == 1 else account.added(at, axes, parts, total, None)


def tokens(account: Account, at: str, module: Embedding, side: Side) -> str:
    """A row of the table for each token, scaled."""
    lookup = {"kind": "lookup", "weight": account.weights.name(module.tokens.weight), "ids": side.ids}
    found = account.record(f"{at}.tokens", side.stream, lookup, "E[token]")
    if module.scale == 1.0:
        return account.same(f"{at}.scaled", found, "E[token]")
    scale = {"kind": "scale", "input": found, "by": module.scale}
    value = account.seen.values[found][0] * module.scale
    return account.record(f"{at}.scaled", side.stream, scale, "√d_model · E[token]", value)


def squares(account: Account, at: str, module: PatchEmbedding, side: Side) -> str:
    """The squares of an image, each by one matrix; before them a learnt vector, in which the whole is gathered."""
    own, name = type(side)(target=False, part=SQUARES), f"{at}.projection"
    pixels = account.record(
        f"{at}.pixels", (own.stream[0], "pixel"), {"kind": "pixels"}, "pixels of the square",
        account.seen.inputs[name][0],
    )  # fmt: skip
    account.linear(name, own.stream, module.projection, pixels, "pixels W")
    op = {"kind": "prepend", "weight": account.weights.name(module.first), "input": name}
    value = torch.cat((module.first.unsqueeze(0), account.seen.values[name][0]))  # (T, D)
    return account.record(f"{at}.tokens", side.stream, op, "first, then the squares", value)


def head(account: Account, head: Head, side: Side, stream: str, temperature: float) -> None:
    config, values = account.config, account.seen.values
    size = "label" if config.labels or config.patch_size else "vocab"
    if config.labels:  # read off at the first position alone
        side = type(side)(target=False, part=FIRST)
        row = account.values[stream].value[:1]
        stream = account.record("head.first", side.stream, {"kind": "first", "input": stream}, "x at place 0", row)
    if isinstance(head.transform, Transform):
        at, last = "head.transform", head.transform
        dense = account.linear(f"{at}.dense", side.stream, last.dense, stream, "x W")
        act, value = account.activation(dense, gated=False), account.seen.inputs[f"{at}.norm"]
        value = value if config.labels else value[0]
        formed = account.record(f"{at}.activated", side.stream, act, f"{config.activation}(dense)", value)
        stream = account.same(at, account.norm(f"{at}.norm", side.stream, last.norm, formed), "norm(activated)")
    axes, weight, bias = (side.stream[0], size), *map(account.weights.name, (head.weight, head.bias))
    op = {"kind": "linear", "input": stream, "weight": weight, "bias": bias, "rows": [0, len(head.weight)]}
    formula = "x Eᵀ" if config.tied else "x W_vocab" if size == "vocab" else "x W_label"
    logits = account.record("logits", axes, op | {"heads": None}, with_bias(formula, bias), values["head"])
    shares: Op = {"kind": "softmax", "input": logits, "temperature": temperature}
    formula = "softmax(logits)" if temperature == 1 else f"softmax(logits / {temperature:g})"
    account.record("probabilities", axes, shares, formula, (account.values[logits].value / temperature).softmax(-1))


def with_bias(formula: str, bias: str | None) -> str:
    """`x W_Q` as `x W_Q + b_Q` where there is a bias."""
    matrix = formula.rpartition(" ")[2]
    return formula if bias is None else f"{formula} + b{matrix[1:] if matrix.startswith('W') else ''}"
