"""Depth with residual connections and without them.

The shipped model is built twice from the same weights; in the second, each sublayer's output takes the place of the
stream instead of being added to it. The norms stay where they are, so that the residual is all that differs.

Shapes: B batch, T positions, D model width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import geometric_mean

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, fill, join
from glassformer.model import EncoderOnly
from glassformer.model.layer import Residual

TRAINED = (1, 2, 8)  # layers
AT_START = (1, 4, 12, 24)
DRAWS = 3  # of weights: without residuals, one draw's gradient may be a hundred times another's
STEPS, RATE = 60, 3e-3

NAMES = {
    "with": Text("with residuals", "有残差"),
    "without": Text("without residuals", "无残差"),
    "neither": Text("without residuals and norms", "无残差、无归一化"),
}


class NoResidual(nn.Module):
    """A residual connection without its residual: x is gone once the sublayer has seen it."""

    def __init__(self, residual: Residual, norm: bool) -> None:
        super().__init__()
        self.norm = residual.norm if norm else nn.Identity()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return sublayer(self.norm(x))


def remove_residuals(model: EncoderOnly, norm: bool = True) -> EncoderOnly:
    for block in toy.blocks(model):
        for name in ("self_attention_residual", "feed_forward_residual"):
            setattr(block, name, NoResidual(getattr(block, name), norm))
    return model


def first_gradient(build: toy.Build, layers: int, seed: int) -> float:
    """The norm of the loss's gradient at the first layer's matrices, as the geometric mean of several draws."""
    norms = []
    for pair, draw in zip(toy.reversals(seed, DRAWS, batch=8), range(DRAWS), strict=True):
        model = build(toy.small_config(DRAWS * seed + draw, layers))
        matrices = [p for p in toy.blocks(model)[0].parameters() if p.dim() > 1]
        gradients = torch.autograd.grad(toy.mean_loss(model, pair), matrices)
        norms.append(float(torch.cat([gradient.flatten() for gradient in gradients]).norm()))
    return geometric_mean(norms)


@torch.no_grad()
def apart(model: EncoderOnly, seed: int) -> float:
    """How far the positions of a sentence differ at the top: one minus the mean cosine of two of them."""
    ids, _ = next(toy.reversals(seed, 1))
    hidden = F.normalize(model.double().encoder(ids), dim=-1)  # (B, T, D); float32 would round the difference away
    length = ids.shape[1]
    together = (hidden @ hidden.mT).sum((1, 2)).mean().item() - length  # each position's cosine with itself left out
    return 1 - together / (length * (length - 1))


def run(seed: int, *, build: toy.Build = EncoderOnly) -> Finding:
    kinds: dict[str, toy.Build] = {
        "with": build,
        "without": lambda config: remove_residuals(EncoderOnly(config)),
        "neither": lambda config: remove_residuals(EncoderOnly(config), norm=False),
    }

    def loss(kind: str, layers: int) -> float:
        return toy.final_loss(toy.learn_reversals(kinds[kind](toy.small_config(seed, layers)), seed, STEPS, RATE))

    gradients = {kind: [first_gradient(make, layers, seed) for layers in AT_START] for kind, make in kinds.items()}
    losses = {kind: {layers: loss(kind, layers) for layers in TRAINED} for kind in ("with", "without")}
    one, two, deep, deepest = *TRAINED[:2], TRAINED[-1], AT_START[-1]
    differ = {
        kind: {layers: apart(kinds[kind](toy.small_config(seed, layers)), seed) for layers in TRAINED}
        for kind in ("with", "without")
    }
    ratio = gradients["without"][-1] / gradients["with"][-1]
    bare_ratio = gradients["neither"][-1] / gradients["with"][-1]
    known = {kind: {layers: toy.UNIFORM - value for layers, value in losses[kind].items()} for kind in losses}
    difference = Text("difference of positions after {0} layers, {1}", "{0} 层之后各位置之间的差别，{1}")
    gradient = Text(f"first layer's gradient, {deepest} layers", f"首层梯度，{deepest} 层")
    numbers = {
        **{
            join(toy.loss_after(STEPS), Text(f"depth {layers}", f"{layers} 层"), NAMES[kind]): value
            for kind, by_depth in losses.items()
            for layers, value in by_depth.items()
        },
        **toy.UNIFORM_NUMBERS,
        **{
            fill(difference, layers, NAMES[kind]): by_depth[layers]
            for kind, by_depth in differ.items()
            for layers in (two, deep)
        },
        join(gradient, Text("without / with residuals", "无残差 / 有残差")): ratio,
        join(gradient, Text("without residuals and norms / with both", "无残差也无归一化 / 两者都有")): bare_ratio,
    }
    learns = Text(f"with residuals, {deep} layers learn", f"有残差时，{deep} 层能学习")
    stuck = Text(f"without, {deep} layers learn nothing", f"无残差时，{deep} 层什么也学不到")
    no_harm = Text(f"with residuals, {deep} layers do no worse than one", f"有残差时，{deep} 层不比 1 层差")
    harm = Text(f"without, {deep} layers do worse than one", f"无残差时，{deep} 层比 1 层差")
    distinct = Text("with residuals, positions stay different", "有残差时，各位置仍有区别")
    same = Text("without, they become the same vector", "无残差时，各位置变成同一个向量")
    vanishes = Text(
        "without residuals the first layer's gradient vanishes (powers of ten against the one with them)",
        "无残差时，首层的梯度消失（与有残差时之比，取以 10 为底的对数）",
    )
    always = Text("residuals help a single layer too", "只有一层时残差也有帮助")
    checks = [
        Check(learns, known["with"][deep], low=0.35),
        Check(stuck, known["without"][deep], high=0.15),
        Check(no_harm, losses["with"][deep] - losses["with"][one], high=0.1),
        Check(harm, losses["without"][deep] - losses["without"][one], low=0.35),
        Check(distinct, differ["with"][deep], low=0.08),
        Check(same, differ["without"][deep], high=0.02),
        Check(vanishes, math.log10(ratio), high=-1.0, extent=True),
        Check(always, losses["without"][one] - losses["with"][one], low=0.0, extent=True),
    ]
    quoted = {"power": math.log10(ratio), "bare_power": math.log10(bare_ratio)}
    for kind, ending in (("with", ""), ("without", "_without")):
        quoted |= {f"one{ending}": losses[kind][one], f"deep{ending}": losses[kind][deep]}
        quoted |= {f"apart_two{ending}": differ[kind][two], f"apart_deep{ending}": differ[kind][deep]}
    return Finding(numbers, checks, figure(losses, gradients), SUMMARY, quoted)


SUMMARY = Text(
    f"With residuals {TRAINED[-1]} layers come to a loss of {{deep:.2f}}, without to {{deep_without:.2f}} (knowing "
    f"nothing: {toy.UNIFORM:.2f}); a single layer comes to {{one:.2f}} and {{one_without:.2f}}. At {AT_START[-1]} "
    "layers the first layer's gradient without residuals is 10 to the {power:.1f} times the one with them, "
    "and 10 to the {bare_power:.1f} times when the norms go too. What is lost without residuals is the difference "
    "between positions: "
    f"{{apart_two_without:.3f}} is left after {TRAINED[1]} layers and {{apart_deep_without:.1g}} after {TRAINED[-1]}, "
    "against {apart_two:.2f} and {apart_deep:.2f}.",
    f"{TRAINED[-1]} 层时，有残差损失降到 {{deep:.2f}}，无残差为 {{deep_without:.2f}}"
    f"（一无所知时为 {toy.UNIFORM:.2f}）；只有一层时分别为 {{one:.2f}} 与 {{one_without:.2f}}。"
    f"{AT_START[-1]} 层时，无残差的首层梯度是有残差的 10 的 {{power:.1f}} 次方倍；"
    "连归一化也去掉，则为 10 的 {bare_power:.1f} 次方倍。"
    f"无残差时丢掉的是位置之间的差别：{TRAINED[1]} 层之后剩 {{apart_two_without:.3f}}，{TRAINED[-1]} 层之后剩 "
    "{apart_deep_without:.1g}；有残差时为 {apart_two:.2f} 与 {apart_deep:.2f}。",
)


def figure(losses: Mapping[str, Mapping[int, float]], gradients: Mapping[str, list[float]]) -> Figure:
    layers = Text("layers", "层数")
    reached = [Series(NAMES[kind], list(by_depth), list(by_depth.values())) for kind, by_depth in losses.items()]
    arriving = [Series(NAMES[kind], AT_START, norms) for kind, norms in gradients.items()]
    left = Panel(
        Text("Loss after a short training", "短时间训练后的损失"),
        layers,
        toy.LOSS,
        [*reached, toy.uniform_line(TRAINED)],
    )
    right = Panel(
        Text("Gradient that reaches the first layer at the start", "训练开始时到达首层的梯度"),
        layers,
        Text(f"norm, geometric mean of {DRAWS} draws", f"范数（{DRAWS} 次初始化的几何平均）"),
        arriving,
        log_y=True,
    )
    return Figure([left, right], toy.TASK)


CLAIM = Claim(
    title=Text("Residual connections and depth", "残差连接与深度"),
    claim=Text(
        "Residual connections make depth trainable; without them a deep stack does not learn, since the gradient does "
        "not reach the first layers.",
        "残差连接使深层网络可以训练；没有它，深的堆叠学不动，因为梯度到不了前面的层。",
    ),
    prediction=Text(
        "With residuals more layers do no harm. Without them the loss rises with depth to that of knowing nothing, "
        "and the first layer's gradient goes to zero.",
        "有残差时，加深无害；无残差时，损失随深度上升，直到一无所知的水平，首层梯度趋于零。",
    ),
    change=Text(
        "One or two layers; deep stacks without norms, where the gradient does vanish; initialisations that start each "
        "layer near the identity; a much longer training.",
        "只有一两层；没有归一化的很深的堆叠（那时梯度确实会消失）；让每层初始接近恒等映射的初始化；长得多的训练。",
    ),
)
