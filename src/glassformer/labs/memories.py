"""The feed-forward layer as a memory: a neuron's key decides when it fires, its value what it writes to the output.

A one-layer model learns an alphabet in a secret order: after each letter comes its successor, nine times in ten. The
memory that needs is "this letter -> that letter", so one can look up, neuron by neuron, whether it is there.

Shapes: B batch, T positions, A letters, F neurons, D model width.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from glassformer.labs.lab import Check, Figure, Finding, Lab, Panel, Series, Text
from glassformer.labs.toy import FIRST, Pair, learn, small
from glassformer.model import DecoderOnly
from glassformer.model.layer import FeedForward
from glassformer.model.transformer import initialise

A = len(string.ascii_lowercase)
STEPS, NEURONS, NOISE = 250, 64, 0.1

HIT = Text("neurons that write the successor of their letter", "写出触发字母的后继的神经元比例")
DEALT = Text("the same, values dealt to other neurons", "同上，值向量打乱后分给其他神经元")
CHANCE = Text("the same, random directions", "同上，随机方向")
AGREE = Text("correlation of written and wanted letters", "写出的字母与应写字母的相关系数")
AGREE_BY_CHANCE = Text("correlation, random directions", "相关系数，随机方向")
LETTERS = Text("letters that fire a neuron, median", "触发一个神经元的字母数，中位数")
ALONE = Text("neurons that one letter alone fires", "只被一个字母触发的神经元比例")


def texts(seed: int, steps: int, successor: Tensor, batch: int = 16, length: int = 12) -> Iterator[Pair]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        stray = torch.randint(A, (batch, length + 1), generator=generator)
        strays = torch.rand(batch, length + 1, generator=generator) < NOISE
        letters = [stray[:, 0]]
        for t in range(1, length + 1):
            letters.append(torch.where(strays[:, t], stray[:, t], successor[letters[-1]]))
        ids = FIRST + torch.stack(letters, 1)
        yield ids[:, :-1], ids[:, 1:]


def feed_forward_of(model: DecoderOnly) -> FeedForward:
    part = model.get_submodule("decoder.blocks.0.feed_forward")
    assert isinstance(part, FeedForward)
    return part


@torch.no_grad()
def firing(model: DecoderOnly, ids: Tensor) -> Tensor:
    """How strongly each neuron fires on each letter, on average; (A, F)."""
    outputs: list[Tensor] = []
    hook = feed_forward_of(model).hidden.register_forward_hook(lambda *call: outputs.append(call[2]))
    model(ids)
    hook.remove()
    letter, hidden = ids.flatten() - FIRST, outputs[0].flatten(0, 1)  # (B T), (B T, F)
    return torch.stack([hidden[letter == a].mean(0) for a in range(A)])


@torch.no_grad()
def written(model: DecoderOnly, values: Tensor) -> Tensor:
    """What directions (D, F) say through the last norm's gain and the head: a logit per letter, (A, F)."""
    gain = model.get_parameter("decoder.norm.weight").unsqueeze(1)  # (D, 1)
    logits = model.head.weight[FIRST:] @ (gain * (values - values.mean(0)))
    return logits - logits.mean(0)


def hits(fires: Tensor, writes: Tensor, successor: Tensor) -> float:
    """The share of neurons whose most written letter is the successor of the letter that fires them most."""
    return float((writes.argmax(0) == successor[fires.argmax(0)]).double().mean())


def alignment(fires: Tensor, writes: Tensor, successor: Tensor) -> float:
    """Mean correlation of what a neuron writes with what should follow where it fires; over all letters."""
    wanted = torch.zeros_like(fires)
    wanted[successor] = fires
    return float(torch.cosine_similarity(wanted - wanted.mean(0), writes, dim=0).mean())


def run(seed: int, *, feed_forward: type[FeedForward] = FeedForward) -> Finding:
    generator = torch.Generator().manual_seed(seed)
    successor = torch.randperm(A, generator=generator)
    config = small(seed, layers=1, vocab_size=FIRST + A, d_ff=NEURONS)
    model = DecoderOnly(config)
    model.decoder.blocks[0].feed_forward = feed_forward(config)
    initialise(model, config)
    losses = learn(model, texts(seed, STEPS, successor), lr=5e-3)

    fires = firing(model, next(texts(seed + 1_000_000, 1, successor, batch=200))[0])
    values = feed_forward_of(model).down.weight.detach()  # (D, F): a column per neuron
    writes = written(model, values)
    random = [written(model, torch.randn(values.shape, generator=generator)) for _ in range(20)]
    dealt = [writes[:, torch.randperm(NEURONS, generator=generator)] for _ in range(20)]
    tokens = (fires > fires.amax(0) / 2).sum(0).double()  # that fire a neuron at half its peak or more
    numbers = {
        Text("loss at the end", "训练结束时的损失"): sum(losses[-20:]) / 20,
        HIT: hits(fires, writes, successor),
        DEALT: sum(hits(fires, w, successor) for w in dealt) / 20,
        CHANCE: sum(hits(fires, w, successor) for w in random) / 20,
        AGREE: alignment(fires, writes, successor),
        AGREE_BY_CHANCE: sum(alignment(fires, w, successor) for w in random) / 20,
        LETTERS: float(tokens.median()),
        ALONE: float((tokens == 1).double().mean()),
    }
    checks = [
        Check(
            Text("neurons write the successor far above random directions", "神经元写出后继字母的比例远高于随机方向"),
            numbers[HIT] - numbers[CHANCE],
            low=0.15,
        ),
        Check(
            Text(
                "over all letters, what is written follows what fires", "就全部字母而言，写出的内容与触发的内容相对应"
            ),
            numbers[AGREE] - numbers[AGREE_BY_CHANCE],
            low=0.25,
        ),
        Check(
            Text("a neuron holds one memory: one letter alone fires it", "一个神经元只存一条记忆：只被一个字母触发"),
            numbers[ALONE],
            low=0.5,
            extent=True,
        ),
    ]
    return Finding(numbers, checks, draw(fires, writes, successor, numbers), summary(numbers))


def draw(fires: Tensor, writes: Tensor, successor: Tensor, numbers: Mapping[Text, float]) -> Figure:
    stored = fires @ writes.T  # (A, A): on this letter, all neurons together write that letter
    bars = {
        Text("trained", "训练所得"): HIT,
        Text("dealt anew", "打乱对应"): DEALT,
        Text("random", "随机方向"): CHANCE,
    }
    return Figure(
        [
            Panel(
                Text("What the layer writes on each letter", "读到每个字母时该层写出什么"),
                Text("letter written, in the order of successors", "写出的字母（按后继排列）"),
                Text("letter read", "读到的字母"),
                ticks=[string.ascii_lowercase[a] for a in successor.tolist()],
                rows=list(string.ascii_lowercase),
                heat=stored[:, successor].tolist(),
            ),
            Panel(
                Text("Neurons that write the right successor", "写对后继字母的神经元"),
                Text("value vectors", "值向量"),
                Text("share of neurons", "神经元占比"),
                [Series(Text("share", "占比"), [0, 1, 2], [numbers[name] for name in bars.values()], kind="bars")],
                ticks=list(bars),
            ),
        ],
        Text("The diagonal is the secret alphabet, read out of the weights.", "对角线就是从权重中读出的隐藏字母顺序。"),
    )


def summary(numbers: Mapping[Text, float]) -> Text:
    hit, chance, agree, letters = (numbers[name] for name in (HIT, CHANCE, AGREE, LETTERS))
    return Text(
        f"{hit:.0%} of the neurons write most of all the letter that follows the one which fires them most, against "
        f"{chance:.0%} for random directions; over all letters the correlation is {agree:.2f}. But half of the "
        f"neurons fire for {letters:.0f} letters or more, at half their peak or above: memories are spread over "
        "neurons, not one to each.",
        f"{hit:.0%} 的神经元写得最多的字母，正是最能触发它的字母的后继；随机方向只有 {chance:.0%}。就全部字母而言，"
        f"相关系数为 {agree:.2f}。但半数神经元会被 {letters:.0f} 个或更多字母触发（达到峰值的一半以上）："
        "记忆分布在多个神经元中，而不是一个神经元对应一条。",
    )


LAB = Lab(
    name="memories",
    title=Text("A layer that remembers", "前馈层是一种记忆"),
    claim=Text(
        "The feed-forward layer is a key-value memory: each neuron's key finds a pattern, and its value writes the "
        "tokens that should follow.",
        "前馈层是键值记忆：每个神经元的键识别某种模式，值则写出接下来应出现的词元。",
    ),
    prediction=Text(
        "Through the head, a neuron's value vector favours the successor of the letter that fires it, one letter per "
        "neuron; random directions favour it once in 26.",
        "经过输出层，神经元的值向量偏向于触发它的字母的后继，且每个神经元只对应一个字母；随机方向命中的概率只有 1/26。",
    ),
    change=Text(
        "Depth and data: in deep models lower layers write for other layers, not for the head, and keys find phrases "
        "rather than letters. More neurons hardly change the limit: with 512 instead of 64 and seed 0, 12% have a "
        "letter of their own.",
        "取决于深度和数据：深层模型中，较低的层是写给后面的层而非输出层看的，键识别的是短语而非单个字母。"
        "增加神经元几乎不改变这一限制：种子为 0 时，把 64 个神经元增加到 512 个，也只有 12% 专属于某一个字母。",
    ),
    run=run,
)
