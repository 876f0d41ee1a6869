"""How far back a model can reach: an LSTM and our attention recall the first symbol of a text at its end.

Both have the same width and nearly the same number of parameters. Before training, the gradient that the last output
sends to each earlier token; in training, the steps until the first symbol is recalled, as it moves further away.

Shapes: B batch, T tokens, D model width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, fill, join
from glassformer.labs.toy import FIRST, PAD, Pair
from glassformer.model import DecoderOnly, ModelConfig

KINDS = 4  # of symbols
WIDTH, BATCH = 16, 16
DISTANCES = (2, 6, 12)  # from the symbol to where it is asked for
FURTHEST = 32  # distance of the gradient before training
MOST, LEARNT, RATE = 300, 0.1, 1e-2  # steps at most; the loss of having learnt
OPEN = 3.0  # what an opened forget gate starts with: it keeps 95% of the memory at every step

NAMES = {
    "attention": Text("attention", "注意力"),
    "lstm": Text("LSTM", "LSTM"),
    "open": Text("LSTM, forget gate open", "LSTM（遗忘门打开）"),
}


class Recurrent(nn.Module):
    """Embedding, an LSTM, a linear layer to the vocabulary: reads from left to right, one token after the other."""

    def __init__(self, config: ModelConfig, gate: float = 0.0) -> None:
        super().__init__()
        width = config.d_model
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.embedding = nn.Embedding(config.vocab_size, width)
            self.memory = nn.LSTM(width, width, batch_first=True)
            self.head = nn.Linear(width, config.vocab_size)
        with torch.no_grad():
            self.memory.get_parameter("bias_ih_l0")[width : 2 * width] += gate  # the second quarter: the forget gate's

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.head(self.memory(self.embedding(ids))[0])
        return logits  # (B, T, V)


Build = Callable[[ModelConfig], nn.Module]


def recalls(seed: int, steps: int, distance: int) -> Iterator[Pair]:
    """Random symbols; at the last place, the first is asked for."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        ids = torch.randint(FIRST, FIRST + KINDS, (BATCH, distance + 1), generator=generator)
        labels = torch.full_like(ids, PAD)
        labels[:, -1] = ids[:, 0]
        yield ids, labels


def reach(model: nn.Module, seed: int) -> list[float]:
    """The gradient of the last output at each token's embedding, by distance from 1 on, over that at distance 1."""
    embedding = model.decoder.embedding if isinstance(model, DecoderOnly) else model.get_submodule("embedding")
    embedded = toy.record(embedding)
    ids, _ = next(recalls(seed, 1, FURTHEST))
    last = model(ids)[:, -1]  # (B, V)
    arriving = torch.randn(last.shape, generator=torch.Generator().manual_seed(seed))
    (gradient,) = torch.autograd.grad(last, embedded, arriving)  # (B, T, D)
    norms = gradient.norm(dim=-1).mean(0).flip(0)[1:]  # (T - 1), the nearest first
    return [float(norm) for norm in norms / norms[0]]


def run(seed: int, *, build: Build = DecoderOnly) -> Finding:
    config = toy.small_config(seed, layers=1, d_model=WIDTH)
    kinds: dict[str, Build] = {"attention": build, "lstm": Recurrent, "open": lambda config: Recurrent(config, OPEN)}
    reached = {name: reach(make(config), seed) for name, make in kinds.items()}
    near, far = DISTANCES[0], DISTANCES[-1]
    steps = {
        name: {
            d: len(toy.learn(make(config), recalls(seed, MOST, d), RATE, until=LEARNT))
            for d in (DISTANCES if name != "open" else (far,))
        }
        for name, make in kinds.items()
    }
    size = {name: sum(weight.numel() for weight in make(config).parameters()) for name, make in kinds.items()}
    gradient = Text(
        f"gradient before training at distance {FURTHEST} / at distance 1",
        f"训练前距离 {FURTHEST} 处的梯度 / 距离 1 处",
    )
    needed = Text("steps to learn, distance {0}, {1} (at most {2})", "学会所需步数，距离 {0}，{1}（至多 {2}）")
    numbers = {
        **{join(gradient, NAMES[name]): values[-1] for name, values in reached.items()},
        **{
            fill(needed, d, NAMES[name], MOST): float(count)
            for name, by_distance in steps.items()
            for d, count in by_distance.items()
        },
        **{join(Text("parameters", "参数量"), NAMES[name]): float(size[name]) for name in ("attention", "lstm")},
    }
    growth = {name: steps[name][far] / steps[name][near] for name in ("attention", "lstm")}
    vanishes = Text(f"the LSTM's gradient vanishes at distance {FURTHEST}", f"LSTM 的梯度在距离 {FURTHEST} 处消失")
    arrives = Text(
        "that of attention arrives there as at distance 1, within a factor of 5",
        "注意力的梯度与距离 1 处相当，相差不到 5 倍",
    )
    slower = Text(
        f"the LSTM needs more steps at distance {far} than at {near} (ratio)",
        f"LSTM 在距离 {far} 所需步数多于距离 {near}（倍数）",
    )
    learns = Text(f"at distance {far}, attention learns it", f"距离 {far} 时注意力能学会")
    sooner = Text("and in far fewer steps than the LSTM (ratio)", "且所需步数远少于 LSTM（倍数）")
    indifferent = Text(
        "to attention, distance makes no difference (ratio of steps)", "对注意力而言远近没有区别（步数倍数）"
    )
    open_gate = Text(
        "an LSTM that starts with its forget gate open fares no better (steps / those of the plain one)",
        "一开始就打开遗忘门的 LSTM 也好不了多少（步数 / 普通 LSTM 的步数）",
    )
    checks = [
        Check(vanishes, reached["lstm"][-1], high=1e-3),
        Check(arrives, reached["attention"][-1], low=0.2, high=5.0),
        Check(slower, growth["lstm"], low=1.5),
        Check(learns, steps["attention"][far], high=0.7 * MOST),
        Check(sooner, steps["attention"][far] / steps["lstm"][far], high=0.6),
        Check(indifferent, growth["attention"], high=1.2, extent=True),
        Check(open_gate, steps["open"][far] / steps["lstm"][far], low=0.9, extent=True),
    ]
    quoted = {
        **{f"gradient_{name}": reached[name][-1] for name in ("attention", "lstm")},
        **{f"near_{name}": float(steps[name][near]) for name in ("attention", "lstm")},
        **{f"far_{name}": float(by_distance[far]) for name, by_distance in steps.items()},
    }
    summary = Text(
        f"Before training, a token at distance {FURTHEST} has at most {{gradient_lstm:max.0e}} of the gradient of the "
        f"nearest in the LSTM and {{gradient_attention:.2f}} in attention. To recall the first symbol, the LSTM needs "
        f"{{near_lstm:.0f}} steps at distance {near} and {{far_lstm:.0f}} at {far} (we stop at {MOST}); attention "
        f"{{near_attention:.0f}} and {{far_attention:.0f}}. With its forget gate open from the start, the LSTM needs "
        f"{{far_open:.0f}} at {far}: part of what it lacks is only how it starts.",
        f"训练前，距离 {FURTHEST} 的词元得到的梯度与最近的词元相比：LSTM 至多为 {{gradient_lstm:max.0e}}，"
        f"注意力为 {{gradient_attention:.2f}}。要记起第一个符号，LSTM 在距离 {near} 需 {{near_lstm:.0f}} 步，"
        f"距离 {far} 需 {{far_lstm:.0f}} 步（到 {MOST} 步为止）；注意力需 {{near_attention:.0f}} 步和 "
        f"{{far_attention:.0f}} 步。如果一开始就打开遗忘门，LSTM 在距离 {far} 只需 {{far_open:.0f}} 步："
        "它的不足有一部分只在于初始状态。",
    )
    return Finding(numbers, checks, figure(reached, steps), summary, quoted)


def figure(reached: Mapping[str, Sequence[float]], steps: Mapping[str, Mapping[int, int]]) -> Figure:
    distance = Text("distance (tokens)", "距离（词元）")
    arriving = [Series(NAMES[name], range(1, FURTHEST + 1), values) for name, values in reached.items()]
    needed = [
        Series(NAMES[name], list(met), list(map(float, met.values())), kind="line" if len(met) > 1 else "points")
        for name, met in steps.items()
    ]
    limit = Series(Text("not longer tried", "不再尝试"), [DISTANCES[0], DISTANCES[-1]], [MOST, MOST], dashed=True)
    left = Panel(
        Text("Gradient of the last output before training", "训练前末尾输出的梯度"),
        distance,
        Text("norm, relative to distance 1", "范数（相对于距离 1）"),
        arriving,
        log_y=True,
    )
    right = Panel(
        Text("Recalling the first symbol", "记起第一个符号"),
        distance,
        Text("training steps needed", "所需训练步数"),
        [*needed, limit],
    )
    return Figure(
        [left, right],
        Text("The task: after random symbols, say the first of them.", "任务：读完一串随机符号，说出第一个。"),
    )


CLAIM = Claim(
    title=Text("Recurrence or attention over distance", "距离：循环网络与注意力"),
    claim=Text(
        "A recurrent network hardly learns relations over long distances, since its gradient vanishes on the way; "
        "attention connects any two positions directly, however far apart.",
        "循环网络难以学到长距离关系，因为梯度在途中消失；注意力直接连接任意两个位置，不论远近。",
    ),
    prediction=Text(
        "The LSTM's gradient falls with every token in between and attention's does not; with distance the LSTM needs "
        "more and more steps to recall a symbol, attention as many as before.",
        "LSTM 的梯度每过一个词元就变小，注意力的不变；距离越远，LSTM 学会记起一个符号所需的步数越多，注意力则不变。",
    ),
    change=Text(
        "How the recurrence starts: an open forget gate keeps the gradient. For attention, more tokens to choose from: "
        "its first weights are spread over all of them, so that the right one takes some more steps to stand out.",
        "循环网络的初始状态：遗忘门打开，梯度就能保留。对注意力而言，则是候选词元变多：一开始权重平均分散，"
        "要突出正确的那个就需要多一些步数。",
    ),
)
