"""What is computed, in order: each row names a value, its axes, its formula and what it is made from.

A name is a place in the model's module tree: the value that module returns, the weight it holds, or, with `.input` at
the end, the value it is given. Only `src`, `src_mask`, `tgt`, `labels`, `probabilities` and `loss` lie outside the
model.

`kind` says which arithmetic the step does; `sums` writes a cell of each kind out in numbers.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "given", "weight", "lookup", "sinusoid", "embed", "linear", "products", "scale", "mask", "softmax",
    "mix", "merge", "add", "norm", "relu", "same", "logits", "probabilities", "loss",
]  # fmt: skip


class Row(NamedTuple):
    name: str
    kind: Kind
    axes: tuple[str, ...]
    formula: str
    inputs: tuple[str, ...] = ()


def embedding(stack: str, ids: str, stream: str) -> list[Row]:
    at, axes = f"{stack}.embedding", ("sentence", ids, "model")
    places = axes if stack == "encoder" else axes[1:]  # without a mask, all sentences share their places
    tokens, positions = f"{at}.tokens", f"{at}.positions"
    return [
        Row(tokens, "lookup", axes, f"E[{ids}]", (ids, "encoder.embedding.tokens.weight")),
        Row(positions, "sinusoid", places, "P = sin p, cos p, sin(p/100), cos(p/100)"),
        Row(at, "embed", axes, f"{stream} = √4·E[{ids}] + P", (tokens, positions)),
    ]


def attention(at: str, queries: str, keys: str, stream: str, source: str, inputs: tuple[str, str]) -> list[Row]:
    """`stream` asks and `source` answers; the two are one in self-attention."""
    heads, merged = ("sentence", "head"), ("sentence", queries, "model")
    cells = (*heads, f"query:{queries}", f"key:{keys}")
    weight = f"{at}.projection.weight"
    return [
        Row(weight, "weight", ("qkv", "model"), "W_Q, W_K, W_V"),
        Row(f"{at}.q", "linear", (*heads, f"query:{queries}", "d"), f"Q = {stream} W_Q", (inputs[0], weight)),
        Row(f"{at}.k", "linear", (*heads, f"key:{keys}", "d"), f"K = {source} W_K", (inputs[1], weight)),
        Row(f"{at}.v", "linear", (*heads, f"key:{keys}", "d"), f"V = {source} W_V", (inputs[1], weight)),
        Row(f"{at}.products", "products", cells, "Q Kᵀ", (f"{at}.q", f"{at}.k")),
        Row(f"{at}.scores", "scale", cells, "Q Kᵀ / √2", (f"{at}.products",)),
        Row(f"{at}.masked", "mask", cells, "Q Kᵀ / √2 + (0 | -inf)", (f"{at}.scores",)),
        Row(f"{at}.pattern", "softmax", cells, "A = softmax(masked)", (f"{at}.masked",)),
        Row(f"{at}.context", "mix", (*heads, f"query:{queries}", "d"), "A V", (f"{at}.pattern", f"{at}.v")),
        Row(f"{at}.output.input", "merge", merged, "C = [A₀V₀ | A₁V₁]", (f"{at}.context",)),
        Row(f"{at}.output.weight", "weight", ("model", "model"), "W_O"),
        Row(f"{at}.output", "linear", merged, "C W_O", (f"{at}.output.input", f"{at}.output.weight")),
    ]  # fmt: skip


def add_and_norm(at: str, ids: str, before: str, added: str, after: str, inputs: tuple[str, str]) -> list[Row]:
    axes = ("sentence", ids, "model")
    return [
        Row(f"{at}.norm.input", "add", axes, f"r = {before} + {added}", inputs),
        Row(f"{at}.norm", "norm", axes, f"{after} = (r - μ) / √(σ² + ε)", (f"{at}.norm.input",)),
    ]


def feed_forward(at: str, ids: str, stream: str, given: str) -> list[Row]:
    wide, axes = ("sentence", ids, "ff"), ("sentence", ids, "model")
    return [
        Row(f"{at}.up.weight", "weight", ("ff", "model"), "W₁"),
        Row(f"{at}.up", "linear", wide, f"{stream} W₁", (given, f"{at}.up.weight")),
        Row(f"{at}.hidden", "relu", wide, f"H = max(0, {stream} W₁)", (f"{at}.up",)),
        Row(f"{at}.down.weight", "weight", ("model", "ff"), "W₂"),
        Row(f"{at}.down", "linear", axes, "H W₂", (f"{at}.hidden", f"{at}.down.weight")),
    ]


def all_rows() -> list[Row]:
    enc, dec = "encoder.blocks.0", "decoder.blocks.0"
    enc_1, enc_2 = f"{enc}.self_attention_residual", f"{enc}.feed_forward_residual"
    dec_1, dec_2, dec_3 = (f"{dec}.{part}_residual" for part in ("self_attention", "cross_attention", "feed_forward"))
    words = ("sentence", "tgt", "vocabulary")
    x, y = "encoder.embedding", "decoder.embedding"
    return [
        Row("src", "given", ("sentence", "src"), "index(word)"),
        Row("src_mask", "given", ("sentence", "src"), "src ≠ 0"),
        Row("tgt", "given", ("sentence", "tgt"), "index(word)"),
        Row("labels", "given", ("sentence", "tgt"), "labels[t] = tgt[t + 1]"),
        Row("encoder.embedding.tokens.weight", "weight", ("vocabulary", "model"), "E"),
        *embedding("encoder", "src", "x₀"),
        *attention(f"{enc}.self_attention", "src", "src", "x₀", "x₀", (x, x)),
        *add_and_norm(enc_1, "src", "x₀", "C W_O", "x₁", (x, f"{enc}.self_attention.output")),
        *feed_forward(f"{enc}.feed_forward", "src", "x₁", f"{enc_1}.norm"),
        *add_and_norm(enc_2, "src", "x₁", "H W₂", "x₂", (f"{enc_1}.norm", f"{enc}.feed_forward.down")),
        Row("encoder", "same", ("sentence", "src", "model"), "M = x₂", (f"{enc_2}.norm",)),
        *embedding("decoder", "tgt", "y₀"),
        *attention(f"{dec}.self_attention", "tgt", "tgt", "y₀", "y₀", (y, y)),
        *add_and_norm(dec_1, "tgt", "y₀", "C W_O", "y₁", (y, f"{dec}.self_attention.output")),
        *attention(f"{dec}.cross_attention", "tgt", "src", "y₁", "M", (f"{dec_1}.norm", "encoder")),
        *add_and_norm(dec_2, "tgt", "y₁", "C W_O", "y₂", (f"{dec_1}.norm", f"{dec}.cross_attention.output")),
        *feed_forward(f"{dec}.feed_forward", "tgt", "y₂", f"{dec_2}.norm"),
        *add_and_norm(dec_3, "tgt", "y₂", "H W₂", "y₃", (f"{dec_2}.norm", f"{dec}.feed_forward.down")),
        Row("head", "logits", words, "logits = y₃ Eᵀ", (f"{dec_3}.norm", "encoder.embedding.tokens.weight")),
        Row("probabilities", "probabilities", words, "p = softmax(logits)", ("head",)),
        Row("loss", "loss", (), "-Σ ln p[label] / n", ("probabilities", "labels")),
    ]  # fmt: skip
