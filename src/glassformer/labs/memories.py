"""The feed-forward layer as a memory: a neuron's key decides when it fires, its value what it writes to the output.

A one-layer model learns a secret table by heart: after two letters comes a third, drawn at random for every pair. What
is right after a pair cannot be put together from what is right after each of its letters, so somewhere the pair has to
be recognised. The same model is trained without its feed-forward layer, and looked into with it, neuron by neuron.

Shapes: N facts (pairs of letters), A letters, F neurons, D model width.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Text, bars
from glassformer.labs.toy import FIRST, PAD, Pair, learn, record, small_config
from glassformer.model import DecoderOnly, ModelConfig
from glassformer.model.layer import FeedForward
from glassformer.model.transformer import initialise

A, WIDTH, NEURONS = 20, 12, 256
STEPS, RATE, FINE = 110, 1e-2, 30  # the last steps are smaller
DEALS = 20  # of values to other neurons, for comparison


class NoFeedForward(nn.Module):
    """Adds nothing to the stream."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


def secret_table(seed: int) -> tuple[Tensor, Pair]:
    """The letter that follows each pair (N), and all pairs as one batch; only the third letter is to be learnt."""
    third = torch.randint(A, (A * A,), generator=torch.Generator().manual_seed(seed))
    pairs = torch.cartesian_prod(torch.arange(A), torch.arange(A))  # (N, 2)
    labels = torch.stack((torch.full_like(third, PAD), FIRST + third), dim=1)
    return third, (FIRST + pairs, labels)


def train(seed: int, pair: Pair, part: Callable[[ModelConfig], nn.Module]) -> DecoderOnly:
    config = small_config(seed, layers=1, d_model=WIDTH, heads=1, vocab_size=FIRST + A, d_ff=NEURONS)
    model = DecoderOnly(config)
    model.decoder.blocks[0].feed_forward = part(config)
    initialise(model, config)
    learn(model, itertools.repeat(pair, STEPS - FINE), RATE)
    learn(model, itertools.repeat(pair, FINE), RATE / 5)
    return model


@torch.no_grad()
def share_known(model: DecoderOnly, pair: Pair) -> float:
    ids, labels = pair
    return float((model(ids)[:, 1].argmax(-1) == labels[:, 1]).double().mean())


def feed_forward_of(model: DecoderOnly) -> FeedForward:
    part = model.get_submodule("decoder.blocks.0.feed_forward")
    assert isinstance(part, FeedForward)
    return part


@torch.no_grad()
def neuron_activations(model: DecoderOnly, ids: Tensor) -> Tensor:
    """How strongly each neuron fires on each fact; (N, F)."""
    fired = record(feed_forward_of(model).hidden)
    model(ids)
    return fired[0][:, 1]


@torch.no_grad()
def value_logits(model: DecoderOnly) -> Tensor:
    """What each neuron's value says through the last norm's gain and the head: a logit per letter, (A, F)."""
    values = feed_forward_of(model).down.weight  # (D, F): a column per neuron
    gain = model.get_parameter("decoder.norm.weight").unsqueeze(1)  # (D, 1)
    logits = model.head.weight[FIRST:] @ (gain * (values - values.mean(0)))
    return logits - logits.mean(0)


def firing_by_letter(fires: Tensor, third: Tensor) -> Tensor:
    """How strongly each neuron fires, on average, where each letter should follow; (A, F)."""
    follows = nn.functional.one_hot(third, A).to(fires.dtype)  # (N, A)
    return follows.T @ fires / follows.sum(0).clamp_min(1).unsqueeze(1)


def agreement(wants: Tensor, writes: Tensor) -> float:
    """Mean correlation, over the neurons, of the letters written with the letters that should be."""
    return float(torch.cosine_similarity(wants - wants.mean(0), writes, dim=0).mean())


def run(seed: int, *, feed_forward: type[nn.Module] = FeedForward) -> Finding:
    third, pair = secret_table(seed)
    model = train(seed, pair, feed_forward)
    fires, writes = neuron_activations(model, pair[0]), value_logits(model)
    wants = firing_by_letter(fires, third)
    generator = torch.Generator().manual_seed(seed)
    deals = [writes[:, torch.randperm(NEURONS, generator=generator)] for _ in range(DEALS)]
    facts = (fires > fires.amax(0) / 2).sum(0).double()
    whole = share_known(model, pair)
    alone = float(((fires @ writes.T).argmax(1) == third).double().mean())
    with_layer = feed_forward_of(model).register_forward_hook(lambda _module, _inputs, output: torch.zeros_like(output))
    cut = share_known(model, pair)
    with_layer.remove()
    without = share_known(train(seed, pair, lambda config: NoFeedForward()), pair)
    agree, dealt = agreement(wants, writes), sum(agreement(wants, dealt) for dealt in deals) / DEALS
    single, median = float((facts == 1).double().mean()), float(facts.median())
    numbers = {
        Text("share of the facts known", "记住的事实比例"): whole,
        Text("the same, trained without the layer", "同上，训练时就没有前馈网络"): without,
        Text("the same, the layer cut out after training", "同上，训练后切除前馈网络"): cut,
        Text("share of the facts that the layer's output names by itself", "仅凭该层的输出就能说对的事实比例"): alone,
        Text(
            "correlation of what a neuron writes with what should follow where it fires",
            "神经元写出的内容与触发处应有后继的相关系数",
        ): agree,
        Text("the same, values dealt to other neurons", "同上，值向量打乱后分给其他神经元"): dealt,
        Text(
            "facts that fire a neuron at half its peak or more, median", "以峰值一半以上触发一个神经元的事实数，中位数"
        ): median,
        Text("neurons that one fact alone fires", "只被一条事实触发的神经元比例"): single,
    }
    fewer_facts = Text(
        "without the layer far fewer facts are learnt (difference of shares)",
        "没有前馈网络，学会的事实少得多（比例之差）",
    )
    right_values = Text(
        "neurons write what should follow where they fire, above values that were dealt anew",
        "神经元写出的正是触发处应有的后继，相关系数高于打乱的值向量",
    )
    whole_fact = Text(
        "what the layer writes is the whole fact, the stream beside it left out",
        "该层写出的就是完整的事实，不必借助残差流",
    )
    one_fact = Text("a neuron holds one memory: one fact alone fires it", "一个神经元只存一条记忆：只被一条事实触发")
    checks = [
        Check(fewer_facts, whole - without, low=0.3),
        Check(right_values, agree - dealt, low=0.05),
        Check(whole_fact, alone, low=0.5, extent=True),
        Check(one_fact, single, low=0.5, extent=True),
    ]
    quoted = {"known": whole, "without": without, "cut": cut, "alone": alone}
    quoted |= {"agree": agree, "dealt": dealt, "facts": median}
    return Finding(numbers, checks, draw(wants, writes, [whole, without, cut]), SUMMARY, quoted)


def draw(wants: Tensor, writes: Tensor, shares: Sequence[float]) -> Figure:
    stored = (wants - wants.mean(0)) @ writes.T  # (A, A): where this letter should follow, all neurons write that one
    letters = [chr(ord("a") + i) for i in range(A)]
    left = Panel(
        Text("What the layer writes where each letter should follow", "应出现每个字母之处，该层写出什么"),
        Text("letter written", "写出的字母"),
        Text("letter that should follow", "应出现的字母"),
        ticks=letters,
        rows=letters,
        heat=stored.tolist(),
    )
    right = Panel(
        Text("Facts known", "记住的事实"),
        Text("model", "模型"),
        Text(f"share of {A * A} facts", f"{A * A} 条事实中的比例"),
        [bars(Text("share", "占比"), shares)],
        ticks=[
            Text("with the layer", "有前馈网络"),
            Text("trained without", "训练时没有"),
            Text("cut out", "训练后切除"),
        ],
    )
    return Figure(
        [left, right],
        Text(
            "On the diagonal, the layer writes what should follow: facts read out of the weights.",
            "对角线表示该层写出的正是应出现的字母：这些事实是从权重中读出的。",
        ),
    )


SUMMARY = Text(
    f"Of {A * A} facts “after these two letters comes that one”, the model knows {{known:.0%}}; trained without its "
    "feed-forward layer, {without:.0%}; with the layer cut out afterwards, {cut:.0%}. Each neuron's value favours what "
    "should follow where its key fires (correlation {agree:.2f}, with values of other neurons {dealt:.2f}). But half "
    "of the neurons fire for {facts:.0f} facts or more, and what the layer writes names {alone:.0%} of the facts "
    "without the stream that it is added to: memories are spread over neurons, not one to each.",
    f"共有 {A * A} 条“这两个字母之后是那个字母”的事实，模型记住了 {{known:.0%}}；"
    "训练时没有前馈网络，为 {without:.0%}；训练后切除前馈网络，为 {cut:.0%}。"
    "每个神经元的值偏向于键触发处应有的后继（相关系数 {agree:.2f}，"
    "换成其他神经元的值为 {dealt:.2f}）。但半数神经元会被 {facts:.0f} 条或更多事实触发；若不借助它所加入的残差流，"
    "该层写出的内容只能说对 {alone:.0%} 的事实：记忆分布在多个神经元中，而不是一个神经元对应一条。",
)

CLAIM = Claim(
    title=Text("A layer that remembers", "前馈网络是一种记忆"),
    claim=Text(
        "The feed-forward layer is a key-value memory: each neuron's key finds a pattern, and its value writes the "
        "tokens that should follow.",
        "前馈网络是键值记忆：每个神经元的键识别某种模式，值则写出接下来应出现的词元。",
    ),
    prediction=Text(
        "A model without the layer learns far less of a random table of pairs. Through the head, each neuron's value "
        "favours what follows the pairs that fire it, one pair to a neuron, and together they write the facts.",
        "没有前馈网络的模型，随机的字母对照表只能学会一小部分。经过输出层，每个神经元的值偏向于触发它的字母对的后继，"
        "一个神经元对应一对，合起来就写出这些事实。",
    ),
    change=Text(
        "Room: attention recognises pairs too, if less well, and a wider model or several layers of attention alone "
        "learn such a table. In deep models lower layers write for other layers, not for the head.",
        "取决于容量：注意力也能识别字母对，只是差一些；模型更宽，或只用注意力但叠几层，同样能学会这样的表。"
        "深层模型中，较低的层是写给后面的层而非输出层看的。",
    ),
)
