"""What each choice of a part computes, told once: trace, page, command line and handbook read it here.

An expression is a number, a symbol, or an operation and what it acts on: ("+", 1, ("exp", ("-", "u"))) is 1 + exp(-u).
It goes to the page as it stands, is printed there with the model's numbers, and must give the model's value.

    + - * / ^    as in arithmetic; - of one thing is its negative
    √ exp tanh erf max ...    functions that the page knows
    u    the value that an activation acts on;  π
    x    the value that a norm acts on;  g, b    its weight and bias;  ε    its epsilon
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from glassformer.common.strings import Text
from glassformer.model.activation import Activation
from glassformer.model.config import NormType

Expression: TypeAlias = "str | float | tuple[Expression, ...]"
Row: TypeAlias = "dict[str, tuple[str, Expression]]"

SIGNS = {"+": (1, " + "), "-": (1, " - "), "*": (2, " · "), "/": (2, " / ")}
RAISED: dict[Expression, str] = {2: "²", 3: "³"}


@dataclass(frozen=True)
class Part:
    """`row` names the numbers that all values of a position share: the mean, sum or max of an expression in x."""

    expression: Expression
    why: Text
    row: Row = field(default_factory=dict)

    @property
    def formula(self) -> str:
        return printed(self.expression)


ACTIVATIONS: dict[Activation, Part] = {
    "relu": Part(
        ("max", 0, "u"),
        Text("what is below zero becomes zero: the original paper's and T5's", "小于零的变成零：原论文、T5 所用"),
    ),
    "gelu": Part(
        ("*", 0.5, "u", ("+", 1, ("erf", ("/", "u", ("√", 2))))),
        Text("relu with a round corner: BERT's and BART's", "拐角圆滑的 relu：BERT、BART 所用"),
    ),
    "gelu_tanh": Part(
        ("*", 0.5, "u", ("+", 1, ("tanh", ("*", ("√", ("/", 2, "π")), ("+", "u", ("*", 0.044715, ("^", "u", 3))))))),
        Text("gelu by a nearby curve: GPT-2's, and T5's gated one", "gelu 的近似：GPT-2 和带门的 T5 所用"),
    ),
    "silu": Part(
        ("/", "u", ("+", 1, ("exp", ("-", "u")))),
        Text("also called swish: Marian's; with a gate, SwiGLU", "又名 swish：Marian 所用；加上门就是 SwiGLU"),
    ),
}

NORMS: dict[NormType, Part] = {
    "layer": Part(
        ("+", ("*", ("/", ("-", "x", "mean"), ("√", ("+", "variance", "ε"))), "g"), "b"),
        Text(
            "each position brought to mean 0 and variance 1, then to a learnt scale and shift",
            "每个位置先归一到均值 0、方差 1，再乘以学得的缩放、加上学得的平移",
        ),
        {"mean": ("mean", "x"), "variance": ("mean", ("^", ("-", "x", "mean"), 2))},
    ),
    "rms": Part(
        ("*", ("/", "x", ("√", ("+", "mean(x²)", "ε"))), "g"),
        Text(
            "each position divided by its root mean square, then scaled as learnt",
            "每个位置除以自己的均方根，再乘以学得的缩放",
        ),
        {"mean(x²)": ("mean", ("^", "x", 2))},
    ),
}


def printed(expression: Expression, above: int = 0) -> str:
    """The expression as a reader writes it, in brackets if what is around it binds tighter."""
    if not isinstance(expression, tuple):
        return str(expression)
    name, *parts = expression
    if name == "^" and parts[1] in RAISED:
        return f"{printed(parts[0], 3)}{RAISED[parts[1]]}"
    if name == "-" and len(parts) == 1:
        return f"-{printed(parts[0], 3)}"
    if name not in SIGNS:
        return f"{name}({', '.join(map(printed, parts))})"
    rank, sign = SIGNS[name]
    first, *rest = parts
    told = sign.join((printed(first, rank), *(printed(part, rank + (name in "-/")) for part in rest)))
    return f"({told})" if rank < above else told
