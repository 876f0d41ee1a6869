"""Three names of one loss: cross-entropy on one-hot labels, label smoothing, KL divergence; what is equal, what not.

Shapes: B batch, T target, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text
from glassformer.model.loss import smoothed_cross_entropy

V, PAD = 50, 0
E = 0.1  # the paper's smoothing
DESCENT = 400  # steps of gradient descent on free logits

Loss = Callable[[Tensor, Tensor, float, int], Tensor]


def target_distribution(labels: Tensor, smoothing: float) -> Tensor:
    """The distribution asked for: 1 - e on the label, e spread over all V pieces; (B, T, V)."""
    return (1 - smoothing) * F.one_hot(labels, V).double() + smoothing / V


def entropy(distribution: Tensor) -> Tensor:
    return -torch.xlogy(distribution, distribution).sum(-1)


def divergence(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """KL(wanted || model), written out and summed over real labels."""
    target = target_distribution(labels, smoothing)
    apart = -(target * logits.double().log_softmax(-1)).sum(-1) - entropy(target)
    return apart.masked_fill(labels == PAD, 0.0).sum()


def difference(loss: Loss, smoothing: float, seed: int) -> tuple[float, float, float]:
    """Over random logits: loss minus KL per label, how much that varies, and how far the gradients are apart."""
    generator = torch.Generator().manual_seed(seed)
    offsets, gaps = [], []
    for size in (0.1, 1.0, 3.0, 10.0):  # from nearly uniform models to very sure ones
        logits = (size * torch.randn(4, 8, V, generator=generator)).requires_grad_()
        labels = torch.randint(0, V, (4, 8), generator=generator)  # a label of 0 is padding
        labels[0, 5:] = PAD
        real = (labels != PAD).sum()
        entropic, kl = loss(logits, labels, smoothing, PAD), divergence(logits, labels, smoothing)
        one, other = (torch.autograd.grad(value, logits)[0] for value in (entropic, kl))
        offsets.append((entropic - kl).item() / real.item())
        gaps.append((one - other).abs().max().item())
    return sum(offsets) / len(offsets), max(offsets) - min(offsets), max(gaps)


def descend(loss: Loss, smoothing: float, seed: int) -> tuple[list[float], float]:
    """Free logits of one label under gradient descent: how far its own leads at each step, and the loss at the end."""
    logits = torch.randn(1, 1, V, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    labels = torch.tensor([[1]])
    optimizer = torch.optim.SGD([logits], lr=5.0)
    lead = []
    for _ in range(DESCENT):
        optimizer.zero_grad()
        loss(logits, labels, smoothing, PAD).backward()
        optimizer.step()
        row = logits.detach()[0, 0]
        lead.append(float(row[1] - row[2:].mean()))
    return lead, float(loss(logits.detach(), labels, smoothing, PAD))


def run(seed: int, *, loss: Loss = smoothed_cross_entropy) -> Finding:
    hard_offset, hard_spread, hard_gap = difference(loss, 0.0, seed)
    soft_offset, soft_spread, soft_gap = difference(loss, E, seed)
    floor = float(entropy(target_distribution(torch.tensor(1), E)))
    predicted = math.log(V * (1 - E) / E + 1)  # where softmax gives exactly the wanted shares
    hard_lead, hard_end = descend(loss, 0.0, seed)
    soft_lead, soft_end = descend(loss, E, seed)
    gap, lead, perplexity = max(hard_gap, soft_gap), soft_lead[-1], math.exp(soft_end)
    hard_gain, soft_gain = (each[-1] - each[DESCENT // 2] for each in (hard_lead, soft_lead))
    numbers = {
        Text("one-hot: cross-entropy minus KL", "one-hot：交叉熵减 KL 散度"): hard_offset,
        Text("smoothed: cross-entropy minus KL", "平滑：交叉熵减 KL 散度"): soft_offset,
        Text("entropy of the smoothed label", "平滑标签的熵"): floor,
        Text("largest difference of gradients", "梯度的最大差"): gap,
        Text("smoothed: lowest loss reached", "平滑：达到的最低损失"): soft_end,
        Text("smoothed: perplexity of a perfect model", "平滑：完美模型的困惑度"): perplexity,
        Text("smoothed: lead of the label's logit at the end", "平滑：最终标签 logit 的领先量"): lead,
        Text("smoothed: lead predicted", "平滑：预测的领先量"): predicted,
        Text("one-hot: lowest loss reached", "one-hot：达到的最低损失"): hard_end,
        Text("one-hot: lead at the end", "one-hot：最终的领先量"): hard_lead[-1],
        Text("one-hot: lead gained in the second half", "one-hot：后半程增加的领先量"): hard_gain,
        Text("smoothed: lead gained in the second half", "平滑：后半程增加的领先量"): soft_gain,
    }
    one_hot = Text("one-hot labels: cross-entropy is the KL divergence", "one-hot 标签：交叉熵就等于 KL 散度")
    smoothed = Text("smoothed labels: the two differ by the label's entropy", "平滑标签：两者只差标签分布的熵")
    at_entropy = Text("the smoothed loss ends at that entropy, not at zero", "平滑损失的最小值是该熵，而不是零")
    finite_lead = Text("smoothing stops the logits at a finite lead", "平滑使 logit 的领先量停在有限值")
    unbounded = Text("one-hot labels never stop them", "one-hot 标签则会让它一直增大")
    checks = [
        Check(one_hot, abs(hard_offset) + hard_spread, high=1e-3, every=True),
        Check(smoothed, abs(soft_offset - floor) + soft_spread, high=1e-3, every=True),
        Check(Text("their gradients are equal", "两者的梯度相等"), gap, high=1e-4, every=True),
        Check(at_entropy, abs(soft_end - floor), high=1e-2),
        Check(finite_lead, abs(lead - predicted), high=0.1),
        Check(unbounded, hard_gain, low=0.3),
    ]
    quoted = {"offset": soft_offset, "gap": gap, "end": soft_end, "perplexity": perplexity}
    quoted |= {"lead": lead, "gain": hard_gain}
    return Finding(numbers, checks, draw(loss, floor, hard_lead, soft_lead, predicted), SUMMARY, quoted)


def draw(loss: Loss, floor: float, hard_lead: Sequence[float], soft_lead: Sequence[float], predicted: float) -> Figure:
    leads = [0.25 * i for i in range(61)]
    label = torch.tensor([[1]])

    def at(lead: float, smoothing: float) -> float:
        return float(loss(F.one_hot(label, V) * lead, label, smoothing, PAD))

    steps = list(range(DESCENT))
    hard, soft = Text("one-hot", "one-hot"), Text(f"smoothing {E}", f"平滑 {E}")
    left = Panel(
        Text("The loss by how sure the model is", "损失随模型的确信程度变化"),
        Text("lead of the label's logit", "标签 logit 的领先量"),
        Text("loss (nats)", "损失（奈特）"),
        [
            Series(hard, leads, [at(lead, 0.0) for lead in leads]),
            Series(soft, leads, [at(lead, E) for lead in leads]),
            Series(
                Text("KL to the smoothed label", "与平滑标签的 KL 散度"),
                leads,
                [at(lead, E) - floor for lead in leads],
                dashed=True,
            ),
        ],
    )
    right = Panel(
        Text("Where gradient descent takes the logits", "梯度下降把 logit 带到哪里"),
        Text("step", "步数"),
        Text("lead of the label's logit", "标签 logit 的领先量"),
        [
            Series(hard, steps, hard_lead),
            Series(soft, steps, soft_lead),
            Series(Text("predicted", "预测值"), [0, DESCENT - 1], [predicted, predicted], dashed=True),
        ],
    )
    return Figure([left, right])


SUMMARY = Text(
    f"On one-hot labels cross-entropy and KL are the same number; with smoothing {E} over {V} pieces they differ by "
    "{offset:.4f}, the label's own entropy, and their gradients by {gap:max.0e}. The smoothed loss ends at {end:.3f} "
    "(perplexity {perplexity:.2f} for a perfect model) with the label's logit {lead:.2f} ahead; one-hot labels push it "
    "on, by another {gain:.2f} in the second half of the descent.",
    f"one-hot 标签下，交叉熵与 KL 散度是同一个数；在 {V} 个词元上平滑 {E} 时，两者相差 {{offset:.4f}}，"
    "正是标签分布自身的熵，梯度之差不超过 {gap:max.0e}。平滑损失最低只能到 {end:.3f}（完美模型的困惑度也有 "
    "{perplexity:.2f}），此时标签 logit 领先 {lead:.2f}；one-hot 标签则会一直把它推高，下降的后半程又增加 {gain:.2f}。",
)


CLAIM = Claim(
    title=Text("One loss, three names", "一个损失，三个名字"),
    claim=Text(
        "Cross-entropy on one-hot labels is the KL divergence; with label smoothing the two differ by a constant, so "
        "they train alike. Smoothing moves the minimum: above zero, and at finite logits.",
        "one-hot 标签上的交叉熵就是 KL 散度；使用标签平滑时两者只差一个常数，因此训练效果相同。平滑改变的是最小值："
        "它大于零，并且在有限的 logit 处取到。",
    ),
    prediction=Text(
        "Cross-entropy minus KL is 0 for one-hot labels and the entropy of the smoothed label otherwise, whatever the "
        "model says; gradients agree; free logits stop at ln(V (1 - e) / e + 1).",
        "无论模型输出什么，交叉熵减 KL 散度：one-hot 时为 0，平滑时为平滑标签的熵；梯度一致；自由的 logit 停在 "
        "ln(V(1 - e)/e + 1)。",
    ),
    change=Text(
        "A wanted distribution that itself depends on the model (distillation, a schedule of e): its entropy is no "
        "longer a constant. KL taken the other way round is another loss. Spreading e over the V - 1 other pieces is "
        "smoothing with e V / (V - 1).",
        "若目标分布本身随模型变化（如自蒸馏、变动的 e），其熵就不再是常数。反方向的 KL 是另一个损失。若把 e "
        "只分给其余 V - 1 个词元，等价于平滑系数取 e·V/(V - 1)。",
    ),
)
