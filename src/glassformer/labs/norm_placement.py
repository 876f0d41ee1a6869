"""Where the norm stands: before each sublayer (Pre-LN) or after each addition (Post-LN).

First the gradient at initialisation, followed along the stream from the last layer to the first; then training from
the first step at the full learning rate, with and without warm-up.

Shapes: B batch, T positions, D model width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from glassformer.labs import toy
from glassformer.labs.lab import Check, Figure, Finding, Lab, Panel, Series, Text
from glassformer.model import EncoderOnly
from glassformer.model.attention import Attention
from glassformer.model.layer import Block, FeedForward
from glassformer.model.transformer import Embedding

DEEP, TRAINED, SHALLOW = 24, 12, 2  # layers
STEPS, WARMUP, RATE = 60, 40, 3e-3


@dataclass(frozen=True)
class Descent:
    """The gradient of the loss at the stream before each layer and after the last, first to last."""

    norms: list[float]
    cosines: list[float]  # with the gradient after the last layer: how much of it has come through as it was
    drift: float  # the largest distance from the gradient after the last layer, relative to its norm

    @property
    def ratio(self) -> float:
        return self.norms[0] / self.norms[-1]

    @property
    def weakest(self) -> float:
        return min(self.norms) / self.norms[-1]


def descend(model: EncoderOnly, seed: int) -> Descent:
    stream: list[Tensor] = []
    for module in model.modules():
        if isinstance(module, Embedding | Block):
            module.register_forward_hook(lambda _module, _inputs, output: stream.append(output))
    loss = toy.loss_of(model, next(toy.reversals(seed, 1)))
    gradients = torch.autograd.grad(loss, stream)  # (B, T, D) each
    cosines = [torch.cosine_similarity(gradient, gradients[-1], dim=-1).mean().item() for gradient in gradients]
    norms = [gradient.norm().item() for gradient in gradients]
    drift = max((gradient - gradients[-1]).norm().item() for gradient in gradients) / norms[-1]
    return Descent(norms, cosines, drift)


def silenced(model: EncoderOnly) -> EncoderOnly:
    """The model with sublayers that add nothing: what is left is the path past them."""
    for module in model.modules():
        if isinstance(module, Attention | FeedForward):
            module.register_forward_hook(lambda _module, _inputs, output: output * 0.0)
    return model


def train(model: nn.Module, seed: int, warmup: int = 0) -> list[float]:
    return toy.learn_reversals(model, seed, STEPS, RATE, warmup)


def run(seed: int, *, build: toy.Build = EncoderOnly) -> Finding:
    def model(layers: int, norm: str) -> EncoderOnly:
        return build(toy.small(seed, layers, norm=norm))

    pre, post = (descend(model(DEEP, norm), seed) for norm in ("pre", "post"))
    bare = descend(silenced(model(DEEP, "pre")), seed)
    curves = {
        "pre": train(model(TRAINED, "pre"), seed),
        "post": train(model(TRAINED, "post"), seed),
        "warm": train(model(TRAINED, "post"), seed, WARMUP),
    }
    shallow = {norm: toy.settled(train(model(SHALLOW, norm), seed)) for norm in ("pre", "post")}
    last = {name: toy.settled(losses) for name, losses in curves.items()}
    gradients = {
        Text("first layer's gradient / last layer's", "首层梯度 / 末层梯度"): (pre.ratio, post.ratio),
        Text("weakest layer's gradient / last layer's", "最弱一层的梯度 / 末层梯度"): (pre.weakest, post.weakest),
        Text("cosine of the first and the last gradient", "首层与末层梯度的余弦"): (pre.cosines[0], post.cosines[0]),
    }
    cold, warm = Text("no warm-up", "无预热"), Text(f"{WARMUP} steps of warm-up", f"预热 {WARMUP} 步")
    losses = (
        ("Pre-LN", TRAINED, cold, last["pre"]),
        ("Post-LN", TRAINED, cold, last["post"]),
        ("Post-LN", TRAINED, warm, last["warm"]),
        ("Pre-LN", SHALLOW, cold, shallow["pre"]),
        ("Post-LN", SHALLOW, cold, shallow["post"]),
    )
    numbers = {
        Text(
            "Pre-LN, sublayers silenced: largest relative change of the gradient",
            "Pre-LN，子层静默：梯度的最大相对变化",
        ): bare.drift,
        **{
            Text(f"{norm}, {DEEP} layers: {what.en}", f"{norm}，{DEEP} 层：{what.zh}"): value
            for what, both in gradients.items()
            for norm, value in zip(("Pre-LN", "Post-LN"), both, strict=True)
        },
        **{
            Text(
                f"loss after {STEPS} steps, {norm}, {layers} layers, {start.en}",
                f"{STEPS} 步后的损失，{norm}，{layers} 层，{start.zh}",
            ): loss
            for norm, layers, start, loss in losses
        },
        **toy.NOTHING,
    }
    identity, through, whole, lost, shrunk = (
        Text("past silent sublayers, Pre-LN hands the gradient on unchanged", "子层静默时，Pre-LN 原样传回梯度"),
        Text(
            "Pre-LN: part of the last gradient reaches the first layer as it was",
            "Pre-LN：末层梯度有一部分原样到达首层",
        ),
        Text("Pre-LN: no layer's gradient is weaker than the last one's", "Pre-LN：没有哪一层的梯度弱于末层"),
        Text("Post-LN: none of its direction is left at the first", "Post-LN：到首层时方向已全部丢失"),
        Text("Post-LN: its norm sinks on the way", "Post-LN：途中范数明显下降"),
    )
    learns, stuck = (
        Text("Pre-LN learns without warm-up", "Pre-LN 不预热也能学习"),
        Text("Post-LN learns far less in the same steps", "同样步数内，Post-LN 学到的少得多"),
    )
    even, anywhere, cured = (
        Text("Pre-LN's gradient is the same size in all layers", "Pre-LN 各层梯度大小相同"),
        Text("Post-LN is behind at two layers too", "只有两层时 Post-LN 也落后"),
        Text("with warm-up, Post-LN catches up", "有预热时 Post-LN 能追上"),
    )
    checks = [
        Check(identity, bare.drift, high=1e-5),
        Check(through, pre.cosines[0], low=0.12),
        Check(whole, pre.weakest, low=0.9),
        Check(lost, post.cosines[0], -0.1, 0.1),
        Check(shrunk, post.weakest, high=0.75),
        Check(learns, toy.UNINFORMED - last["pre"], low=0.35),
        Check(stuck, last["post"] - last["pre"], low=0.35),
        Check(even, pre.ratio, 0.5, 2.0, extent=True),
        Check(anywhere, shallow["post"] - shallow["pre"], low=0.35, extent=True),
        Check(cured, last["warm"] - last["pre"], high=0.1, extent=True),
    ]
    summary = Text(
        f"Through {DEEP} layers the gradient keeps a cosine of {pre.cosines[0]:.2f} with itself in Pre-LN and "
        f"{post.cosines[0]:.2f} in Post-LN. In Post-LN its norm sinks to {post.weakest:.2f} of the last layer's; in "
        f"Pre-LN the first layer's is {pre.ratio:.1f} times the last one's. Without warm-up at {TRAINED} layers, "
        f"Pre-LN comes to {last['pre']:.2f} nats and Post-LN to {last['post']:.2f} (knowing nothing: "
        f"{toy.UNINFORMED:.2f}); warm-up takes Post-LN to {last['warm']:.2f}. At {SHALLOW} layers, without: "
        f"{shallow['pre']:.2f} and {shallow['post']:.2f}.",
        f"梯度穿过 {DEEP} 层之后，与出发时的余弦：Pre-LN 为 {pre.cosines[0]:.2f}，Post-LN 为 {post.cosines[0]:.2f}；"
        f"Post-LN 的范数途中降到末层的 {post.weakest:.2f} 倍，Pre-LN 首层的范数是末层的 {pre.ratio:.1f} 倍。"
        f"{TRAINED} 层、不预热时，"
        f"Pre-LN 的损失降到 {last['pre']:.2f}，Post-LN 为 {last['post']:.2f}（一无所知时为 {toy.UNINFORMED:.2f}）；"
        f"加上预热，Post-LN 为 {last['warm']:.2f}。只有 {SHALLOW} 层、不预热时："
        f"{shallow['pre']:.2f} 与 {shallow['post']:.2f}。",
    )
    return Finding(numbers, checks, figure(pre, post, curves), summary)


def figure(pre: Descent, post: Descent, curves: Mapping[str, list[float]]) -> Figure:
    names = {
        "pre": Text("Pre-LN", "Pre-LN"),
        "post": Text("Post-LN", "Post-LN"),
        "warm": Text(f"Post-LN, {WARMUP} steps of warm-up", f"Post-LN，预热 {WARMUP} 步"),
    }
    relative = [
        Series(names[name], range(DEEP + 1), [norm / descent.norms[-1] for norm in descent.norms])
        for name, descent in (("pre", pre), ("post", post))
    ]
    return Figure(
        (
            Panel(
                Text(f"Gradient at initialisation, {DEEP} layers", f"初始化时的梯度，{DEEP} 层"),
                Text("layers below", "下方的层数"),
                Text("norm, relative to the last", "范数（相对于末层）"),
                relative,
                log_y=True,
            ),
            toy.training_panel(
                Text(f"Training {TRAINED} layers at a rate of {RATE}", f"训练 {TRAINED} 层，学习率 {RATE}"),
                [(names[name], losses) for name, losses in curves.items()],
                toy.uninformed([1, STEPS]),
            ),
        ),
        toy.TASK,
    )


LAB = Lab(
    name="norm_placement",
    title=Text("Pre-LN against Post-LN", "Pre-LN 与 Post-LN"),
    claim=Text(
        "Pre-LN keeps an identity path for the gradient; Post-LN scales and distorts it with depth, so that training "
        "needs a warm-up.",
        "Pre-LN 为梯度保留恒等通路；Post-LN 使梯度随深度缩放、变形，因此训练需要预热。",
    ),
    prediction=Text(
        "In a deep Pre-LN stack the first layer's gradient still points the last one's way, in Post-LN it does not; "
        "at a full learning rate from the first step Pre-LN learns and Post-LN does not.",
        "在深的 Pre-LN 堆叠中，首层梯度仍带有末层梯度的方向，Post-LN 则没有；从第一步起就用完整学习率时，"
        "Pre-LN 能学，Post-LN 学不动。",
    ),
    change=Text(
        "Few layers or a low learning rate, where both train; a long run, in which warm-up lets Post-LN go on; an "
        "initialisation made for Post-LN, such as one scaled down with depth.",
        "层数少或学习率低时两者都能训练；训练更久时，预热可让 Post-LN 继续下降；"
        "为 Post-LN 设计的初始化（例如随深度缩小）也会改变结论。",
    ),
    run=run,
)
