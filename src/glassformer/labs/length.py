"""Texts longer than any in training, with each kind of position that the shipped model has.

Some tokens set a value, the others do not; at every place, the value set last is to be said. This takes a sense of
what is near, at any place of the text. Models learn it on texts of one length and are then given longer ones.

Shapes: B texts, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, fill, join
from glassformer.labs.toy import FIRST, Pair
from glassformer.model import DecoderOnly, ModelConfig
from glassformer.model.config import Positions

VALUES, FILLERS = 4, 4
SETS = 0.3  # share of tokens that set a value
TRAINED, TWICE, LONGEST = 12, 24, 48  # tokens
STEPS, BATCH, RATE, EXAM = 120, 16, 1e-2, 50

NAMES: dict[Positions, Text] = {
    "sinusoidal": Text("sinusoidal", "正弦"),
    "learned": Text("learnt", "可学习"),
    "rotary": Text("rotary", "旋转"),
    "alibi": Text("ALiBi", "ALiBi"),
    "relative": Text("relative", "相对"),
}

RIGHT = Text("share right", "正确率")

Build = Callable[[ModelConfig], DecoderOnly]


def settings(seed: int, steps: int, batch: int, length: int) -> Iterator[Pair]:
    generator = torch.Generator().manual_seed(seed)
    places = torch.arange(length)
    for _ in range(steps):
        value = torch.randint(VALUES, (batch, length), generator=generator)
        sets = torch.rand(batch, length, generator=generator) < SETS
        sets[:, 0] = True
        filler = VALUES + torch.randint(FILLERS, (batch, length), generator=generator)
        latest = torch.where(sets, places, 0).cummax(1).values  # (B, T): where the value was set last
        yield FIRST + torch.where(sets, value, filler), FIRST + value.gather(1, latest)


@torch.no_grad()
def right_by_place(model: DecoderOnly, seed: int) -> Tensor:
    """The share right at each place of the longest texts; (T)."""
    ids, labels = next(settings(seed + 1_000_000, 1, EXAM, LONGEST))
    right: Tensor = (model(ids).argmax(-1) == labels).float().mean(0)
    return right


def run(seed: int, *, build: Build = DecoderOnly) -> Finding:
    curves: dict[Positions, Tensor] = {}
    for positions in NAMES:
        config = toy.small_config(
            seed, layers=1, positions=positions, max_length=LONGEST, relative_buckets=16, relative_distance=64
        )
        model = build(config)
        toy.learn(model, settings(seed, STEPS, BATCH, TRAINED), RATE)
        curves[positions] = right_by_place(model, seed)
    spans = {"within": (0, TRAINED), "twice": (TRAINED, TWICE), "far": (TWICE, LONGEST)}
    right = {(name, span): float(curve[slice(*spans[span])].mean()) for name, curve in curves.items() for span in spans}
    places = Text("places {0} to {1}", "第 {0} 至 {1} 位")
    where = {span: fill(places, start + 1, end) for span, (start, end) in spans.items()}
    numbers = {join(RIGHT, NAMES[name], where[span]): value for (name, span), value in right.items()}
    learnt = min(right[name, "within"] for name in NAMES)
    all_learn = Text(
        "all kinds learn it at the length they train on (lowest share right)",
        "在训练长度内，各种位置编码都能学会（最低正确率）",
    )
    twice = Text("sinusoids hold up to twice that length", "正弦编码在两倍长度内仍然有效")
    beats_learnt = Text("and better than learnt rows (difference of the shares)", "且优于可学习的位置（正确率之差）")
    matches_alibi = Text(
        "and as well as ALiBi, which knows distances only (difference)", "且不亚于只看距离的 ALiBi（正确率之差）"
    )
    four_times = Text("sinusoids hold up to four times the length", "正弦编码在四倍长度内仍然有效")
    checks = [
        Check(all_learn, learnt, low=0.85),
        Check(twice, right["sinusoidal", "twice"] / right["sinusoidal", "within"], low=0.9),
        Check(beats_learnt, right["sinusoidal", "twice"] - right["learned", "twice"], low=0.1),
        Check(matches_alibi, right["sinusoidal", "twice"] - right["alibi", "twice"], low=-0.05, extent=True),
        Check(four_times, right["sinusoidal", "far"] / right["sinusoidal", "within"], low=0.9, extent=True),
    ]
    quoted = {f"{name}_{span}": value for (name, span), value in right.items() if span != "within"}

    def shares(span: str) -> tuple[str, str]:
        return (
            ", ".join(f"{text.en} {{{name}_{span}:.0%}}" for name, text in NAMES.items()),
            "，".join(f"{text.zh} {{{name}_{span}:.0%}}" for name, text in NAMES.items()),
        )

    summary = Text(
        f"Trained on {TRAINED} tokens, all say the right value there (at chance: {1 / VALUES:.0%}). On the next "
        f"{TWICE - TRAINED}: {shares('twice')[0]}. From {TWICE + 1} to {LONGEST}: {shares('far')[0]}. A sinusoid is "
        "defined at any place, but what the model has learnt to do with it is not.",
        f"用 {TRAINED} 个词元训练，在此范围内都能答对（随机猜为 {1 / VALUES:.0%}）。再往后 {TWICE - TRAINED} 个："
        f"{shares('twice')[1]}。第 {TWICE + 1} 至 {LONGEST} 位：{shares('far')[1]}。正弦编码在任何位置都有定义，"
        "但模型学会的用法只限于见过的位置。",
    )
    return Finding(numbers, checks, figure(curves), summary, quoted)


def figure(curves: Mapping[Positions, Tensor]) -> Figure:
    window = 4  # places that are drawn as one point

    def series(name: Positions) -> Series:
        values = curves[name].view(-1, window).mean(1).tolist()
        return Series(NAMES[name], [window * i + (window + 1) / 2 for i in range(len(values))], values)

    edge = Series(Text("end of the training texts", "训练文本的末尾"), [TRAINED, TRAINED], [0.0, 1.0], dashed=True)
    panel = Panel(
        Text("Beyond the length of training", "超出训练长度"),
        Text("place in the text", "文本中的位置"),
        RIGHT,
        [*(series(name) for name in NAMES), edge],
    )
    return Figure([panel], Text("The task: say which value was set last.", "任务：说出最近一次设定的值。"))


CLAIM = Claim(
    title=Text("Longer than in training", "比训练时更长"),
    claim=Text(
        "Sinusoidal positions are defined for every place, so a model reads texts longer than those it was trained on; "
        "with learnt positions it cannot.",
        "正弦位置编码在任何位置都有定义，因此模型能处理比训练时更长的文本；可学习的位置编码则不能。",
    ),
    prediction=Text(
        "Beyond the trained length, the share right stays with sinusoids as it was and falls to chance with learnt "
        "positions.",
        "超出训练长度后，正弦编码的正确率保持不变，可学习的位置编码则降到随机水平。",
    ),
    change=Text(
        "Training on texts of many lengths and places; positions that speak of distances, as ALiBi's do; a task that "
        "does not ask where anything stands.",
        "用各种长度、各种位置的文本训练；改用只看距离的位置编码，如 ALiBi；或者任务根本不问位置。",
    ),
)
