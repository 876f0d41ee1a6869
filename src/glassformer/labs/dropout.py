"""Dropout where data are few, and where they are not.

The task has noise that cannot be foreseen: a fifth of the labels are drawn at random. A model that learns its training
texts by heart learns the noise too and pays for it on other texts. The lowest loss that can be had there is known.

Shapes: B texts, T symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, join
from glassformer.labs.toy import FIRST, Pair, mean_loss
from glassformer.model import EncoderOnly, ModelConfig

SYMBOLS, LENGTH, NOISE = 8, 5, 0.2
FEW, BATCH = 96, 32  # texts to train on, and of a step
STEPS, EVERY, RATE = {"few": 160, "many": 180}, 20, 1e-2
RATES = (0.0, 0.2)  # of dropout
EXAM = 400  # texts not seen in training
RIGHT = 1 - NOISE + NOISE / SYMBOLS  # probability of the label that the text asks for
FLOOR = -RIGHT * math.log(RIGHT) - (1 - RIGHT) * math.log((1 - RIGHT) / (SYMBOLS - 1))

DATA = {"few": Text(f"{FEW} texts", f"{FEW} 条文本"), "many": Text("new texts at every step", "每步都是新文本")}


def noisy_texts(generator: torch.Generator, texts: int) -> Pair:
    """Random symbols; the same backwards, with noise."""
    ids = torch.randint(FIRST, FIRST + SYMBOLS, (texts, LENGTH), generator=generator)
    wrong = torch.rand(ids.shape, generator=generator) < NOISE
    drawn = torch.randint(FIRST, FIRST + SYMBOLS, ids.shape, generator=generator)
    return ids, torch.where(wrong, drawn, ids.flip(1))


def batches(few: Pair | None, seed: int, steps: int) -> Iterator[Pair]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        if few is None:
            yield noisy_texts(generator, BATCH)
        else:
            chosen = torch.randperm(FEW, generator=generator)[:BATCH]
            yield few[0][chosen], few[1][chosen]


class Course(NamedTuple):
    held_out: Sequence[float]  # loss on texts not seen in training, every few steps
    trained: float  # loss on the training texts at the end, without dropout


def train(data: str, rate: float, seed: int, build: toy.Build) -> Course:
    config = toy.small_config(seed, layers=1, vocab_size=FIRST + SYMBOLS, dropout=rate)
    model = build(config)
    exam = noisy_texts(torch.Generator().manual_seed(seed + 1_000_000), EXAM)
    few = noisy_texts(torch.Generator().manual_seed(seed + 2_000_000), FEW)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)
    held_out = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # of what is dropped
        for step, pair in enumerate(batches(few if data == "few" else None, seed, STEPS[data])):
            model.train()
            optimizer.zero_grad()
            mean_loss(model, pair).backward()
            optimizer.step()
            if (step + 1) % EVERY == 0:
                held_out.append(evaluate(model, exam))
    return Course(held_out, evaluate(model, few))


@torch.no_grad()
def evaluate(model: EncoderOnly, pair: Pair) -> float:
    return float(mean_loss(model.eval(), pair))


def run(seed: int, *, build: Callable[[ModelConfig], EncoderOnly] = EncoderOnly) -> Finding:
    none, some = RATES
    courses = {(data, rate): train(data, rate, seed, build) for data in DATA for rate in RATES}
    end = {key: sum(course.held_out[-3:]) / 3 for key, course in courses.items()}  # the mean of the last three
    stopped = min(courses["few", none].held_out)
    names = {rate: Text(f"dropout {rate:.1f}", f"dropout {rate:.1f}") for rate in RATES}
    others = Text("loss on other texts", "其他文本上的损失")
    trained = Text("loss on the training texts", "训练文本上的损失")
    numbers = {
        Text("lowest loss that the noise allows", "噪声所允许的最低损失"): FLOOR,
        **{join(others, DATA[data], names[rate]): value for (data, rate), value in end.items()},
        **{join(trained, DATA["few"], names[rate]): courses["few", rate].trained for rate in RATES},
        join(others, DATA["few"], Text("no dropout, stopped at its best step", "无 dropout，停在最好的一步")): stopped,
    }
    by_heart = Text(
        "without dropout, few texts are learnt by heart (loss / lowest honest one)",
        "无 dropout 时，少量文本被背下来（损失 / 不作弊的最低损失）",
    )
    lowers = Text(
        "on few texts, dropout lowers the loss on others (with / without)",
        "文本少时，dropout 降低其他文本上的损失（有 / 无）",
    )
    beats_stopping = Text(
        "it gains more than stopping at the best step (with / stopped)", "效果优于停在最好的一步（有 / 提前停止）"
    )
    harmless = Text("with texts enough it costs nothing (with / without)", "文本足够时也不吃亏（有 / 无）")
    checks = [
        Check(by_heart, courses["few", none].trained / FLOOR, high=0.5),
        Check(lowers, end["few", some] / end["few", none], high=0.8),
        Check(beats_stopping, end["few", some] / stopped, high=0.98, extent=True),
        Check(harmless, end["many", some] / end["many", none], high=1.01, extent=True),
    ]
    quoted = {"heart": courses["few", none].trained, "stopped": stopped}
    for data in DATA:
        quoted |= {f"{data}_none": end[data, none], f"{data}_some": end[data, some]}
    summary = Text(
        f"On {FEW} texts, the model without dropout learns them by heart (a loss of {{heart:.2f}}, where the noise "
        f"allows {FLOOR:.2f}) and comes to {{few_none:.2f}} on others; with dropout {some} to {{few_some:.2f}}; "
        "stopped at its best step without, {stopped:.2f}. With new texts at every step there is nothing to learn by "
        f"heart: after {STEPS['many']} steps {{many_none:.2f}} without, {{many_some:.2f}} with.",
        f"只有 {FEW} 条文本时，无 dropout 的模型把它们背了下来（损失 {{heart:.2f}}，"
        f"噪声所允许的最低值为 {FLOOR:.2f}），在其他文本上损失为 {{few_none:.2f}}；"
        f"dropout 取 {some} 时为 {{few_some:.2f}}；"
        "无 dropout 但停在最好的一步时为 {stopped:.2f}。每步都用新文本就无从背起："
        f"{STEPS['many']} 步后，无 dropout 为 {{many_none:.2f}}，有则为 {{many_some:.2f}}。",
    )
    return Finding(numbers, checks, figure(courses, names), summary, quoted)


def figure(courses: Mapping[tuple[str, float], Course], names: Mapping[float, Text]) -> Figure:
    def panel(data: str) -> Panel:
        steps = list(range(EVERY, STEPS[data] + 1, EVERY))
        lines = [Series(names[rate], steps, courses[data, rate].held_out) for rate in RATES]
        floor = Series(Text("lowest possible", "可能的最低值"), [EVERY, STEPS[data]], [FLOOR, FLOOR], dashed=True)
        return Panel(
            DATA[data],
            Text("step", "步"),
            Text("loss on other texts (nats per token)", "其他文本上的损失（奈特/词元）"),
            [*lines, floor],
        )

    return Figure(
        [panel(data) for data in DATA],
        Text(
            f"The task: write backwards; {NOISE:.0%} of the labels are noise.",
            f"任务：把序列倒着写出来；{NOISE:.0%} 的标签是噪声。",
        ),
    )


CLAIM = Claim(
    title=Text("Dropout on little data", "数据少时的 dropout"),
    claim=Text(
        "Dropout keeps a model from overfitting; it is of value to small models and where data are few.",
        "dropout 防止过拟合；对小模型、数据少的情形有价值。",
    ),
    prediction=Text(
        "Trained long on few texts, the model with dropout ends at a lower loss on other texts than the one without; "
        "where data are plenty it costs nothing.",
        "用少量文本长时间训练，有 dropout 的模型在其他文本上的损失更低；数据充足时也不吃亏。",
    ),
    change=Text(
        "The amount of data: where every text is new there is nothing to overfit, and what dropout takes away is "
        "missed. Stopping in time, which also limits the harm; the rate of dropout.",
        "取决于数据量：文本都是新的，就无从过拟合，dropout 去掉的反而可惜；"
        "及时停止训练，也能减少过拟合；还取决于 dropout 的比例。",
    ),
)
