"""Word order: attention without positions reads a sentence as a bag; a causal mask alone brings the order back.

Shapes: B batch, T positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, bars, fill, join
from glassformer.labs.toy import FIRST, PAD, SYMBOLS, Pair, learn, small_config
from glassformer.model import DecoderOnly, EncoderOnly
from glassformer.model.config import Positions

ONE, OTHER, ASK = FIRST, FIRST + 1, FIRST + 2  # two symbols, and the place where the model says which came first
STEPS = 160
NAMES: dict[Positions, Text] = {
    "none": Text("none", "无"),
    "sinusoidal": Text("sinusoidal", "正弦"),
    "learned": Text("learned", "可学习"),
    "rotary": Text("rotary", "旋转"),
    "alibi": Text("ALiBi", "ALiBi"),
    "relative": Text("relative", "相对"),
}
SCHEMES = tuple(name for name in NAMES if name != "none")

READERS = {
    "encoder without": Text("encoder, no positions", "编码器，无位置编码"),
    "encoder with": Text("encoder, sinusoids", "编码器，正弦位置编码"),
    "decoder without": Text("causal decoder, no positions", "因果解码器，无位置编码"),
}

Reader = EncoderOnly | DecoderOnly


def which_first(seed: int, steps: int, batch: int = 32) -> Iterator[Pair]:
    """Random symbols with ONE and OTHER among them; the label of the last place is the one that stands first."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        ids = torch.randint(ASK + 1, FIRST + SYMBOLS, (batch, 8), generator=generator)
        places = torch.rand(batch, 7, generator=generator).topk(2).indices  # (B, 2)
        ids.scatter_(1, places, torch.tensor([[ONE, OTHER]]).expand(batch, 2))
        ids[:, -1] = ASK
        labels = torch.full_like(ids, PAD)
        labels[:, -1] = torch.where(places[:, 0] < places[:, 1], ONE, OTHER)
        yield ids, labels


@torch.no_grad()
def shuffle_gap(model: Reader, seed: int) -> float:
    """How far "shuffle, then read" is from "read, then shuffle", as a share of the logits' size."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(FIRST, FIRST + SYMBOLS, (16, 8), generator=generator)
    order = torch.randperm(8, generator=generator)
    logits = model(ids)  # (B, T, V)
    return float((model(ids[:, order]) - logits[:, order]).abs().max() / logits.std())


@torch.no_grad()
def accuracy(model: Reader, seed: int) -> float:
    ids, labels = next(which_first(seed + 1_000_000, 1, batch=1000))
    return float((model(ids)[:, -1].argmax(-1) == labels[:, -1]).double().mean())


def run(seed: int, *, without: Positions = "none") -> Finding:
    gaps = {name: shuffle_gap(EncoderOnly(small_config(seed, positions=name)), seed) for name in (without, *SCHEMES)}
    readers: dict[str, Reader] = {
        "encoder without": EncoderOnly(small_config(seed, positions=without)),
        "encoder with": EncoderOnly(small_config(seed, positions="sinusoidal")),
        "decoder without": DecoderOnly(small_config(seed, positions=without)),
    }
    losses = {name: learn(model, which_first(seed, STEPS), lr=3e-3) for name, model in readers.items()}
    right = {name: accuracy(model, seed) for name, model in readers.items()}
    bare, sinusoids, causal = right.values()
    shuffled = Text("shuffle gap, positions: {0}", "打乱前后的差距，位置编码：{0}")
    numbers = {
        **{fill(shuffled, NAMES[name]): gap for name, gap in gaps.items()},
        **{join(Text("accuracy on word order", "判断词序的正确率"), READERS[name]): right[name] for name in right},
    }
    moves_alike = Text(
        "without positions, shuffled input gives shuffled output", "没有位置编码时，输入打乱，输出只是相应地打乱"
    )
    moves_otherwise = Text(
        "with any of the five kinds of positions it does not", "加上五种位置编码中的任何一种，都不再如此"
    )
    guess = Text("without positions, word order is a guess", "没有位置编码时，判断词序只能靠猜")
    decoder_guesses = Text("a causal decoder without positions guesses too", "没有位置编码的因果解码器也只能靠猜")
    checks = [
        Check(moves_alike, gaps[without], high=1e-4, every=True),
        Check(moves_otherwise, min(gaps[name] for name in SCHEMES), low=1e-2, every=True),
        Check(guess, bare, low=0.4, high=0.6),
        Check(Text("with positions it is learnt", "有位置编码时，可以学会判断词序"), sinusoids, low=0.9),
        Check(decoder_guesses, causal, high=0.6, extent=True),
    ]
    quoted = {"gap": gaps[without], "bare": bare, "sinusoids": sinusoids, "causal": causal}
    return Finding(numbers, checks, draw(gaps, losses), SUMMARY, quoted)


def draw(gaps: Mapping[Positions, float], losses: Mapping[str, Sequence[float]]) -> Figure:
    steps = list(range(STEPS))
    learning = [Series(READERS[name], steps, values) for name, values in losses.items()]
    chance = Series(Text("a coin", "抛硬币"), [0, STEPS - 1], [0.693, 0.693], dashed=True)
    left = Panel(
        Text("Shuffle then read, against read then shuffle", "先打乱再读，对比先读再打乱"),
        Text("positions", "位置编码"),
        Text("largest difference / spread of logits", "最大差 / logit 标准差"),
        [bars(Text("gap", "差距"), list(gaps.values()))],
        log_y=True,
        ticks=[NAMES[name] for name in gaps],
    )
    right = Panel(
        Text("Learning which of two words came first", "学习判断两个词谁在前"),
        Text("training step", "训练步数"),
        Text("loss (nats)", "损失（奈特）"),
        [*learning, chance],
    )
    return Figure([left, right])


SUMMARY = Text(
    "Without positions the encoder's output moves with its input to within {gap:max.0e}, and it tells which word came "
    "first in {bare:.0%} of cases; with sinusoids in {sinusoids:.0%}. But a decoder without positions reaches "
    "{causal:.0%}: its causal mask shows each word a different past, and that is order enough.",
    "没有位置编码时，输入怎样打乱，编码器输出就怎样打乱（误差不超过 {gap:max.0e}），判断两词先后的正确率为 {bare:.0%}；"
    "加上正弦位置编码后为 {sinusoids:.0%}。但同样没有位置编码的解码器达到 {causal:.0%}："
    "因果掩码让每个词看到的前文各不相同，这本身就带来了顺序信息。",
)


CLAIM = Claim(
    title=Text("A bag of words", "没有位置，就没有词序"),
    claim=Text(
        "Without positions, attention is permutation-equivariant: word order is lost.",
        "没有位置编码时，注意力对排列是等变的：词序信息丢失。",
    ),
    prediction=Text(
        "An encoder without positions gives shuffled outputs for shuffled inputs and cannot learn which of two words "
        "came first; one with positions can.",
        "没有位置编码的编码器，输入打乱时输出只是随之打乱，学不会判断两个词谁在前；有位置编码的则可以学会。",
    ),
    change=Text(
        "A mask: the claim is true of attention that sees everything (encoders, cross-attention), not of a causal "
        "decoder, which can count its past.",
        "掩码会改变结论：能看到全部位置的注意力（编码器、交叉注意力）符合这一说法；因果解码器则不然，"
        "它能从前文的多少得知顺序。",
    ),
)
