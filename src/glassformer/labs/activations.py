"""ReLU, GELU and SwiGLU in a feed-forward network, at equal parameters.

The shipped feed-forward network learns functions of random vectors, on its own. A gated network has three matrices
where a plain one has two, so it gets two thirds of the width. The learning rate falls to zero, so that what is
compared is where learning has ended.

Shapes: B vectors, D model width.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Text, bars, fill, join
from glassformer.model import ModelConfig
from glassformer.model.config import Activation
from glassformer.model.layer import FeedForward
from glassformer.model.transformer import initialise

WIDTH, HIDDEN, BATCH = 8, 36, 64
STEPS, RATE, EXAM = 300, 3e-2, 1000


class Variant(NamedTuple):
    name: Text
    activation: Activation
    gated: bool = False


VARIANTS = {
    "relu": Variant(Text("ReLU", "ReLU"), "relu"),
    "gelu": Variant(Text("GELU", "GELU"), "gelu"),
    "swiglu": Variant(Text("SwiGLU", "SwiGLU"), "silu", gated=True),
}
MODERN = ("gelu", "swiglu")
ERROR = Text("error", "误差")


class Task(NamedTuple):
    name: Text
    function: Callable[[Tensor], Tensor]


TASKS = {
    "smooth": Task(Text("products of neighbours (smooth)", "相邻数的乘积（光滑）"), lambda x: x * x.roll(1, -1)),
    "kinked": Task(Text("absolute values (with a kink)", "绝对值（有折点）"), torch.abs),
}

Part = Callable[[ModelConfig], FeedForward]


def fit(kind: Variant, task: Task, seed: int, part: Part) -> tuple[float, int]:
    """The error on vectors not seen in training, over that of the best constant; and the number of parameters."""
    hidden = HIDDEN * 2 // 3 if kind.gated else HIDDEN
    config = toy.small_config(seed, d_model=WIDTH, d_ff=hidden, activation=kind.activation, gated=kind.gated)
    network = part(config)
    initialise(network, config)
    generator = torch.Generator().manual_seed(seed)

    def error(network: FeedForward, vectors: int) -> Tensor:
        x = torch.randn(vectors, WIDTH, generator=generator)
        y = task.function(x)
        missed: Tensor = (network(x) - y).square().mean() / (y - y.mean()).square().mean()
        return missed

    toy.learn(network, itertools.repeat(BATCH, STEPS), RATE, loss=error, fall=STEPS)
    with torch.no_grad():
        return float(error(network, EXAM)), sum(weight.numel() for weight in network.parameters())


def run(seed: int, *, part: Part = FeedForward) -> Finding:
    fitted = {(task, kind): fit(VARIANTS[kind], TASKS[task], seed, part) for task in TASKS for kind in VARIANTS}
    errors = {key: error for key, (error, _) in fitted.items()}
    sizes = {kind: fitted["smooth", kind][1] for kind in VARIANTS}
    numbers = {
        **{join(ERROR, TASKS[task].name, VARIANTS[kind].name): value for (task, kind), value in errors.items()},
        **{join(Text("parameters", "参数量"), VARIANTS[kind].name): float(size) for kind, size in sizes.items()},
    }
    ratio = {(task, kind): errors[task, kind] / errors[task, "relu"] for task in TASKS for kind in MODERN}
    lower = Text("{0}: {1}'s error / ReLU's", "{0}：{1} 的误差 / ReLU 的误差")
    same_size = Text("parameters, most / fewest", "参数量，最多 / 最少")
    checks = [
        Check(same_size, max(sizes.values()) / min(sizes.values()), high=1.02, every=True),
        *(
            Check(fill(lower, TASKS[task].name, VARIANTS[kind].name), value, high=0.9, extent=task == "kinked")
            for (task, kind), value in ratio.items()
        ),
    ]
    quoted = {f"{task}_{kind}": value for (task, kind), value in errors.items()}
    summary = Text(
        "At equal parameters, products are fitted to an error of {smooth_relu:.1%} with ReLU, {smooth_gelu:.1%} with "
        "GELU and {smooth_swiglu:.1%} with SwiGLU, whose gate is a product itself. Absolute values, which two ReLUs "
        "make exactly, come to {kinked_relu:.2%}, {kinked_gelu:.2%} and {kinked_swiglu:.1%}: the order turns round.",
        "参数量相同时，拟合乘积的误差：ReLU 为 {smooth_relu:.1%}，GELU 为 {smooth_gelu:.1%}，"
        "SwiGLU 为 {smooth_swiglu:.1%}，它的门本身就是乘积。绝对值可由两个 ReLU 精确得到，"
        "误差依次为 {kinked_relu:.2%}、{kinked_gelu:.2%}、{kinked_swiglu:.1%}：次序反了过来。",
    )
    return Finding(numbers, checks, figure(errors), summary, quoted)


def figure(errors: Mapping[tuple[str, str], float]) -> Figure:
    return Figure(
        [
            Panel(
                task.name,
                Text("activation", "激活函数"),
                Text("error / that of a constant", "误差 / 输出常数的误差"),
                [bars(ERROR, [errors[name, kind] for kind in VARIANTS])],
                ticks=[kind.name for kind in VARIANTS.values()],
            )
            for name, task in TASKS.items()
        ],
        Text(
            "The shipped feed-forward network on its own, on vectors not seen in training.",
            "单独训练本项目的前馈网络，用未见过的向量检验。",
        ),
    )


CLAIM = Claim(
    title=Text("Activations at equal parameters", "参数量相同时的激活函数"),
    claim=Text(
        "GELU and SwiGLU do better than ReLU, so modern models use them in its place.",
        "GELU 和 SwiGLU 优于 ReLU，因此现代模型用它们取代 ReLU。",
    ),
    prediction=Text(
        "At equal parameters, networks with GELU and with SwiGLU end at a lower error than with ReLU, whatever the "
        "function to be learnt.",
        "参数量相同时，无论要学什么函数，用 GELU 和 SwiGLU 的网络最后的误差都低于 ReLU。",
    ),
    change=Text(
        "The function: smooth ones and products suit GELU and a gate, kinks and straight pieces suit ReLU. Whether "
        "text is of the first kind is a question for large models; this lab cannot answer it.",
        "取决于函数：光滑函数和乘积适合 GELU 与门控，折点和直线段适合 ReLU。文本属于哪一种，要由大模型来回答，"
        "这个实验回答不了。",
    ),
)
