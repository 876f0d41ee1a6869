"""Where the norm stands: before each sublayer (Pre-LN) or after each addition (Post-LN).

First the gradient at initialisation, followed along the stream from the last layer to the first; then training from
the first step at the full learning rate. For Post-LN, three remedies are tried one at a time: a warm-up, a lower rate,
a smaller initialisation.

Shapes: B batch, T positions, D model width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, fill, join
from glassformer.model import EncoderOnly
from glassformer.model.attention import Attention
from glassformer.model.config import Placement
from glassformer.model.embedding import Embedding
from glassformer.model.layer import Block, FeedForward

DEEP, TRAINED, SHALLOW = 24, 8, 2  # layers
STEPS, WARMUP, RATE = 60, 30, 3e-3
LOWER, SMALLER = 1e-3, 0.2  # the rate, and what the matrices that write to the stream are multiplied by


class Way(NamedTuple):
    """How a model is built and trained."""

    name: Text
    norm: Placement
    warmup: int = 0
    rate: float = RATE
    smaller: float = 1.0


PRE = Way(Text("Pre-LN", "Pre-LN"), "pre")
POST = Way(Text("Post-LN", "Post-LN"), "post")
WARM = Way(Text(f"Post-LN, {WARMUP} steps of warm-up", f"Post-LN，预热 {WARMUP} 步"), "post", warmup=WARMUP)
SLOW = Way(Text(f"Post-LN, a rate of {LOWER}", f"Post-LN，学习率 {LOWER}"), "post", rate=LOWER)
SMALL = Way(Text("Post-LN, smaller initialisation", "Post-LN，初始化缩小"), "post", smaller=SMALLER)
REMEDIES = (WARM, SLOW, SMALL)
WAYS = (PRE, POST, *REMEDIES)


class Descent(NamedTuple):
    """The gradient of the loss at the stream before each layer and after the last, first to last."""

    norms: list[float]
    cosines: list[float]  # with the gradient after the last layer: how much of it has come through as it was
    drift: float  # the largest distance from the gradient after the last layer, relative to its norm
    ratio: float  # of the first norm to the last
    weakest: float  # of the smallest norm to the last


def descend(model: EncoderOnly, seed: int) -> Descent:
    stream: list[Tensor] = []
    for module in model.modules():
        if isinstance(module, Embedding | Block):
            module.register_forward_hook(lambda _module, _inputs, output: stream.append(output))
    loss = toy.mean_loss(model, next(toy.reversals(seed, 1)))
    gradients = torch.autograd.grad(loss, stream)  # (B, T, D) each
    cosines = [torch.cosine_similarity(gradient, gradients[-1], dim=-1).mean().item() for gradient in gradients]
    norms = [gradient.norm().item() for gradient in gradients]
    drift = max((gradient - gradients[-1]).norm().item() for gradient in gradients) / norms[-1]
    return Descent(norms, cosines, drift, norms[0] / norms[-1], min(norms) / norms[-1])


def silence_sublayers(model: EncoderOnly) -> EncoderOnly:
    """The model with sublayers that add nothing: what is left is the path past them."""
    for module in model.modules():
        if isinstance(module, Attention | FeedForward):
            module.register_forward_hook(lambda _module, _inputs, output: output * 0.0)
    return model


@torch.no_grad()
def shrink(model: EncoderOnly, factor: float) -> EncoderOnly:
    """The model with smaller matrices where sublayers write to the stream, as initialisations made for Post-LN have."""
    for name, weight in model.named_parameters():
        if name.endswith(("self_attention.output.weight", "feed_forward.down.weight")):
            weight.mul_(factor)
    return model


def train(build: toy.Build, way: Way, layers: int, seed: int) -> list[float]:
    model = shrink(build(toy.small_config(seed, layers, norm=way.norm)), way.smaller)
    return toy.learn_reversals(model, seed, STEPS, way.rate, way.warmup)


def run(seed: int, *, build: toy.Build = EncoderOnly) -> Finding:
    pre, post = (descend(build(toy.small_config(seed, DEEP, norm=norm)), seed) for norm in ("pre", "post"))
    bare = descend(silence_sublayers(build(toy.small_config(seed, DEEP, norm="pre"))), seed)
    curves = {way: train(build, way, TRAINED, seed) for way in WAYS}
    last = {way: toy.final_loss(losses) for way, losses in curves.items()}
    shallow = {way: toy.final_loss(train(build, way, SHALLOW, seed)) for way in (PRE, POST)}
    gradients = {
        Text("first layer's gradient / last layer's", "首层梯度 / 末层梯度"): (pre.ratio, post.ratio),
        Text("weakest layer's gradient / last layer's", "最弱一层的梯度 / 末层梯度"): (pre.weakest, post.weakest),
        Text("cosine of the first and the last gradient", "首层与末层梯度的余弦"): (pre.cosines[0], post.cosines[0]),
    }
    numbers = {
        Text(
            "Pre-LN, sublayers silenced: largest relative change of the gradient",
            "Pre-LN，子层静默：梯度的最大相对变化",
        ): bare.drift,
        **{
            fill(Text("{0}, {1} layers: {2}", "{0}，{1} 层：{2}"), norm, DEEP, what): value
            for what, both in gradients.items()
            for norm, value in zip(("Pre-LN", "Post-LN"), both, strict=True)
        },
        **{
            join(toy.loss_after(STEPS), Text(f"{layers} layers", f"{layers} 层"), way.name): loss
            for layers, losses in ((TRAINED, last), (SHALLOW, shallow))
            for way, loss in losses.items()
        },
        **toy.UNIFORM_NUMBERS,
    }
    other = min(last[SLOW], last[SMALL])
    identity = Text("past silent sublayers, Pre-LN hands the gradient on unchanged", "子层静默时，Pre-LN 原样传回梯度")
    through = Text(
        "Pre-LN: part of the last gradient reaches the first layer as it was", "Pre-LN：末层梯度有一部分原样到达首层"
    )
    whole = Text("Pre-LN: no layer's gradient is weaker than the last one's", "Pre-LN：没有哪一层的梯度弱于末层")
    lost = Text("Post-LN: none of its direction is left at the first", "Post-LN：到首层时方向已全部丢失")
    shrunk = Text("Post-LN: its norm sinks on the way", "Post-LN：途中范数明显下降")
    learns = Text("Pre-LN learns from the first step at the full rate", "从第一步起就用完整学习率，Pre-LN 能学")
    stuck = Text("Post-LN learns far less in the same steps", "同样步数内，Post-LN 学到的少得多")
    helped = Text("a warm-up helps Post-LN", "预热对 Post-LN 有帮助")
    even = Text("Pre-LN's gradient is the same size in all layers", "Pre-LN 各层梯度大小相同")
    anywhere = Text("Post-LN is behind at two layers too", "只有两层时 Post-LN 也落后")
    needed = Text(
        "it is a warm-up that Post-LN needs: neither a lower rate nor a smaller initialisation does as well",
        "Post-LN 需要的正是预热：降低学习率或缩小初始化都不如它",
    )
    cured = Text("with warm-up, Post-LN catches up", "有预热时 Post-LN 能追上")
    checks = [
        Check(identity, bare.drift, high=1e-5, every=True),
        Check(through, pre.cosines[0], low=0.12),
        Check(whole, pre.weakest, low=0.9),
        Check(lost, post.cosines[0], -0.1, 0.1),
        Check(shrunk, post.weakest, high=0.75),
        Check(learns, toy.UNIFORM - last[PRE], low=0.35),
        Check(stuck, last[POST] - last[PRE], low=0.2),
        Check(helped, last[POST] - last[WARM], low=0.0, extent=True),
        Check(even, pre.ratio, 0.5, 2.0, extent=True),
        Check(anywhere, shallow[POST] - shallow[PRE], low=0.3, extent=True),
        Check(needed, other - last[WARM], low=0.0, extent=True),
        Check(cured, last[WARM] - last[PRE], high=0.1, extent=True),
    ]
    quoted = {"cosine": pre.cosines[0], "post_cosine": post.cosines[0], "weakest": post.weakest, "ratio": pre.ratio}
    quoted |= {"pre": last[PRE], "post": last[POST], "warm": last[WARM], "slow": last[SLOW], "small": last[SMALL]}
    quoted |= {"shallow": shallow[PRE], "post_shallow": shallow[POST]}
    return Finding(numbers, checks, figure(pre, post, curves), SUMMARY, quoted)


SUMMARY = Text(
    f"After {DEEP} layers the cosine of the gradient with what it was is {{cosine:.2f}} in Pre-LN and "
    "{post_cosine:.2f} in Post-LN, whose norm sinks to {weakest:.2f} of the last layer's on the way (Pre-LN's rises to "
    f"{{ratio:.1f}}). At {TRAINED} layers and the full rate from the first step Pre-LN comes to {{pre:.2f}} nats and "
    f"Post-LN to {{post:.2f}} (knowing nothing: {toy.UNIFORM:.2f}). A warm-up takes Post-LN to {{warm:.2f}}, a "
    "third of the rate without warm-up to {slow:.2f}, a smaller initialisation without warm-up to {small:.2f}: it "
    f"wants a gentle start, of which a warm-up is one kind. At {SHALLOW} layers: {{shallow:.2f}} and "
    "{post_shallow:.2f}.",
    f"梯度穿过 {DEEP} 层之后，与出发时的余弦：Pre-LN 为 {{cosine:.2f}}，Post-LN 为 {{post_cosine:.2f}}；"
    "Post-LN 的范数途中降到末层的 {weakest:.2f} 倍，Pre-LN 首层的范数是末层的 {ratio:.1f} 倍。"
    f"{TRAINED} 层、从第一步起就用完整学习率时，Pre-LN 的损失降到 {{pre:.2f}}，Post-LN 为 {{post:.2f}}"
    f"（一无所知时为 {toy.UNIFORM:.2f}）。加上预热，Post-LN 为 {{warm:.2f}}；不预热而把学习率降到三分之一，为 "
    "{slow:.2f}；不预热而缩小初始化，为 {small:.2f}：它需要的是平缓的起步，预热只是其中一种。"
    f"只有 {SHALLOW} 层时：{{shallow:.2f}} 与 {{post_shallow:.2f}}。",
)


def figure(pre: Descent, post: Descent, curves: Mapping[Way, list[float]]) -> Figure:
    relative = [
        Series(way.name, range(DEEP + 1), [norm / descent.norms[-1] for norm in descent.norms])
        for way, descent in ((PRE, pre), (POST, post))
    ]
    left = Panel(
        Text(f"Gradient at initialisation, {DEEP} layers", f"初始化时的梯度，{DEEP} 层"),
        Text("layers below", "下方的层数"),
        Text("norm, relative to the last", "范数（相对于末层）"),
        relative,
        log_y=True,
    )
    right = toy.training_panel(
        Text(f"Training {TRAINED} layers, rate {RATE} unless said", f"训练 {TRAINED} 层，学习率 {RATE}（另注者除外）"),
        [(way.name, losses) for way, losses in curves.items()],
        toy.uniform_line([1, STEPS]),
    )
    return Figure([left, right], toy.TASK)


CLAIM = Claim(
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
        "Few layers, where both train; a longer run, in which Post-LN goes on. What a gentle start is depends on the "
        "optimiser, the rate and the depth: take the rate low enough, or the initialisation small enough, and no "
        "warm-up is needed.",
        "层数少时两者都能训练；训练更久，Post-LN 还会继续下降。怎样才算平缓的起步，取决于优化器、学习率和深度："
        "学习率足够低，或初始化足够小，就不需要预热。",
    ),
)
