"""The formulas of a trace, for people: what each choice of a part computes, and the words for axes and operations, in
English and in Chinese. Trace, page, command line and handbook read them here.

An expression is a number, a symbol, or an operation and its operands: ("+", 1, ("exp", ("-", "u"))) is 1 + exp(-u).
The page gets it unchanged and prints it with the model's numbers; it must give the model's value.

    + - * / ^    as in arithmetic; - of one thing is its negative
    √ exp tanh erf max ...    functions that the page has
    u    the value that an activation acts on;  π
    x    the value that a norm acts on;  g, b    its weight and bias;  ε    its epsilon
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from glassformer.common.strings import Language, Text
from glassformer.model.config import Activation, NormType

Expression: TypeAlias = "str | float | tuple[Expression, ...]"
Row: TypeAlias = "dict[str, tuple[str, Expression]]"

SIGNS = {"+": (1, " + "), "-": (1, " - "), "*": (2, " · "), "/": (2, " / ")}
RAISED: dict[Expression, str] = {2: "²", 3: "³"}


@dataclass(frozen=True)
class Part:
    """An activation or a norm; `row` names numbers of a whole position: the mean, sum or max of an expression in x."""

    expression: Expression
    why: Text
    row: Row = field(default_factory=dict)

    @property
    def formula(self) -> str:
        return format_expression(self.expression)


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


def format_expression(expression: Expression, above: int = 0) -> str:
    """The expression as text, in brackets if the operator around it binds tighter."""
    if not isinstance(expression, tuple):
        return str(expression)
    name, *parts = expression
    if name == "^" and parts[1] in RAISED:
        return f"{format_expression(parts[0], 3)}{RAISED[parts[1]]}"
    if name == "-" and len(parts) == 1:
        return f"-{format_expression(parts[0], 3)}"
    if name not in SIGNS:
        return f"{name}({', '.join(map(format_expression, parts))})"
    rank, sign = SIGNS[name]
    first, *rest = parts
    text = sign.join(
        (format_expression(first, rank), *(format_expression(part, rank + (name in "-/")) for part in rest))
    )
    return f"({text})" if rank < above else text


AXES: dict[str, str] = {
    "sentence": "句",
    "head": "头",
    "query:src": "查询:源",
    "query:tgt": "查询:目标",
    "key:src": "键:源",
    "key:tgt": "键:目标",
    "position:src": "位置:源",
    "position:tgt": "位置:目标",
    "position:square": "位置:图块",
    "position:first": "位置:首位",
    "query": "查询",
    "key": "键",
    "position": "位置",
    "pixel": "像素",
    "label": "标签",
    "dim": "头内维",
    "channel": "通道",
    "hidden": "隐层",
    "vocab": "词表",
    "out": "输出",
    "in": "输入",
}

# The words within formulas; the rest is the same in every language.
FORMULAS: dict[str, str] = {
    "heads side by side": "各头并排",
    "the stream after this layer": "这一层之后的残差流",
    " where visible, else -∞": "，可见处保留，其余为 -∞",
    "norm of the sum": "和的归一化",
    "what cross-attention reads": "交叉注意力读取的内容",
    "1 where key ≤ query and the key is a real token": "键 ≤ 查询且键是真实词元处为 1",
    "1 where key ≤ query": "键 ≤ 查询处为 1",
    "1 where the key is a real token": "键是真实词元处为 1",
    "1 everywhere": "处处为 1",
    " turned by its position": " 按位置旋转",
    " · value, the halves of up": " · value，up 的前后两半",
    ", but heads": "，但头",
    "set by": "设定自",
    "learnt": "学得",
    "pixels of the square": "图块的像素",
    "first, then the squares": "先是学得的首个向量，再是各图块",
    "x at place 0": "x 的第 0 位",
}

# What each kind of operation is for.
WHY: dict[str, Text] = {
    "lookup": Text("each token's row of a learnt table", "每个词元在一张学得的表里对应的那一行"),
    "pixels": Text("what was given: the image, cut into squares", "给定的输入：切成图块的图像"),
    "prepend": Text(
        "a learnt vector before the squares: it gathers the whole", "图块之前放一个学得的向量，用来汇集整体"
    ),
    "first": Text("the first place speaks for the whole", "由首位代表整体"),
    "scale": Text("the same numbers, all multiplied alike", "所有数乘以同一个系数"),
    "positions": Text("one row per position: where a token stands", "每个位置一行：词元站在哪里"),
    "add": Text("number by number, what each part brings is added", "各部分的贡献逐个相加"),
    "linear": Text("every number is a weighted sum of all its inputs", "每个数都是全部输入的加权和"),
    "rotation": Text("the angles by which each position turns", "每个位置旋转的角度"),
    "rotate": Text(
        "pairs of numbers turned by an angle that grows with the position", "两两成对，按随位置增大的角度旋转"
    ),
    "products": Text("how well each query matches each key, as a dot product", "每个查询与每个键有多匹配：求点积"),
    "mask": Text("what a query must not see is set to minus infinity", "查询不该看到的位置设为负无穷"),
    "softmax": Text("scores become shares that sum to one", "分数变成加起来等于一的份额"),
    "context": Text("the values of the keys, mixed by those shares", "按这些份额把各个键的值混合起来"),
    "merge": Text("the heads' results side by side", "把各个头的结果并排放在一起"),
    **{f"{kind}_norm": part.why for kind, part in NORMS.items()},
    "activation": Text("what bends the straight lines: a curve per number", "打破线性：逐个数过一条曲线"),
    "same": Text("the same value under the name of the whole part", "同一个值，换成整个零件的名称"),
    "visible": Text("1 where a query may see a key, 0 where not", "查询可以看到键的地方为 1，否则为 0"),
    "alibi": Text(
        "the further away, the lower the score, each head with a slope of its own",
        "离得越远分数越低，每个头有自己的斜率",
    ),
    "relative": Text(
        "a learnt term for every distance, far ones in common groups", "每种距离一个学得的偏置，远的合成一组"
    ),
    "replaced": Text("set by a change, not computed", "由改动直接设定，不是算出来的"),
}


def translated(formula: str, lang: Language) -> str:
    """A formula with its words in a language."""
    if lang == "zh":
        for english, chinese in FORMULAS.items():
            formula = formula.replace(english, chinese)
    return formula
