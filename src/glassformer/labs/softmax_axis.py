"""Softmax over the keys, or by mistake over the queries.

Both give numbers between 0 and 1 of the same shape. The lab looks at the weights, at what an earlier output owes to a
later token, and at what a model with the mistake learns: a decoder that must then write by itself, and an encoder that
is given the whole text at once.

Shapes: B batch, T queries, S keys, H heads, d head width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Text, bars, join
from glassformer.labs.toy import FIRST, PAD, SYMBOLS, Pair, Part
from glassformer.model import DecoderOnly, EncoderOnly
from glassformer.model.attention import Attention, AttentionMask, softmax
from glassformer.model.cache import LayerCache

TURN = 1  # the id after which the symbols are to be written backwards
LENGTH = 4
STEPS, ENCODER_STEPS, RATE = 200, 160, 1e-2
NAMES = {"keys": Text("over the keys", "沿键"), "queries": Text("over the queries", "沿查询")}


class OverQueries(Attention):
    """The mistake: of each key's column the queries get shares that sum to one."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, cache: LayerCache | None) -> Tensor:
        scores = q @ k.mT * self.scale  # (B, H, T, S)
        if mask.bias is not None:
            scores = scores + mask.bias
        elif mask.causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, float("-inf"))
        return softmax(scores.mT).mT @ v  # (B, H, T, d)


def reversal_texts(seed: int, steps: int, batch: int = 16) -> Iterator[Pair]:
    """Symbols, the sign to turn, and the symbols backwards: the second half is to be learnt."""
    for ids, backwards in toy.reversals(seed, steps, batch, LENGTH):
        sign = torch.full((batch, 1), TURN)
        yield (torch.cat((ids, sign, backwards[:, :-1]), 1), torch.cat((torch.full_like(ids, PAD), backwards), 1))


@torch.no_grad()
def share_written(model: DecoderOnly, pair: Pair) -> float:
    """The share of symbols that are right when each is written from what the model itself wrote before it."""
    ids, labels = pair
    written = ids[:, : LENGTH + 1]
    for _ in range(LENGTH):
        written = torch.cat((written, model(written)[:, -1:].argmax(-1)), 1)
    return float((written[:, LENGTH + 1 :] == labels[:, LENGTH:]).float().mean())


@torch.no_grad()
def row_sum_error(part: Part, seed: int) -> float:
    """How far the weights of a query are from a sum of one: told by values that are all ones, at the worst query."""
    attention = part(toy.small_config(seed))
    q, k = torch.randn(2, 8, 4, 12, attention.d_head, generator=torch.Generator().manual_seed(seed)).unbind(0)
    sums = attention.attend(q, k, torch.ones_like(k), AttentionMask(), None)  # (B, H, T, d)
    return float((sums - 1).abs().max())


@torch.no_grad()
def leak(model: DecoderOnly, seed: int) -> float:
    """How far earlier outputs move when the last token becomes another, over the spread of the outputs."""
    ids, _ = next(toy.reversals(seed, 1))
    other = ids.clone()
    other[:, -1] = FIRST + (ids[:, -1] - FIRST + SYMBOLS // 2) % SYMBOLS
    before, after = model(ids), model(other)
    return float((after - before)[:, :-1].abs().max() / before.std())


def run(seed: int, *, part: Part = Attention) -> Finding:
    parts: dict[str, Part] = {"keys": part, "queries": OverQueries}
    exam = next(reversal_texts(seed + 1_000_000, 1, 200))
    errors, leaks, curves, forced, written, read = (dict.fromkeys(parts, 0.0) for _ in range(6))
    losses: dict[str, Sequence[float]] = {}
    for name, each in parts.items():
        errors[name] = row_sum_error(each, seed)
        config = toy.small_config(seed, layers=1)
        writer = toy.with_attention(DecoderOnly, config, each)
        reader = toy.with_attention(EncoderOnly, config, each)
        leaks[name] = leak(writer, seed)
        losses[name] = toy.learn(writer, reversal_texts(seed, STEPS), RATE)
        curves[name] = toy.final_loss(losses[name])
        forced[name], written[name] = toy.accuracy(writer, exam), share_written(writer, exam)
        toy.learn(reader, toy.reversals(seed, ENCODER_STEPS, 16, LENGTH), RATE)
        read[name] = toy.accuracy(reader, next(toy.reversals(seed + 1_000_000, 1, 200, LENGTH)))
    kinds = {
        Text("a query's weights: largest distance of their sum from one", "一个查询的权重之和与 1 的最大差"): errors,
        Text("causal: move of earlier outputs by the last token", "因果注意力：末尾词元使前面输出的变化"): leaks,
        Text(f"decoder: loss after {STEPS} steps", f"解码器：{STEPS} 步后的损失"): curves,
        Text("decoder: symbols right when the text is given", "解码器：给出原文时的正确率"): forced,
        Text("decoder: symbols right when it writes by itself", "解码器：自行生成时的正确率"): written,
        Text("encoder: symbols right", "编码器：正确率"): read,
    }
    numbers = {join(kind, NAMES[name]): value for kind, values in kinds.items() for name, value in values.items()}
    lost = written["keys"] - written["queries"]
    sums_to_one = Text("over the keys, a query's weights sum to one", "沿键：一个查询的权重之和为 1")
    causal = Text("over the keys, no earlier output moves with a later token", "沿键：后面的词元不影响前面的输出")
    leaking = Text("over the queries, they do, behind the causal mask", "沿查询：有因果掩码也会受影响")
    exposed = Text("the training loss gives the mistake away", "训练损失能暴露这个错误")
    spoilt = Text("an encoder is spoilt by it too", "编码器也会因此受损")
    checks = [
        Check(sums_to_one, errors["keys"], high=1e-5, every=True),
        Check(Text("over the queries, they do not", "沿查询：权重之和不为 1"), errors["queries"], low=0.3, every=True),
        Check(causal, leaks["keys"], high=1e-5, every=True),
        Check(leaking, leaks["queries"], low=0.03),
        Check(Text("over the keys, the decoder writes as it learnt", "沿键：解码器能正常生成"), written["keys"], 0.9),
        Check(Text("over the queries, it loses symbols when it writes", "沿查询：自行生成时出错"), lost, low=0.15),
        Check(exposed, curves["queries"] - curves["keys"], low=0.3, extent=True),
        Check(spoilt, read["keys"] - read["queries"], low=0.1, extent=True),
    ]
    quoted = {"sums": errors["queries"], "moved": leaks["queries"], "forced_queries": forced["queries"]}
    for name in NAMES:
        quoted |= {f"loss_{name}": curves[name], f"written_{name}": written[name], f"read_{name}": read[name]}
    summary = Text(
        "Over the queries, a query's weights miss a sum of one by up to {sums:.1f}, and earlier outputs move with the "
        "last token by {moved:.2f} of their spread, causal mask or not. Training does not tell: the loss comes to "
        "{loss_queries:.2f} ({loss_keys:.2f} over the keys) and {forced_queries:.0%} of the symbols are right while "
        "the text is given. Writing by itself, the decoder gets {written_queries:.0%} right, over the keys "
        "{written_keys:.0%}. An encoder, which has the whole text whenever it is used, reads on: "
        "{read_queries:.0%} and {read_keys:.0%}.",
        "沿查询做 softmax 时，一个查询的权重之和与 1 最多相差 {sums:.1f}；即使有因果掩码，末尾词元也会使前面的输出移动"
        "其标准差的 {moved:.2f} 倍。训练看不出问题：损失降到 {loss_queries:.2f}（沿键为 {loss_keys:.2f}），"
        "给出原文时正确率为 {forced_queries:.0%}。自行生成时，解码器的正确率为 {written_queries:.0%}，"
        "沿键为 {written_keys:.0%}。编码器使用时总能看到全文，因此照常工作：{read_queries:.0%} 与 {read_keys:.0%}。",
    )
    right = {name: [forced[name], written[name], read[name]] for name in NAMES}
    return Finding(numbers, checks, figure(losses, right), summary, quoted)


def figure(losses: Mapping[str, Sequence[float]], right: Mapping[str, Sequence[float]]) -> Figure:
    places = (
        Text("decoder, text given", "解码器（给出原文）"),
        Text("decoder, writing", "解码器（自行生成）"),
        Text("encoder", "编码器"),
    )
    left = toy.training_panel(
        Text("Training of the decoder", "解码器的训练"),
        [(NAMES[name], curve) for name, curve in losses.items()],
        toy.uniform_line([1, STEPS]),
    )
    after = Panel(
        Text("Symbols right after training", "训练后的正确率"),
        Text("model and use", "模型与用法"),
        Text("share right", "正确率"),
        [bars(NAMES[name], shares) for name, shares in right.items()],
        ticks=places,
    )
    return Figure([left, after], toy.TASK)


CLAIM = Claim(
    title=Text("Softmax over the wrong axis", "softmax 沿错了轴"),
    claim=Text(
        "Softmax must go over the keys, so that each query's weights sum to one; over another axis the code runs and "
        "the model is spoilt.",
        "softmax 必须沿键的轴，使每个查询的权重之和为 1；沿别的轴代码也能运行，但模型就坏了。",
    ),
    prediction=Text(
        "Over the queries, sums differ from one, and an earlier output depends on later tokens; the model learns "
        "worse, and a decoder cannot write what it seemed to have learnt.",
        "沿查询时，权重之和不为 1，前面的输出依赖后面的词元；模型学得更差，解码器写不出它看似已经学会的内容。",
    ),
    change=Text(
        "How the model is used: an encoder given whole texts of one length learns around the mistake. Padding, texts "
        "of other lengths or one token at a time, as with a cache, bring it out.",
        "取决于用法：编码器每次都看到等长的全文，能绕开这个错误；一旦有填充、长度不同，或像带缓存那样逐个生成，"
        "问题就会显现。",
    ),
)
