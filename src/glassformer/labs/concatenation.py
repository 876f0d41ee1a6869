"""Positions added to the tokens' vectors, or laid beside them.

Three models that differ in their embedding only: positions added, as shipped; beside the tokens in the same width, so
that both have to share it; and beside them in a width of their own, which makes every matrix larger.

Shapes: B batch, T positions, D model width, P width of the positions, N pairs of a token and a position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Text, bars, join
from glassformer.labs.toy import FIRST, SYMBOLS
from glassformer.model import EncoderOnly, ModelConfig
from glassformer.model.embedding import Embedding, sinusoid
from glassformer.model.transformer import initialise

WIDTH, ROOM, LENGTH = 32, 16, 8  # of a token's vector, of positions laid beside it, of a text
STEPS, RATE, LEARNT = 220, 5e-3, 0.1

NAMES = {
    "added": Text("added", "相加"),
    "beside": Text("beside, in the same width", "拼接（宽度不变）"),
    "wider": Text("beside, in a wider model", "拼接（加宽）"),
}


class Beside(Embedding):
    """Token and position side by side, the position in the last ROOM of the D values."""

    rows: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        width = config.d_model - ROOM
        self.tokens = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_id)
        self.scale = math.sqrt(width)
        self.register_buffer("rows", sinusoid(config.max_length, ROOM))

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor | None = None) -> Tensor:
        place = F.embedding(positions, self.rows).expand(*ids.shape, -1)  # (B, T, P)
        return torch.cat((self.tokens(ids) * self.scale, place), dim=-1)  # (B, T, D)


def beside(config: ModelConfig) -> EncoderOnly:
    model = EncoderOnly(config)
    model.encoder.embedding = Beside(config)
    initialise(model, config)
    return model


@torch.no_grad()
def linear_readout(embedding: Embedding) -> tuple[float, float]:
    """Which share of tokens, and of positions, a linear map reads from the embedding of all their pairs."""
    ids = torch.arange(FIRST, FIRST + SYMBOLS).unsqueeze(1).expand(-1, LENGTH)  # (SYMBOLS, LENGTH)
    x = embedding(ids, torch.arange(LENGTH)).flatten(0, 1).double()  # (N, D)
    x = torch.cat((x, torch.ones(len(x), 1, dtype=x.dtype)), 1)

    def share(labels: Tensor) -> float:
        wanted = F.one_hot(labels.flatten()).double()
        read = x @ torch.linalg.lstsq(x, wanted, driver="gelsd").solution
        return float((read.argmax(1) == labels.flatten()).float().mean())

    return share(ids - FIRST), share(torch.arange(LENGTH).expand(SYMBOLS, -1))


class Trained(NamedTuple):
    curve: Sequence[float]
    steps: int  # until it was learnt
    parameters: int
    tokens: float  # share that can be read from the embedding
    places: float

    @property
    def loss(self) -> float:
        return toy.final_loss(self.curve)


def train(model: EncoderOnly, seed: int) -> Trained:
    curve = toy.learn(model, toy.reversals(seed, STEPS, 16, LENGTH), RATE)
    learnt = [i for i in range(toy.LOSS_STEPS, STEPS + 1) if toy.final_loss(curve[:i]) < LEARNT]
    size = sum(weight.numel() for weight in model.parameters())
    return Trained(curve, learnt[0] if learnt else STEPS, size, *linear_readout(model.encoder.embedding))


def run(seed: int, *, build: toy.Build = EncoderOnly) -> Finding:
    def config(width: int) -> ModelConfig:
        return toy.small_config(seed, layers=1, d_model=width, d_ff=2 * WIDTH)

    trained = {
        "added": train(build(config(WIDTH)), seed),
        "beside": train(beside(config(WIDTH)), seed),
        "wider": train(beside(config(WIDTH + ROOM)), seed),
    }
    added, same, wider = trained.values()
    numbers = {
        join(what, NAMES[name]): value
        for name, one in trained.items()
        for what, value in {
            Text(f"loss after {STEPS} steps", f"{STEPS} 步后的损失"): one.loss,
            Text(f"steps to a loss of {LEARNT}", f"损失降到 {LEARNT} 所需步数"): float(one.steps),
            Text("parameters", "参数量"): float(one.parameters),
        }.items()
    } | {
        Text("tokens that a linear map reads from the sum", "线性映射能从和中读出的词元比例"): added.tokens,
        Text("positions that a linear map reads from the sum", "线性映射能从和中读出的位置比例"): added.places,
    }
    both_read = Text(
        "token and position can both be read from the sum (lower share)", "从和中能同时读出词元和位置（较低者）"
    )
    no_better = Text(
        "beside in a wider model, it ends no better (difference of losses)", "加宽拼接，最后并不更好（损失之差）"
    )
    more_parameters = Text("and has more parameters (ratio)", "且参数更多（倍数）")
    needs_width = Text(
        "beside in the same width, it is not learnt: concatenating needs more width", "宽度不变就学不会：拼接必须加宽"
    )
    as_fast = Text("added, it is learnt in as few steps as beside (ratio)", "相加所需的步数不多于拼接（倍数）")
    checks = [
        Check(Text("added, the task is learnt", "相加时能学会任务"), added.loss, high=0.05),
        Check(both_read, min(added.tokens, added.places), low=0.95),
        Check(no_better, added.loss - wider.loss, high=0.05),
        Check(more_parameters, wider.parameters / added.parameters, low=1.3, every=True),
        Check(needs_width, same.loss, low=0.2, extent=True),
        Check(as_fast, added.steps / same.steps, high=1.1, extent=True),
    ]
    quoted = {f"loss_{name}": one.loss for name, one in trained.items()}
    quoted |= {"steps_added": float(added.steps), "steps_beside": float(same.steps)}
    quoted |= {"tokens": added.tokens, "places": added.places}
    summary = Text(
        "All three end at the same loss: added {loss_added:.3f}, beside in the same width {loss_beside:.3f}, beside in "
        f"a wider model {{loss_wider:.3f}}, the last with {wider.parameters / added.parameters:.1f} times the "
        "parameters. From the sum, a linear map reads {tokens:.0%} of the tokens and {places:.0%} of the positions. So "
        "adding loses nothing here, but concatenating needs no more width either, and it learns sooner: in "
        "{steps_beside:.0f} steps against {steps_added:.0f}.",
        "三者最后的损失相同：相加 {loss_added:.3f}，拼接（宽度不变）{loss_beside:.3f}，"
        f"拼接（加宽）{{loss_wider:.3f}}，后者的参数是相加的 {wider.parameters / added.parameters:.1f} 倍。"
        "线性映射能从和中读出 {tokens:.0%} 的词元和 {places:.0%} 的位置。可见相加在这里没有丢失信息；但拼接也不必加宽，"
        "而且学得更快：{steps_beside:.0f} 步，相加要 {steps_added:.0f} 步。",
    )
    return Finding(numbers, checks, figure(trained), summary, quoted)


def figure(trained: Mapping[str, Trained]) -> Figure:
    left = toy.training_panel(
        Text("Training", "训练"),
        [(NAMES[name], one.curve) for name, one in trained.items()],
        toy.uniform_line([1, STEPS]),
    )
    right = Panel(
        Text("What it costs", "代价"),
        Text("positions", "位置编码"),
        Text("parameters", "参数量"),
        [bars(Text("parameters", "参数量"), [float(one.parameters) for one in trained.values()])],
        ticks=[NAMES[name] for name in trained],
    )
    return Figure([left, right], toy.TASK)


CLAIM = Claim(
    title=Text("Adding or concatenating positions", "位置编码：相加还是拼接"),
    claim=Text(
        "Positions are added, not concatenated: concatenating would do as well, but widens the vectors and needs more "
        "parameters.",
        "位置编码是相加而不是拼接：拼接也可以，但会增加向量的宽度，需要更多参数。",
    ),
    prediction=Text(
        "Both learn the task to the same loss and in the same steps; concatenating takes a wider model for it.",
        "两者都能学会任务，损失和步数相同；拼接需要更宽的模型。",
    ),
    change=Text(
        "How full the width is: with a large vocabulary in a narrow model, what positions take is missing to the "
        "tokens. How the sum is scaled, and what the task asks of positions.",
        "取决于宽度是否够用：模型窄而词表大时，分给位置的宽度会让词元不够用；也取决于两者相加时的比例，"
        "以及任务对位置的要求。",
    ),
)
