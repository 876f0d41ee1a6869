"""Several heads against one, both with the same parameters: d_model is cut into more and narrower heads.

Shapes: B batch, T positions, K keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.labs.lab import Check, Figure, Finding, Lab, Panel, Series, Text
from glassformer.labs.toy import FIRST, PAD, SYMBOLS, Pair, learn, loss_of, reversals, small
from glassformer.model import EncoderOnly
from glassformer.model.attention import Attention
from glassformer.model.config import Positions
from glassformer.model.transformer import initialise

STEPS, BATCH, SEVERAL, REPEATS = 120, 16, 8, 3
KEYS, VALUES = 8, 4
MEAN, LOWEST, HIGHEST = Text("mean", "平均"), Text("lowest", "最低"), Text("highest", "最高")


def two_facts(seed: int, steps: int, batch: int = BATCH) -> Iterator[Pair]:
    """Facts "key has value" in random order, then a question per key: its value and, in this order, the next key's.

    One head can only mix the two facts it needs; two heads can fetch one each.
    """
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        value = torch.randint(0, VALUES, (batch, KEYS), generator=generator)  # of keys 0, 1, ...; (B, K)
        order = torch.rand(batch, KEYS, generator=generator).argsort(1)
        facts = FIRST + order * VALUES + value.gather(1, order)
        questions = FIRST + KEYS * VALUES + torch.arange(KEYS).expand(batch, KEYS)
        answers = FIRST + value * VALUES + value.roll(-1, 1)
        yield torch.cat((facts, questions), 1), torch.cat((torch.full_like(facts, PAD), answers), 1)


def one_place(seed: int, steps: int, batch: int = BATCH) -> Iterator[Pair]:
    """A sequence backwards: each position needs one other, and must tell its code from eleven similar ones."""
    return reversals(seed, steps, batch, length=12)


@dataclass(frozen=True)
class Task:
    name: Text
    pairs: Callable[[int, int, int], Iterator[Pair]]
    vocabulary: int
    positions: Positions


TASKS = {
    "two facts": Task(Text("Two facts at once", "同时取两条信息"), two_facts, FIRST + KEYS * (VALUES + 1), "none"),
    "one place": Task(Text("One exact place", "准确定位一处"), one_place, FIRST + SYMBOLS, "sinusoidal"),
}


@dataclass(frozen=True)
class Outcome:
    curve: Sequence[float]  # training loss of every step
    loss: float  # on sequences not seen in training
    parameters: int


def train(task: Task, heads: int, seed: int, attention: type[Attention]) -> Outcome:
    config = small(seed, layers=1, heads=heads, vocab_size=task.vocabulary, positions=task.positions)
    model = EncoderOnly(config)
    for block in model.encoder.blocks:
        block.self_attention = attention(config)
    initialise(model, config)
    curve = learn(model, task.pairs(seed, STEPS, BATCH), lr=5e-3)
    with torch.no_grad():
        unseen: Tensor = loss_of(model, next(task.pairs(seed + 1_000_000, 1, 200)))
    return Outcome(curve, float(unseen), sum(weight.numel() for weight in model.parameters()))


def run(seed: int, *, attention: type[Attention] = Attention) -> Finding:
    outcomes = {
        (name, heads): [train(task, heads, REPEATS * seed + i, attention) for i in range(REPEATS)]
        for name, task in TASKS.items()
        for heads in (1, SEVERAL)
    }
    numbers = {}
    for (name, heads), repeated in outcomes.items():
        losses = [outcome.loss for outcome in repeated]
        numbers[label(name, heads, MEAN)] = sum(losses) / REPEATS
        numbers[label(name, heads, LOWEST)], numbers[label(name, heads, HIGHEST)] = min(losses), max(losses)
    # Each ratio is taken against the statement it decides on, so that no repeat may say otherwise.
    gain = numbers[label("two facts", SEVERAL, HIGHEST)] / numbers[label("two facts", 1, LOWEST)]
    price = numbers[label("one place", SEVERAL, LOWEST)] / numbers[label("one place", 1, HIGHEST)]
    extra = outcomes["two facts", SEVERAL][0].parameters - outcomes["two facts", 1][0].parameters
    checks = [
        Check(Text("parameters that several heads add", "多头多出的参数量"), extra, low=0, high=0),
        Check(
            Text(
                "two facts at once: worst loss of 8 heads / best loss of 1",
                "同时取两条信息：8 头最差损失 / 单头最好损失",
            ),
            gain,
            high=0.25,
        ),
        Check(
            Text(
                "one exact place: best loss of 8 heads / worst loss of 1", "准确定位一处：8 头最好损失 / 单头最差损失"
            ),
            price,
            high=1.0,
            extent=True,
        ),
    ]
    return Finding(numbers, checks, draw(outcomes), summary(numbers))


def label(name: str, heads: int, which: Text) -> Text:
    task, said = TASKS[name].name, several(heads)
    return Text(f"{task.en.lower()}, {said.en}: {which.en} loss", f"{task.zh}，{said.zh}：{which.zh}损失")


def several(heads: int) -> Text:
    return Text(f"{heads} head{'s' if heads > 1 else ''}", f"{heads} 头")


def draw(outcomes: Mapping[tuple[str, int], Sequence[Outcome]]) -> Figure:
    def mean_curve(name: str, heads: int) -> Series:
        curves = torch.tensor([outcome.curve for outcome in outcomes[name, heads]])
        return Series(several(heads), list(range(STEPS)), curves.mean(0).tolist())

    return Figure(
        [
            Panel(
                task.name,
                Text("training step", "训练步数"),
                Text("loss (nats), mean of repeats", "损失（nat），多次平均"),
                [mean_curve(name, 1), mean_curve(name, SEVERAL)],
            )
            for name, task in TASKS.items()
        ],
        Text(
            "Same width, same parameters: more heads win where two things are wanted at once, and lose where one "
            "place must be found exactly.",
            "宽度与参数量完全相同：需要同时取两条信息时多头占优，需要准确定位一处时单头占优。",
        ),
    )


def summary(numbers: Mapping[Text, float]) -> Text:
    facts, place = (
        [numbers[label(name, heads, MEAN)] for heads in (1, SEVERAL)] for name in ("two facts", "one place")
    )
    return Text(
        f"Over {REPEATS} repeats of {STEPS} steps, fetching two facts at once ends at a loss of {facts[0]:.2f} with "
        f"one head and {facts[1]:.2f} with {SEVERAL}; finding one exact place ends at {place[0]:.2f} with one head "
        f"and {place[1]:.2f} with {SEVERAL}, probably because its narrower queries and keys tell positions apart less "
        "sharply.",
        f"各训练 {STEPS} 步、重复 {REPEATS} 次：同时取两条信息，单头损失 {facts[0]:.2f}，{SEVERAL} 头 {facts[1]:.2f}；"
        f"准确定位一处，单头 {place[0]:.2f}，{SEVERAL} 头 {place[1]:.2f}，原因很可能是每个头的查询和键变窄，"
        "区分位置的能力随之下降。",
    )


LAB = Lab(
    name="heads",
    title=Text("Many heads or one", "多头还是单头"),
    claim=Text(
        "At equal parameters several heads do better than one, because each can look elsewhere.",
        "参数量相同的情况下，多头优于单头，因为每个头可以关注不同的地方。",
    ),
    prediction=Text(
        "Cut into 8 heads, the same 32 columns learn faster than as one head, whatever the task.",
        "同样是 32 维，分成 8 个头应当比单头学得更快，无论任务是什么。",
    ),
    change=Text(
        "The task, and how long one trains: a position that needs several things at once gains from heads; one that "
        "must match a code exactly loses as they get narrower. Both gaps shrink with more steps and wider models.",
        "取决于任务和训练时长：一个位置需要同时获取多条信息时，多头有利；需要精确匹配时，头越窄越吃亏。"
        "训练更久、模型更宽，两种差距都会缩小。",
    ),
    run=run,
)
