"""The causal mask: no output moves when later tokens change; and what training does when the mask is away.

The text to be learnt is a chain: with probability OBEYS the next symbol follows from the last by a fixed rule,
otherwise it is drawn at random. The draw cannot be foreseen, so the chain's entropy is the lowest honest loss: a
training loss below it shows that the model has looked ahead.

Shapes: B chains, T symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, join
from glassformer.labs.toy import FIRST, SYMBOLS, Pair, learn, small_config
from glassformer.model import DecoderOnly, ModelConfig

OBEYS = 0.7
BY_CHANCE = (1 - OBEYS) / SYMBOLS  # the draw may hit any symbol, the rule's own among them
EXPECTED = OBEYS + BY_CHANCE
ENTROPY = -EXPECTED * math.log(EXPECTED) - (SYMBOLS - 1) * BY_CHANCE * math.log(BY_CHANCE)
LENGTH, BATCH, STEPS = 16, 32, 240
PLACES = 10  # of the map of effects
WINDOW = 20  # steps that a loss is averaged over
NEW = 12  # symbols written after the prompt


def run(seed: int, *, build: Callable[[ModelConfig], DecoderOnly] = DecoderOnly) -> Finding:
    effects = effects_of_changes(build(small_config(seed)), seed)
    future, own = float(effects.triu(1).max()), float(effects.diagonal().min())
    curves, follows = {}, {}
    for masked in (True, False):
        model = build(small_config(seed, layers=1))
        model.decoder.causal = masked
        curves[masked] = smooth(learn(model, chains(seed, STEPS), lr=3e-3))
        follows[masked] = obedience(model, seed)
    honest, cheating = curves[True][-1], curves[False][-1]
    written = Text("written by itself: share of symbols that follow the rule", "自行生成：遵守规律的符号比例")
    numbers = {
        Text("largest move of an output by a later token", "后面的词元使输出变化的最大值"): future,
        Text("smallest move of an output by its own token", "自身位置的词元使输出变化的最小值"): own,
        Text(
            "entropy of the next symbol, the lowest honest loss", "下一个符号的熵，即不作弊所能达到的最低损失"
        ): ENTROPY,
        Text("training loss with the mask", "有掩码时的训练损失"): honest,
        Text("training loss without the mask", "无掩码时的训练损失"): cheating,
        join(written, Text("with the mask", "有掩码")): follows[True],
        join(written, Text("without the mask", "无掩码")): follows[False],
    }
    no_future = Text("no output moves when later tokens change", "后面的词元改变时，前面的输出不变")
    own_token = Text("every output moves with its own token", "每个输出都随自身位置的词元而变")
    entropy_floor = Text(
        "with the mask the loss comes down to the entropy, not below it (loss / entropy)",
        "有掩码时损失降到熵附近，不会更低（损失 / 熵）",
    )
    cheats = Text(
        "without the mask the loss falls far below what can be foreseen (loss / entropy)",
        "无掩码时损失远低于可预测的极限（损失 / 熵）",
    )
    checks = [
        Check(no_future, future, high=1e-6, every=True),
        Check(own_token, own, low=1e-3, every=True),
        Check(entropy_floor, honest / ENTROPY, low=0.93, high=1.1),
        Check(cheats, cheating / ENTROPY, high=0.5),
        Check(Text("with the mask it writes by the rule", "有掩码时生成遵守规律"), follows[True], low=0.9),
        Check(Text("without the mask it cannot write", "无掩码时无法正常生成"), follows[False], high=0.6),
    ]
    summary = Text(
        "Later tokens move an output by {future:max.0g}. Without the mask the training loss falls to "
        f"{{cheating:.2f}}, below the entropy of {ENTROPY:.2f} that no honest model can beat ({{honest:.2f}} "
        "with the mask); but writing by itself it follows the rule in {bare:.0%} of the steps, with the mask in "
        "{masked:.0%}.",
        "后面的词元对前面输出的影响为 {future:max.0g}。去掉掩码后训练损失降到 {cheating:.2f}，"
        f"低于任何正常模型都无法突破的熵 {ENTROPY:.2f}（有掩码时为 {{honest:.2f}}）；"
        "但自行生成时只有 {bare:.0%} 的步骤遵守规律，有掩码时为 {masked:.0%}。",
    )
    quoted = {"future": future, "cheating": cheating, "honest": honest, "bare": follows[False], "masked": follows[True]}
    return Finding(numbers, checks, draw(effects, curves), summary, quoted)


@torch.no_grad()
def effects_of_changes(model: DecoderOnly, seed: int) -> Tensor:
    """How far output i moves at most when token j becomes another; rows i, columns j."""
    ids = torch.randint(FIRST, FIRST + SYMBOLS, (1, PLACES), generator=torch.Generator().manual_seed(seed))
    changed = ids.repeat(PLACES, 1)  # row j differs at place j
    changed.diagonal().copy_(FIRST + (ids[0] - FIRST + SYMBOLS // 2) % SYMBOLS)
    moved: Tensor = (model(changed) - model(ids)).abs().amax(2)  # (j, i)
    return moved.T


def rule(symbols: Tensor) -> Tensor:
    """What follows: a fixed order of all symbols, since 5 and 16 share no factor."""
    return (5 * symbols + 3) % SYMBOLS


def chains(seed: int, steps: int) -> Iterator[Pair]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        drawn = torch.randint(SYMBOLS, (BATCH, LENGTH + 1), generator=generator)
        obeys = torch.rand(BATCH, LENGTH + 1, generator=generator) < OBEYS
        for t in range(1, LENGTH + 1):
            drawn[:, t] = torch.where(obeys[:, t], rule(drawn[:, t - 1]), drawn[:, t])
        yield drawn[:, :-1] + FIRST, drawn[:, 1:] + FIRST


@torch.no_grad()
def obedience(model: DecoderOnly, seed: int) -> float:
    """The share of symbols that follow the rule when the likeliest is written after a prompt, again and again.

    The text is read again at each step: without the mask, earlier outputs would change and no cache could hold them.
    """
    prompt, _ = next(chains(seed + 1_000_000, 1))
    ids = prompt[:, : LENGTH - NEW]
    for _ in range(NEW):
        ids = torch.cat((ids, model(ids)[:, -1:].argmax(-1)), dim=1)
    symbols = ids[:, -NEW - 1 :] - FIRST
    return float((symbols[:, 1:] == rule(symbols[:, :-1])).double().mean())


def smooth(losses: Sequence[float]) -> list[float]:
    return torch.tensor(losses).unfold(0, WINDOW, 1).mean(1).tolist()


def draw(effects: Tensor, curves: dict[bool, list[float]]) -> Figure:
    places = [str(i + 1) for i in range(PLACES)]
    steps = list(range(WINDOW, STEPS + 1))
    left = Panel(
        Text("How far output i moves when token j changes", "改变词元 j 时输出 i 的变化量"),
        Text("changed token j", "被改变的词元 j"),
        Text("output i", "输出 i"),
        ticks=places,
        rows=places,
        heat=effects.tolist(),
    )
    right = Panel(
        Text("Training with the mask and without", "有掩码与无掩码的训练"),
        Text("step", "步"),
        Text("loss (nats per symbol)", "损失（每个符号，奈特）"),
        [
            Series(Text("with the mask", "有掩码"), steps, curves[True]),
            Series(Text("without: it copies the answer", "无掩码：照抄答案"), steps, curves[False]),
            Series(Text("entropy of the text", "文本的熵"), [WINDOW, STEPS], [ENTROPY] * 2, dashed=True),
        ],
    )
    return Figure([left, right])


CLAIM = Claim(
    title=Text("The causal mask", "因果掩码"),
    claim=Text(
        "With the causal mask, output i does not move when tokens after i change; take the mask away and training "
        "“solves” the task by cheating.",
        "有因果掩码时，位置 i 的输出不受其后词元影响；去掉掩码，训练就会靠“作弊”完成任务。",
    ),
    prediction=Text(
        "Effects only on and below the diagonal. On a text that cannot be foreseen wholly, the loss stays at the "
        "entropy with the mask and falls below it without, while the text it then writes by itself is poor.",
        "影响只出现在对角线及其下方。对于无法完全预测的文本，有掩码时损失停在熵附近，无掩码时降到熵以下，但自行生成的结果很差。",
    ),
    change=Text(
        "A text that can be foreseen wholly hides the cheating: both losses go to zero. A model trained to fill gaps "
        "in the middle may see both sides, since its answers are not in its input.",
        "若文本完全可预测，两种损失都趋于零，作弊就看不出来。训练完形填空的模型可以看两侧，因为答案不在输入里。",
    ),
)
