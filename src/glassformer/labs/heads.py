"""Several heads against one, both with the same parameters: d_model is cut into more and narrower heads.

Shapes: B batch, T positions, K keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text
from glassformer.labs.toy import FIRST, LOSS_STEPS, PAD, SYMBOLS, Pair, final_loss
from glassformer.model import EncoderOnly
from glassformer.model.attention import Attention
from glassformer.model.config import Positions

BATCH, SEVERAL, RATE = 16, 8, 5e-3
MOST, LEARNT = 900, 0.05  # steps at most; the final_loss loss at which a task is learnt
KEYS, VALUES = 6, 4


def two_facts(seed: int, steps: int, batch: int) -> Iterator[Pair]:
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


class Task(NamedTuple):
    name: Text
    pairs: Callable[[int, int, int], Iterator[Pair]]
    vocabulary: int
    positions: Positions


TASKS = {
    "two facts": Task(Text("Two facts at once", "同时取两条信息"), two_facts, FIRST + KEYS * (VALUES + 1), "none"),
    # A sequence backwards: each position needs one other, and must tell its code from seven similar ones.
    "one place": Task(Text("One exact place", "准确定位一处"), toy.reversals, FIRST + SYMBOLS, "sinusoidal"),
}


class TrainingResult(NamedTuple):
    curve: Sequence[float]  # training loss of every step, until the task is learnt
    loss: float  # at the end, on sequences not seen in training
    parameters: int


def train(task: Task, heads: int, seed: int, attention: type[Attention]) -> TrainingResult:
    """Until the task is learnt, so that what is compared is the end of learning and not a moment of it."""
    config = toy.small_config(seed, layers=1, heads=heads, vocab_size=task.vocabulary, positions=task.positions)
    model = toy.with_attention(EncoderOnly, config, attention)
    curve = toy.learn(model, task.pairs(seed, MOST, BATCH), RATE, until=LEARNT)
    with torch.no_grad():
        unseen: Tensor = toy.mean_loss(model, next(task.pairs(seed + 1_000_000, 1, 200)))
    return TrainingResult(curve, float(unseen), sum(weight.numel() for weight in model.parameters()))


def run(seed: int, *, attention: type[Attention] = Attention) -> Finding:
    outcomes = {
        (name, heads): train(task, heads, seed, attention) for name, task in TASKS.items() for heads in (1, SEVERAL)
    }
    steps = {key: len(outcome.curve) for key, outcome in outcomes.items()}
    ratio = {name: steps[name, SEVERAL] / steps[name, 1] for name in TASKS}
    behind = outcomes["two facts", 1].loss - outcomes["two facts", SEVERAL].loss
    extra = outcomes["two facts", SEVERAL].parameters - outcomes["two facts", 1].parameters
    numbers = {
        **{label(name, heads, STEPS): float(count) for (name, heads), count in steps.items()},
        **{label(name, heads, LOSS): outcome.loss for (name, heads), outcome in outcomes.items()},
        Text("parameters that several heads add", "多头多出的参数量"): float(extra),
    }
    facts_faster = Text(
        "two facts at once: 8 heads learn it in fewer steps than 1 (ratio)",
        "同时取两条信息：8 头比单头用更少的步数学会（步数之比）",
    )
    place_faster = Text(
        "one exact place: 8 heads learn it in fewer steps too (ratio)", "准确定位一处：8 头同样用更少的步数（步数之比）"
    )
    single_behind = Text(
        "two facts at once: one head ends behind, where learning has ended (difference of losses)",
        "同时取两条信息：学习结束时单头仍落后（损失之差）",
    )
    checks = [
        Check(Text("several heads add no parameters", "多头不增加参数"), extra, low=0, high=0),
        Check(facts_faster, ratio["two facts"], high=0.8),
        Check(place_faster, ratio["one place"], high=1.0, extent=True),
        Check(single_behind, behind, low=0.1, extent=True),
    ]
    quoted = {f"{name.split()[0]}_{heads}": float(count) for (name, heads), count in steps.items()} | {
        "end_1": outcomes["two facts", 1].loss,
        "end_8": outcomes["two facts", SEVERAL].loss,
    }
    return Finding(numbers, checks, draw(outcomes), SUMMARY, quoted)


STEPS = Text("steps until it is learnt", "学会所需的步数")
LOSS = Text("loss at the end", "结束时的损失")


def label(name: str, heads: int, what: Text) -> Text:
    task, said = TASKS[name].name, several(heads)
    return Text(f"{task.en.lower()}, {said.en}: {what.en}", f"{task.zh}，{said.zh}：{what.zh}")


def several(heads: int) -> Text:
    return Text(f"{heads} head{'s' if heads > 1 else ''}", f"{heads} 头")


def draw(outcomes: Mapping[tuple[str, int], TrainingResult]) -> Figure:
    def curve(name: str, heads: int) -> Series:
        losses = outcomes[name, heads].curve
        known = [final_loss(losses[:i]) for i in SHOWN if i <= len(losses)]
        # What has been learnt stays so: the curve goes on at its end, so that seeds of different length have one mean.
        return Series(several(heads), SHOWN, known + [final_loss(losses)] * (len(SHOWN) - len(known)))

    return Figure(
        [
            Panel(
                task.name,
                Text("training step", "训练步数"),
                Text(f"loss (nats), mean of {LOSS_STEPS} steps", f"损失（奈特），{LOSS_STEPS} 步平均"),
                [curve(name, 1), curve(name, SEVERAL)],
                log_x=True,
            )
            for name, task in TASKS.items()
        ],
        Text(
            "Same width, same parameters, trained until the task is learnt.", "宽度与参数量完全相同，训练到学会为止。"
        ),
    )


SHOWN = (5, 10, 20, 30, 40, 60, 80, 100, 130, 160, 200, 250, 300, 400, 500, 600, 750, 900)
SUMMARY = Text(
    "Fetching two facts at once is learnt in {two_8:.0f} steps by 8 heads and in {two_1:.0f} by one; finding one exact "
    "place in {one_8:.0f} and {one_1:.0f}. Where learning has ended there is little between them: on two facts at once "
    "one head comes to a loss of {end_1:.2f}, 8 heads to {end_8:.2f}. Several heads learn faster what needs several "
    "looks; they are not what makes it possible.",
    "同时取两条信息，8 头用 {two_8:.0f} 步学会，单头用 {two_1:.0f} 步；"
    "准确定位一处，分别为 {one_8:.0f} 步与 {one_1:.0f} 步。"
    "到学习结束时两者相差很小：同时取两条信息，单头的损失降到 {end_1:.2f}，8 头为 {end_8:.2f}。"
    "需要同时看几处的任务，多头学得更快；但并不是只有多头才学得会。",
)


CLAIM = Claim(
    title=Text("Many heads or one", "多头还是单头"),
    claim=Text(
        "At equal parameters several heads do better than one, because each can look elsewhere.",
        "参数量相同的情况下，多头优于单头，因为每个头可以关注不同的地方。",
    ),
    prediction=Text(
        "Cut into 8 heads, the same 32 columns learn in fewer steps than as one head, whatever the task, and come "
        "further.",
        "同样是 32 维，分成 8 个头应当比单头学得更快，无论任务是什么，最终也学得更好。",
    ),
    change=Text(
        "The task: a position that needs several things at once gains from heads; one that must match a code exactly "
        "gains nothing, since each head is narrower. A width at which one head has no room for both facts.",
        "取决于任务：一个位置需要同时获取多条信息时，多头有利；需要精确匹配时则没有好处，因为每个头更窄。"
        "若宽度小到单头容不下两条信息，结论也会改变。",
    ),
)
