"""Why the token embedding is multiplied by sqrt(d_model): against the size of the positional code beside it.

The shipped initialisation gives a token's row values of variance 1 / D, a length of one; a row of sines and cosines
has the length sqrt(D / 2), whatever the weights are.

Shapes: B batch, T positions, D model width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, join
from glassformer.model import EncoderOnly

WIDTHS = (16, 32, 64, 128, 256, 512, 1024)
VOCABULARY, LENGTH = 256, 32
WIDTH, EARLY, STEPS, RATE = 64, 45, 110, 3e-3  # of the models that are trained, looked at twice
STARTS = {
    "scaled": Text("scaled", "缩放"),
    "raw": Text("not scaled", "不缩放"),
    "scaled unit": Text("rows of variance one, scaled", "嵌入初始方差为 1，缩放"),
    "raw unit": Text("rows of variance one, not scaled", "嵌入初始方差为 1，不缩放"),
}


def unit_rows(model: EncoderOnly, seed: int) -> EncoderOnly:
    """The model with embedding values of variance one, as torch's own `nn.Embedding` starts."""
    with torch.no_grad():
        model.encoder.embedding.tokens.weight.normal_(generator=torch.Generator().manual_seed(seed))
    return model


@torch.no_grad()
def ratio(model: EncoderOnly) -> float:
    """Length of the token's part of an embedding over the length of the position's part, root mean square."""
    embedding, place = model.encoder.embedding, torch.arange(LENGTH)
    assert embedding.positions is not None
    ids = torch.arange(toy.FIRST, VOCABULARY).unsqueeze(1).expand(-1, LENGTH)  # (B, T)
    position = embedding.positions(place)  # (T, D)
    token = embedding(ids, place) - position  # (B, T, D)
    return math.sqrt(token.square().mean().item() / position.square().mean().item())


def run(seed: int, *, build: toy.Build = EncoderOnly) -> Finding:
    kinds: dict[str, toy.Build] = {
        "scaled": build,
        "raw": lambda config: EncoderOnly(replace(config, embedding_scale=False)),
        "raw unit": lambda config: unit_rows(EncoderOnly(replace(config, embedding_scale=False)), seed),
        "scaled unit": lambda config: unit_rows(build(config), seed),
    }

    sizes = {
        kind: [ratio(make(toy.small_config(seed, layers=0, d_model=width, vocab_size=VOCABULARY))) for width in WIDTHS]
        for kind, make in kinds.items()
    }
    curves = {
        kind: toy.learn_reversals(make(toy.small_config(seed, d_model=WIDTH)), seed, STEPS, RATE)
        for kind, make in kinds.items()
    }
    early = {kind: toy.final_loss(curve[:EARLY]) for kind, curve in curves.items()}
    loss = {kind: toy.final_loss(curve) for kind, curve in curves.items()}
    low, high = min(sizes["scaled"]), max(sizes["scaled"])
    at_512 = {kind: ratios[WIDTHS.index(512)] for kind, ratios in sizes.items()}
    fall = math.log(sizes["raw"][-1] / sizes["raw"][0]) / math.log(WIDTHS[-1] / WIDTHS[0])
    ratio_of, width = Text("token / position", "词元 / 位置"), Text("D = 512", "D = 512")
    numbers = {
        Text("token / position, scaled, smallest over all widths", "词元 / 位置，缩放，各宽度中的最小值"): low,
        Text("token / position, scaled, largest over all widths", "词元 / 位置，缩放，各宽度中的最大值"): high,
        join(ratio_of, STARTS["raw"], width): at_512["raw"],
        Text("power of D with which it falls, not scaled", "不缩放时该比值随 D 下降的幂次"): fall,
        **{join(ratio_of, STARTS[kind], width): at_512[kind] for kind in ("scaled unit", "raw unit")},
        **{
            join(toy.loss_after(steps), name): found[kind]
            for steps, found in ((EARLY, early), (STEPS, loss))
            for kind, name in STARTS.items()
        },
        **toy.UNIFORM_NUMBERS,
    }
    above = Text(
        "scaled, the token is no smaller than the position at any width", "缩放后，任何宽度下词元都不小于位置编码"
    )
    below = Text("and no more than twice as large", "且不超过其两倍")
    falls = Text("not scaled, it falls behind like 1/sqrt(D)", "不缩放时，按 1/sqrt(D) 变小")
    slower = Text("not scaled, the model learns more slowly at first", "不缩放时，模型起初学得更慢")
    behind = Text("and it stays behind", "而且一直落后")
    whatever = Text("it is slower even when rows start with variance one", "即使嵌入的初始方差为 1，不缩放也更慢")
    checks = [
        Check(above, low, low=1.0),
        Check(below, high, high=2.0),
        Check(falls, fall, -0.6, -0.4),
        Check(slower, early["raw"] - early["scaled"], low=0.3),
        Check(behind, loss["raw"] - loss["scaled"], low=0.0, extent=True),
        Check(whatever, early["raw unit"] - early["scaled"], low=0.3, extent=True),
    ]
    quoted = {"low": low, "high": high, "raw_ratio": at_512["raw"], "unit_ratio": at_512["scaled unit"]}
    quoted |= {"scaled": loss["scaled"], "raw": loss["raw"]}
    quoted |= {f"{kind.replace(' ', '_')}_early": value for kind, value in early.items()}
    return Finding(numbers, checks, figure(sizes, curves), SUMMARY, quoted)


SUMMARY = Text(
    "Scaled, a token is {low:min.2f} to {high:max.2f} times as long as its position's code at every width; not scaled, "
    f"{{raw_ratio:.3f}} times at D = 512. After {EARLY} steps the scaled model is at a loss of {{scaled_early:.2f}}, "
    f"the other at {{raw_early:.2f}} (knowing nothing: {toy.UNIFORM:.2f}); after {STEPS}, at {{scaled:.2f}} and "
    f"{{raw:.2f}}. Rows that start with variance one are at {{raw_unit_early:.2f}} after {EARLY} steps without the "
    "scale and at {scaled_unit_early:.2f} with it, a token then being {unit_ratio:.0f} times as long as a position at "
    "D = 512.",
    "缩放后，各宽度下词元向量的长度是位置编码的 {low:min.2f} 到 {high:max.2f} 倍；不缩放，D = 512 时只有 "
    f"{{raw_ratio:.3f}} 倍。训练 {EARLY} 步，缩放的模型损失降到 {{scaled_early:.2f}}，不缩放的为 "
    f"{{raw_early:.2f}}（一无所知时为 {toy.UNIFORM:.2f}）；到 {STEPS} 步，两者分别是 "
    f"{{scaled:.2f}} 和 {{raw:.2f}}。若嵌入的初始方差为 1，训练 {EARLY} 步，不缩放降到 {{raw_unit_early:.2f}}，"
    "缩放则为 {scaled_unit_early:.2f}，此时 D = 512 下词元长度是位置编码的 {unit_ratio:.0f} 倍。",
)


def figure(sizes: Mapping[str, Sequence[float]], curves: Mapping[str, Sequence[float]]) -> Figure:
    equal = Series(Text("equal", "相等"), [WIDTHS[0], WIDTHS[-1]], [1.0, 1.0], dashed=True)
    left = Panel(
        Text("Token against position, at the start", "训练开始时词元与位置的大小"),
        Text("model width D", "模型宽度 D"),
        Text("length of token / length of position", "词元长度 / 位置编码长度"),
        [*(Series(STARTS[kind], WIDTHS, ratios) for kind, ratios in sizes.items()), equal],
        log_x=True,
        log_y=True,
    )
    right = toy.training_panel(
        Text(f"Training, D = {WIDTH}", f"训练，D = {WIDTH}"),
        [(STARTS[kind], losses) for kind, losses in curves.items()],
    )
    return Figure([left, right], toy.TASK)


CLAIM = Claim(
    title=Text("Scaling the embedding by sqrt(d_model)", "嵌入乘以 sqrt(d_model)"),
    claim=Text(
        "Multiplying the token embedding by sqrt(d_model) keeps it from being drowned by the positional code.",
        "词嵌入乘以 sqrt(d_model)，才不会被位置编码淹没。",
    ),
    prediction=Text(
        "Scaled, tokens and positions are of one size at every width. Not scaled, tokens are smaller by sqrt(D / 2), "
        "and the model takes longer to see them.",
        "缩放后，任何宽度下词元与位置编码大小相当；不缩放时，词元小 sqrt(D / 2) 倍，模型要更久才能看清词元。",
    ),
    change=Text(
        "The initialisation: rows that start with variance one need no scale, and with it they outgrow the positions; "
        "positions that are not added, such as rotary ones; a learnt table that starts small; a long training.",
        "初始化：方差为 1 的嵌入不需要缩放，缩放后反而远大于位置编码；位置信息不是相加的（如旋转位置编码）；"
        "初始值很小的可学习位置表；更长的训练。",
    ),
)
