"""Where the weights start: Xavier, as shipped, against starts that are too small, too large, or all alike.

Before training, the variance of what the attention's first projection makes of values of variance one, and how far
softmax is decided by it; then training from each start.

Shapes: B batch, T positions, D model width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Text, join
from glassformer.model import EncoderOnly
from glassformer.model.transformer import share_weights

STEPS, RATE, LENGTH = 150, 1e-2, 5
SMALL, LARGE, ALIKE = 0.1, 5.0, 0.1

NAMES = {
    "xavier": Text("Xavier", "Xavier"),
    "small": Text(f"{SMALL} of Xavier", f"Xavier 的 {SMALL} 倍"),
    "large": Text(f"{LARGE:.0f} times Xavier", f"Xavier 的 {LARGE:.0f} 倍"),
    "alike": Text(f"all {ALIKE}", f"全为 {ALIKE}"),
    "zero": Text("all zero", "全为零"),
}

STARTS: dict[str, Callable[[Tensor], Tensor]] = {
    "xavier": lambda weight: weight,
    "small": lambda weight: SMALL * weight,
    "large": lambda weight: LARGE * weight,
    "alike": lambda weight: torch.full_like(weight, ALIKE),
    "zero": torch.zeros_like,
}


@torch.no_grad()
def start(model: EncoderOnly, change: Callable[[Tensor], Tensor]) -> EncoderOnly:
    """Every matrix of a linear layer changed; embeddings, norms and biases stay."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight.copy_(change(module.weight))
    return model


@torch.no_grad()
def first_layer_stats(model: EncoderOnly, seed: int) -> tuple[float, float]:
    """In the first layer of a fresh model: the variance of the queries, and the largest attention weight of a query."""
    watched = share_weights(model)  # hooks on a copy, so that training keeps the fast way
    attention = toy.blocks(watched)[0].self_attention
    queries, patterns = toy.record(attention.q), toy.record(attention.pattern)
    watched(next(toy.reversals(seed, 1))[0])
    return float(queries[0].var()), float(patterns[0].amax(-1).mean())


def run(seed: int, *, build: toy.Build = EncoderOnly) -> Finding:
    curves: dict[str, Sequence[float]] = {}
    variances, weights = {}, {}
    for name, change in STARTS.items():
        model = start(build(toy.small_config(seed, layers=1)), change)
        variances[name], weights[name] = first_layer_stats(model, seed)
        curves[name] = toy.learn(model, toy.reversals(seed, STEPS, 16, LENGTH), RATE)
    losses = {name: toy.final_loss(curve) for name, curve in curves.items()}
    variance = Text("variance of the queries before training", "训练前查询的方差")
    largest = Text("largest attention weight before training", "训练前最大的注意力权重")
    numbers = {
        **{join(variance, NAMES[name]): value for name, value in variances.items()},
        **{join(largest, NAMES[name]): weights[name] for name in ("xavier", "large")},
        **{join(toy.loss_after(STEPS), NAMES[name]): value for name, value in losses.items()},
        **toy.UNIFORM_NUMBERS,
    }
    too_large = Text(
        "too large a start learns less in the same steps (difference)", "起点过大，同样步数学得更少（损失之差）"
    )
    too_small = Text("so does too small a start (difference)", "起点过小也一样（损失之差）")
    checks = [
        Check(Text("Xavier keeps a variance of one", "Xavier 使方差保持为 1"), variances["xavier"], low=0.7, high=1.4),
        Check(Text("from Xavier, the task is learnt", "从 Xavier 开始能学会"), losses["xavier"], high=0.2),
        Check(Text("from weights that are all alike it is not", "权重全都一样则学不会"), losses["alike"], low=1.0),
        Check(Text("nor from zeros", "全为零也学不会"), losses["zero"], low=2.0),
        Check(too_large, losses["large"] - losses["xavier"], low=0.5),
        Check(too_small, losses["small"] - losses["xavier"], low=0.5, extent=True),
    ]
    quoted = {f"loss_{name}": value for name, value in losses.items()}
    for name in ("xavier", "large"):
        quoted |= {f"variance_{name}": variances[name], f"largest_{name}": weights[name]}
    summary = Text(
        "From Xavier, queries have a variance of {variance_xavier:.2f} and the loss comes to {loss_xavier:.2f}. From "
        f"{LARGE:.0f} times that, the variance is {{variance_large:.0f}}, a query's largest weight is "
        "{largest_large:.2f} in place of {largest_xavier:.2f} before anything is learnt, and the loss comes to "
        "{loss_large:.2f} in the same steps. Zeros stay at {loss_zero:.2f} (knowing nothing: "
        f"{toy.UNIFORM:.2f}), weights that are all {ALIKE} at {{loss_alike:.2f}}. A tenth of Xavier is forgiven: it "
        "comes to {loss_small:.2f}.",
        "从 Xavier 开始，查询的方差为 {variance_xavier:.2f}，损失降到 {loss_xavier:.2f}。"
        f"放大 {LARGE:.0f} 倍后，方差为 {{variance_large:.0f}}，什么都没学时，一个查询的最大权重已是 "
        "{largest_large:.2f}（Xavier 为 {largest_xavier:.2f}），同样步数后损失为 {loss_large:.2f}。"
        f"全为零时停在 {{loss_zero:.2f}}（一无所知为 {toy.UNIFORM:.2f}），全为 {ALIKE} 时为 {{loss_alike:.2f}}。"
        "缩小到十分之一则无大碍：降到 {loss_small:.2f}。",
    )
    return Finding(numbers, checks, figure(curves), summary, quoted)


def figure(curves: Mapping[str, Sequence[float]]) -> Figure:
    panel = toy.training_panel(
        Text("Training from each start", "从各种起点训练"),
        [(NAMES[name], curve) for name, curve in curves.items()],
        toy.uniform_line([1, STEPS]),
    )
    return Figure([panel], toy.TASK)


CLAIM = Claim(
    title=Text("Where the weights start", "权重从哪里开始"),
    claim=Text(
        "Xavier initialisation keeps the variance from layer to layer; from weights that are all alike, too small or "
        "too large, a model does not learn.",
        "Xavier 初始化使方差逐层保持不变；权重全都一样、过小或过大，模型就学不会。",
    ),
    prediction=Text(
        "From Xavier the loss comes to zero; from zeros it stays at that of knowing nothing, and from a tenth or from "
        "several times Xavier it falls behind.",
        "从 Xavier 开始，损失降到零；从零开始则停在一无所知的水平；缩小到十分之一或放大数倍都会落后。",
    ),
    change=Text(
        "Norms, which bring a small signal back to one; without them a small start does vanish with depth. Adam, whose "
        "steps do not depend on the size of the gradient. A large start goes on learning, slowly: "
        "after 1,000 steps it stood at 1.95.",
        "归一化会把小信号放大回 1，没有归一化，小的起点会随深度消失；Adam 的步长不取决于梯度大小；"
        "起点过大时仍在慢慢学：1,000 步后为 1.95。",
    ),
)
