"""A stack that should do nothing: the identity with residual connections and without them.

The shipped blocks are trained to hand on the vectors they are given. With residuals, every sublayer has to become zero;
without them, attention has to look at its own position alone and the feed-forward network has to rebuild its input.
Weights that do this exactly are known and are put in too, so that what cannot be learnt is not what cannot be done.

Shapes: B batch, T positions, D model width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, fill, join
from glassformer.labs.residuals import NAMES, remove_residuals
from glassformer.model import EncoderOnly
from glassformer.model.attention import NO_MASK

WIDTH, BATCH, LENGTH = 16, 8, 6
DEPTHS = (1, 3)  # layers
STEPS, RATE = 160, 5e-3


def draws(seed: int, steps: int) -> list[Tensor]:
    """Random vectors of mean zero and variance one, which a norm hands on as they are."""
    generator = torch.Generator().manual_seed(seed)
    return [F.layer_norm(torch.randn(BATCH, LENGTH, WIDTH, generator=generator), (WIDTH,)) for _ in range(steps)]


def error(model: EncoderOnly, x: Tensor) -> Tensor:
    """How far the blocks take the vectors from where they were: the square, over that of putting out zeros."""
    y = x
    for block in toy.blocks(model):
        y = block(y, NO_MASK)
    return (y - x).square().mean() / x.square().mean()


@torch.no_grad()
def identity_weights(model: EncoderOnly) -> EncoderOnly:
    """Weights that make blocks without residuals the identity."""
    one = torch.eye(WIDTH)
    for block in toy.blocks(zero_weights(model)):
        attention, network = block.self_attention, block.feed_forward
        attention.projection.weight.copy_(torch.cat((30 * one, one, one)))  # so large a score that no other key counts
        attention.output.weight.copy_(one)
        network.up.weight.copy_(torch.cat((one, -one)))  # relu(x) - relu(-x) = x
        network.down.weight.copy_(torch.cat((one, -one), 1))
    return model


def run(seed: int, *, build: toy.Build = EncoderOnly) -> Finding:
    def model(layers: int, residual: bool) -> EncoderOnly:
        config = toy.small_config(seed, layers, d_model=WIDTH, heads=1, positions="none")
        return build(config) if residual else remove_residuals(EncoderOnly(config))

    curves = {
        (name, layers): toy.learn(model(layers, name == "with"), draws(seed, STEPS), RATE, loss=error)
        for name in ("with", "without")
        for layers in DEPTHS
    }
    shallow, deep = DEPTHS
    with torch.no_grad():
        made = float(error(identity_weights(model(deep, residual=False)), draws(seed, 1)[0]))
        nothing = float(error(zero_weights(model(deep, residual=True)), draws(seed, 1)[0]))
    last = {key: toy.final_loss(curve) for key, curve in curves.items()}
    ratio = last["with", shallow] / last["without", shallow]
    not_learnt = Text("{0}, {1}, {2} layers: error", "{0}，{1}，{2} 层：误差")
    after = Text(f"error after {STEPS} steps", f"{STEPS} 步后的误差")
    numbers = {
        fill(not_learnt, Text("weights set by hand", "手工设定权重"), NAMES["without"], deep): made,
        fill(not_learnt, Text("all weights zero", "权重全为零"), NAMES["with"], deep): nothing,
        **{
            join(after, NAMES[name], Text(f"depth {layers}", f"{layers} 层")): value
            for (name, layers), value in last.items()
        },
    }
    zero_is_identity = Text("with residuals, zero weights are the identity", "有残差时，权重为零即恒等映射")
    exists = Text("without, there are weights that are the identity as well", "无残差时，也存在恰好是恒等映射的权重")
    learns = Text(f"with residuals, {deep} layers learn it", f"有残差时，{deep} 层能学会")
    stuck = Text(f"without, {deep} layers do not, in the same steps", f"无残差时，{deep} 层在相同步数内学不会")
    nearer = Text(
        "a single layer with residuals is nearer too (error with / without)",
        "只有一层时，有残差也更接近（有 / 无残差的误差）",
    )
    single_stuck = Text("without residuals, a single layer does not learn it either", "无残差时，只有一层也学不会")
    checks = [
        Check(zero_is_identity, nothing, high=1e-6, every=True),
        Check(exists, made, high=1e-6, every=True),
        Check(learns, last["with", deep], high=0.05),
        Check(stuck, last["without", deep], low=0.5),
        Check(nearer, ratio, high=0.1),
        Check(single_stuck, last["without", shallow], low=0.5, extent=True),
    ]
    quoted = {"made": made}
    for kind in ("with", "without"):
        quoted |= {f"{kind}_shallow": last[kind, shallow], f"{kind}_deep": last[kind, deep]}
    summary = Text(
        f"To hand vectors on through {deep} layers, the error after {STEPS} steps is {{with_deep:.1%}} with residuals "
        "and {without_deep:.0%} without (putting out zeros: 100%). It could be done: weights set by hand leave "
        "{made:max.0e}. Through one layer it is {with_shallow:.2%} and {without_shallow:.0%}: without residuals a "
        "single layer is on its way, more slowly; a stack is not.",
        f"让向量原样通过 {deep} 层，{STEPS} 步后的误差：有残差 {{with_deep:.1%}}，无残差 {{without_deep:.0%}}"
        "（全部输出零为 100%）。并非做不到：手工设定的权重误差至多为 {made:max.0e}。只通过一层时分别为 "
        "{with_shallow:.2%} 和 {without_shallow:.0%}：无残差的一层也在学，只是慢得多；多层则学不动。",
    )
    return Finding(numbers, checks, figure(curves), summary, quoted)


@torch.no_grad()
def zero_weights(model: EncoderOnly) -> EncoderOnly:
    for block in toy.blocks(model):
        for weight in (*block.self_attention.parameters(), *block.feed_forward.parameters()):
            weight.zero_()
    return model


def figure(curves: Mapping[tuple[str, int], Sequence[float]]) -> Figure:
    def panel(layers: int) -> Panel:
        series = [Series(NAMES[name], range(1, STEPS + 1), curves[name, layers]) for name in ("with", "without")]
        zeros = Series(Text("putting out zeros", "全部输出零"), [1, STEPS], [1.0, 1.0], dashed=True)
        return Panel(
            Text(f"{layers} layer{'s' if layers > 1 else ''}", f"{layers} 层"),
            Text("step", "步"),
            Text("error / that of zeros", "误差 / 输出零的误差"),
            [*series, zeros],
            log_y=True,
        )

    return Figure(
        [panel(layers) for layers in DEPTHS],
        Text("The task: hand on random vectors unchanged.", "任务：原样传出随机向量。"),
    )


CLAIM = Claim(
    title=Text("Learning to do nothing", "学会什么也不做"),
    claim=Text(
        "A layer can hardly learn the identity, but easily learns zero; with a residual connection zero is the "
        "identity, so that more layers do no harm.",
        "让一层学会恒等映射很难，学会输出零却很容易；有了残差连接，输出零就是恒等映射，因此加深无害。",
    ),
    prediction=Text(
        "Trained to hand on their input, layers with residuals come to an error near zero and layers without do not, "
        "though weights exist with which they would.",
        "训练各层原样传出输入：有残差时误差趋近于零，无残差时不行，尽管存在能做到的权重。",
    ),
    change=Text(
        "One layer, which learns it given time; weights that start at or near the identity. More steps alone change "
        "little: three layers without residuals stand at 94% after 2,000.",
        "只有一层时，多给时间就能学会；从恒等映射或其附近开始的初始化。单纯增加步数作用不大："
        "三层无残差训练 2,000 步后误差仍为 94%。",
    ),
)
