"""LayerNorm against BatchNorm: over one position's values, or over one value's positions in the whole batch.

The shipped model is built twice from the same weights, the second time with a BatchNorm in every norm's place. A
sentence is then given other neighbours, and more padding; and both are trained on padded batches of several sizes.

Shapes: B batch, T positions, D model width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, bars, fill
from glassformer.model import EncoderOnly, ModelConfig
from glassformer.model.norm import LayerNorm

BATCHES = (2, 4, 8, 32)  # sentences
SHORTEST, LONGEST = 3, 8  # tokens
STEPS, RATE = 80, 3e-3
NAMES = {"layer": Text("LayerNorm", "LayerNorm"), "batch": Text("BatchNorm", "BatchNorm")}


class BatchNorm(nn.BatchNorm1d):
    """Mean and variance of each value over all positions of the batch, padding included."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flatten(0, 1)).view(x.shape)  # (B, T, D)


def with_batch_norm(config: ModelConfig) -> EncoderOnly:
    model = EncoderOnly(config)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, LayerNorm):
                setattr(module, name, BatchNorm(config.d_model, config.norm_eps))
    return model


class Masked(nn.Module):
    """A model that works out from the ids which of them are padding."""

    def __init__(self, model: EncoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.model(ids, ids != toy.PAD)
        return logits  # (B, T, V)


def padded(seed: int, steps: int, batch: int) -> Iterator[toy.Pair]:
    """Sentences of different lengths, padded to the longest, and each one backwards."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        lengths = torch.randint(SHORTEST, LONGEST + 1, (batch, 1), generator=generator)  # (B, 1)
        place = torch.arange(int(lengths.max()))  # (T)
        ids = torch.randint(toy.FIRST, toy.FIRST + toy.SYMBOLS, (batch, len(place)), generator=generator)
        real = place < lengths
        backwards = ids.gather(1, (lengths - 1 - place).clamp_min(0))
        yield ids.where(real, toy.PAD), backwards.where(real, toy.PAD)


@torch.no_grad()
def logit_change(model: nn.Module, seed: int) -> tuple[float, float]:
    """How far a sentence's logits move, relative to their spread: in other company, and with more padding beside it."""
    (ids, _), (others, _) = toy.reversals(seed, 2, batch=4, length=6)
    ours = model(ids)[0]  # (T, V)
    company = model(torch.cat((ids[:1], others[1:])))[0]
    padding = model(nn.functional.pad(ids, (0, 6), value=toy.PAD))[0, :6]
    spread = ours.std().item()
    by_company, by_padding = ((other - ours).abs().max().item() / spread for other in (company, padding))
    return by_company, by_padding


def run(seed: int, *, build: toy.Build = EncoderOnly) -> Finding:
    builds: dict[str, toy.Build] = {"layer": build, "batch": with_batch_norm}
    fresh = {name: logit_change(Masked(make(toy.small_config(seed))), seed) for name, make in builds.items()}
    test = next(padded(seed + 1_000_000, 1, 256))
    reached: dict[str, dict[int, float]] = {name: {} for name in builds}
    at_rest = 0.0
    for name, make in builds.items():
        for batch in BATCHES:
            model = Masked(make(toy.small_config(seed)))
            toy.learn(model, padded(seed, STEPS, batch), RATE)
            with torch.no_grad():
                reached[name][batch] = toy.mean_loss(model.eval(), test).item()
            if name == "batch":
                at_rest = max(at_rest, *logit_change(model, seed))
    behind = {batch: reached["batch"][batch] - reached["layer"][batch] for batch in BATCHES}
    few, many = BATCHES[0], BATCHES[-1]
    causes = Text("in other company", "换掉同批句子后"), Text("with more padding", "加长填充后")
    change = Text("{0}: change of a sentence's logits {1}", "{0}：{1} logit 的变化")
    test_loss = Text("{0}: test loss after {1} steps of {2} sentences", "{0}：每批 {2} 句，{1} 步后的测试损失")
    numbers = {
        **{fill(change, NAMES[name], cause): fresh[name][i] for i, cause in enumerate(causes) for name in NAMES},
        Text(
            "BatchNorm at inference, with its running averages: largest change",
            "BatchNorm 推理时（用滑动平均）：最大变化",
        ): at_rest,
        **{fill(test_loss, NAMES[name], STEPS, batch): reached[name][batch] for name in NAMES for batch in BATCHES},
    }
    alone = Text("LayerNorm: a sentence does not depend on its neighbours", "LayerNorm：句子的结果与同批的其他句子无关")
    alone_padded = Text("LayerNorm: it does not depend on padding", "LayerNorm：结果与填充多少无关")
    crowd = Text("BatchNorm: it does", "BatchNorm：有关")
    small = Text(f"trained on batches of {few}, BatchNorm is behind", f"用 {few} 句为一批训练时，BatchNorm 落后")
    large = Text(f"it is behind with batches of {many} as well", f"每批 {many} 句时也落后")
    inference = Text("BatchNorm depends on the batch at inference too", "推理时 BatchNorm 的结果也随批次变化")
    checks = [
        Check(alone, fresh["layer"][0], high=1e-4),
        Check(crowd, fresh["batch"][0], low=0.1),
        Check(alone_padded, fresh["layer"][1], high=1e-4),
        Check(crowd, fresh["batch"][1], low=0.1),
        Check(small, behind[few], low=0.12),
        Check(large, behind[many], low=0.12, extent=True),
        Check(inference, at_rest, low=0.1, extent=True),
    ]
    quoted = {"at_rest": at_rest}
    for norm in builds:
        quoted |= {f"{norm}_company": fresh[norm][0], f"{norm}_padding": fresh[norm][1]}
        quoted |= {f"{norm}_few": reached[norm][few], f"{norm}_many": reached[norm][many]}
    return Finding(numbers, checks, figure(fresh, reached), SUMMARY, quoted)


SUMMARY = Text(
    "Other neighbours move a sentence's logits by {layer_company:max.1g} of their spread with LayerNorm and by "
    "{batch_company:.2f} with BatchNorm, more padding by {layer_padding:max.1g} and {batch_padding:.2f}. Trained on "
    f"{BATCHES[0]} sentences at a time, LayerNorm comes to a loss of {{layer_few:.2f}} and BatchNorm to "
    f"{{batch_few:.2f}}; with {BATCHES[-1]}: {{layer_many:.2f}} and {{batch_many:.2f}}. At inference BatchNorm uses "
    "running averages and moves by {at_rest:max.1g}.",
    "换掉同批的句子，一句话的 logit 相对其标准差的变化：LayerNorm 为 {layer_company:max.1g}，BatchNorm 为 "
    "{batch_company:.2f}；加长填充：{layer_padding:max.1g} 与 {batch_padding:.2f}。"
    f"每批 {BATCHES[0]} 句时，LayerNorm 的损失降到 {{layer_few:.2f}}，BatchNorm 为 {{batch_few:.2f}}；"
    f"每批 {BATCHES[-1]} 句时为 {{layer_many:.2f}} 与 {{batch_many:.2f}}。"
    "推理时 BatchNorm 用滑动平均，变化为 {at_rest:max.1g}。",
)


def figure(fresh: Mapping[str, tuple[float, float]], reached: Mapping[str, Mapping[int, float]]) -> Figure:
    causes = (Text("neighbours", "换句子"), Text("padding", "加填充"))
    left = Panel(
        Text("What moves a sentence's logits (training mode)", "什么会改变一句话的 logit（训练模式）"),
        Text("changed in the batch: other neighbours, more padding", "批次中的改动：换句子，加填充"),
        Text("largest change / spread", "最大变化 / 标准差"),
        [bars(NAMES[name], moves) for name, moves in fresh.items()],
        ticks=causes,
    )
    right = Panel(
        Text("After a short training on padded batches", "在带填充的批次上短时间训练后"),
        Text("sentences in a batch", "每批句数"),
        Text("test loss (nats per token)", "测试损失（奈特/词元）"),
        [Series(NAMES[name], BATCHES, list(losses.values())) for name, losses in reached.items()],
        log_x=True,
    )
    return Figure([left, right])


CLAIM = Claim(
    title=Text("LayerNorm against BatchNorm", "LayerNorm 与 BatchNorm"),
    claim=Text(
        "LayerNorm treats every position alone; BatchNorm mixes a sentence with its neighbours and their padding and "
        "suffers from small batches, so it does not suit sequences.",
        "LayerNorm 只看单个位置；BatchNorm 会混入同批的其他句子及其填充，批次小时效果差，因此不适合序列。",
    ),
    prediction=Text(
        "In other company or with more padding a sentence's result moves with BatchNorm and stays with LayerNorm; the "
        "smaller the batch, the further BatchNorm is behind.",
        "换掉同批句子或加长填充时，BatchNorm 下结果会变，LayerNorm 下不变；批次越小，BatchNorm 落后越多。",
    ),
    change=Text(
        "Large batches, where both learn alike; inference, where BatchNorm's running averages are fixed; statistics "
        "that leave padding out; a longer training.",
        "批次较大时两者相当；推理时 BatchNorm 使用固定的滑动平均；统计时排除填充；训练更久。",
    ),
)
