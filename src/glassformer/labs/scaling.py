"""Why the scores are divided by sqrt(d_k).

A score is a sum of d_k products of independent values of variance one, so its variance is d_k. The lab sends such
queries and keys through the shipped attention, once with its own scale and once with none; then it trains a model of
one wide head both ways.

Shapes: B batch, T queries, S keys, d head width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, fill
from glassformer.model import EncoderOnly, ModelConfig
from glassformer.model.attention import NO_MASK, Attention
from glassformer.model.transformer import share_weights

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
KEYS = 32
STEPS = 120
TRAINED, RATE = 128, 3e-3  # head width and learning rate of the models that are trained with and without


class Measured(NamedTuple):
    variance: float  # of the scores
    entropy: float  # of the attention weights, as a share of ln(KEYS): 1 is even, 0 is all on one key
    largest: float  # weight, mean over the queries
    mean_gradient: float  # what a unit-normal gradient at the weights leaves at the scores, per query
    median_gradient: float


def attend(attention: Attention, seed: int) -> Measured:
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(16, 1, KEYS, attention.d_head, generator=generator) for _ in range(3))  # (B, 1, T, d)
    scores, patterns = toy.record(attention.scores), toy.record(attention.pattern)
    attention.reference(q.requires_grad_(), k, v, NO_MASK)
    score, pattern = scores[0], patterns[0]  # (B, 1, T, S)
    arriving = torch.randn(pattern.shape, generator=generator)
    (gradient,) = torch.autograd.grad(pattern, score, arriving)
    weights, norms = pattern.detach(), gradient.norm(dim=-1)
    return Measured(
        variance=score.var().item(),
        entropy=torch.special.entr(weights).sum(-1).mean().item() / math.log(KEYS),
        largest=weights.amax(-1).mean().item(),
        mean_gradient=norms.mean().item(),
        median_gradient=norms.median().item(),
    )


def train(seed: int, part: toy.Part, scale: float | None) -> tuple[list[float], float, float]:
    """The loss of every step, and the scores' variance before and after them."""
    config = toy.small_config(seed, layers=1, d_model=TRAINED, heads=1, score_scale=scale)
    model = toy.with_attention(EncoderOnly, config, part)
    fresh = next(iter(toy.reversals(seed + 1_000_000, 1)))[0]

    def variance() -> float:
        watched_model = share_weights(model)  # hooks on a copy, so that training keeps the fast way
        watched = [toy.record(module.scores) for module in watched_model.modules() if isinstance(module, Attention)]
        with torch.no_grad():
            watched_model(fresh)
        return sum(values[0].var().item() for values in watched) / len(watched)

    before = variance()
    return toy.learn_reversals(model, seed, STEPS, RATE), before, variance()


def run(seed: int, *, part: toy.Part = Attention) -> Finding:
    def measure(width: int, scale: float | None) -> Measured:
        config = ModelConfig(vocab_size=4, d_model=width, heads=1, dropout=0.0, score_scale=scale)
        return attend(part(config), seed + width)

    scaled, raw = ([measure(width, scale) for width in WIDTHS] for scale in (None, 1.0))
    curve, before, after = train(seed, part, None)
    raw_curve, *_ = train(seed, part, 1.0)
    reached, raw_reached = toy.final_loss(curve), toy.final_loss(raw_curve)
    furthest = max(math.exp(abs(math.log(m.variance))) for m in scaled)  # as a factor, above or below one
    growth = toy.power_law(WIDTHS, [m.variance for m in raw])
    paper, widest = WIDTHS.index(64), len(WIDTHS) - 1
    left, far_left = (raw[i].median_gradient / scaled[i].median_gradient for i in (paper, widest))
    mean_left = raw[widest].mean_gradient / scaled[widest].mean_gradient
    ways = (Text("scaled", "缩放后"), scaled[widest]), (Text("not scaled", "不缩放时"), raw[widest])
    median, mean = Text("median query", "中位查询"), Text("mean of queries", "查询平均")
    entropy = Text("entropy of weights / ln(keys), {0}, d_k = 1024", "{0}权重的熵 / ln(键数)，d_k = 1024")
    largest = Text("largest weight, {0}, {1}, d_k = 1024", "{1}的最大权重（{0}），d_k = 1024")
    gradient = Text(
        "gradient through softmax, {0}, not scaled / scaled, d_k = {1}",
        "穿过 softmax 的梯度（{0}），不缩放 / 缩放，d_k = {1}",
    )
    loss = Text("loss after {0} steps, {1}, d_k = {2}", "{1}训练 {0} 步后的损失，d_k = {2}")
    numbers = {
        Text(
            "variance of scores, scaled, largest factor from one over all d_k",
            "缩放后分数的方差偏离 1 的最大倍数（各 d_k 中）",
        ): furthest,
        Text("variance of scores, not scaled, d_k = 64", "不缩放时分数的方差，d_k = 64"): raw[paper].variance,
        Text("power of d_k with which the variance grows, not scaled", "不缩放时方差随 d_k 增长的幂次"): growth,
        **{fill(entropy, how): m.entropy for how, m in ways},
        **{fill(largest, mean, how): m.largest for how, m in ways},
        fill(gradient, median, 64): left,
        fill(gradient, median, 1024): far_left,
        fill(gradient, mean, 1024): mean_left,
        **{fill(loss, STEPS, how, TRAINED): end for (how, _), end in zip(ways, (reached, raw_reached), strict=True)},
        **toy.UNIFORM_NUMBERS,
        Text("variance of scores in that model, scaled, before training", "该模型（缩放）训练前分数的方差"): before,
        Text(
            f"variance of scores in that model, scaled, after {STEPS} steps",
            f"该模型（缩放）训练 {STEPS} 步后分数的方差",
        ): after,
    }
    spread = Text("scaled, the weights stay spread at d_k = 1024", "缩放后，d_k = 1024 时权重仍然分散")
    saturated = Text("not scaled, softmax saturates at d_k = 1024", "不缩放，d_k = 1024 时 softmax 饱和")
    vanished = Text("and the median query's gradient is gone there", "且此处中位查询的梯度已消失")
    slow = Text(
        f"not scaled, the same model learns far less (d_k = {TRAINED}, difference of losses)",
        f"不缩放，同样的模型学到的少得多（d_k = {TRAINED}，损失之差）",
    )
    early = Text("it is gone at the paper's d_k = 64 already", "在论文所用的 d_k = 64 处梯度就已消失")
    always = Text("scaling keeps the variance at one through training", "训练之后方差仍保持为 1")
    unit_variance = Text("scaled, the variance is one at every d_k (factor)", "缩放后，任何 d_k 下方差都约为 1（倍数）")
    checks = [
        Check(unit_variance, furthest, high=1.25),
        Check(Text("not scaled, it grows like d_k", "不缩放，方差与 d_k 成正比"), growth, 0.9, 1.1),
        Check(spread, scaled[widest].entropy, low=0.7),
        Check(saturated, raw[widest].entropy, high=0.1),
        Check(vanished, far_left, high=0.01),
        Check(slow, raw_reached - reached, low=0.8),
        Check(early, left, high=0.1, extent=True),
        Check(always, after, 0.8, 1.25, extent=True),
    ]
    quoted = {"furthest": furthest, "raw": raw[paper].variance}
    quoted |= {"left": left, "far_left": far_left, "mean_left": mean_left}
    quoted |= {"reached": reached, "raw_reached": raw_reached, "before": before, "after": after}
    return Finding(numbers, checks, figure(scaled, raw, curve, raw_curve), SUMMARY, quoted)


SUMMARY = Text(
    "With the scale the variance is within a factor of {furthest:max.2f} of one; without it, it is {raw:.0f} at "
    "d_k = 64. Without it the median query keeps {left:.0%} of its softmax gradient at d_k = 64 and {far_left:.2%} at "
    "1024 (the mean over queries: {mean_left:.0%}, since queries torn between two keys remain). A model of one head of "
    f"{TRAINED} comes to a loss of {{reached:.2f}} in {STEPS} steps with the scale and of {{raw_reached:.2f}} without "
    f"(knowing nothing: {toy.UNIFORM:.2f}). The scale sets the variance at the start, not for good: training takes "
    "it from {before:.1f} to {after:.1f}.",
    "有缩放时，方差与 1 之比最多 {furthest:max.2f} 倍；不缩放时，d_k = 64 处方差为 {raw:.0f}。"
    "不缩放时，中位查询的 softmax 梯度在 d_k = 64 处还剩 {left:.0%}，在 1024 处只剩 {far_left:.2%}"
    "（按查询取平均则剩 {mean_left:.0%}，因为总有查询在两个键之间摇摆）。"
    f"单头、头宽 {TRAINED} 的模型训练 {STEPS} 步，缩放时损失降到 {{reached:.2f}}，不缩放时为 {{raw_reached:.2f}}"
    f"（一无所知时为 {toy.UNIFORM:.2f}）。缩放只决定起点的方差：训练使它从 {{before:.1f}} 变为 {{after:.1f}}。",
)


def figure(
    scaled: Sequence[Measured], raw: Sequence[Measured], curve: Sequence[float], raw_curve: Sequence[float]
) -> Figure:
    names = Text("divided by sqrt(d_k)", "除以 sqrt(d_k)"), Text("not scaled", "不缩放")
    width = Text("head width d_k", "头宽 d_k")

    def both(value: Callable[[Measured], float]) -> list[Series]:
        return [Series(name, WIDTHS, [value(m) for m in ms]) for name, ms in zip(names, (scaled, raw), strict=True)]

    grown = Series(Text("d_k", "d_k"), WIDTHS, WIDTHS, dashed=True)
    title, passed = Text("Scores", "分数"), Text("Gradient that softmax passes back", "softmax 回传的梯度")
    norm = Text("norm at the scores, median query", "分数处的梯度范数（中位查询）")
    left = Panel(title, width, Text("variance", "方差"), [*both(lambda m: m.variance), grown], log_x=True, log_y=True)
    right = Panel(passed, width, norm, both(lambda m: m.median_gradient), log_x=True, log_y=True)
    below = toy.training_panel(
        Text(f"Training with one head of {TRAINED}", f"训练，单头，头宽 {TRAINED}"),
        list(zip(names, (curve, raw_curve), strict=True)),
        toy.uniform_line([1, STEPS]),
    )
    return Figure(
        [left, right, below],
        Text(
            f"Scores and gradients: random queries and {KEYS} keys of variance one in the shipped attention. Training: "
            "write a random sequence backwards.",
            f"分数与梯度：方差为 1 的随机查询与 {KEYS} 个键，送入本项目的注意力模块。训练：把随机序列倒着写出来。",
        ),
    )


CLAIM = Claim(
    title=Text("Dividing by sqrt(d_k)", "除以 sqrt(d_k)"),
    claim=Text(
        "Dividing by sqrt(d_k) keeps the variance of the scores at one; without it softmax saturates, its gradient "
        "vanishes and the model hardly learns.",
        "除以 sqrt(d_k) 使注意力分数的方差保持为 1；否则 softmax 饱和、梯度消失，模型难以学习。",
    ),
    prediction=Text(
        "Scaled, variance, entropy and gradient are the same at every d_k. Not scaled, the variance is d_k, the "
        "weights fall on one key, the gradient goes to zero, and a model of one wide head learns far less.",
        "缩放后，方差、熵和梯度都不随 d_k 变化；不缩放时，方差等于 d_k，权重集中到一个键上，梯度趋于零，"
        "单个宽头的模型学到的少得多。",
    ),
    change=Text(
        "Queries and keys that are not independent or not of variance one, as in a trained model; a small d_k, where "
        "nothing saturates; learnt or cosine-normalised scores.",
        "查询与键不独立或方差不为 1（训练后的模型即如此）；d_k 很小，本来就不饱和；改用可学习的缩放或余弦相似度。",
    ),
)
