"""Teacher forcing: all steps of a known target in one parallel pass, and the same steps one by one.

The two are compared where training feels it: in the log-probability of every label and in the gradient of the loss.

Shapes: B sentences, S source, T target, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, join
from glassformer.labs.toy import small_config
from glassformer.model import EncoderDecoder, ModelConfig

SENTENCES, SOURCE, TARGET, VOCABULARY = 8, 9, 24, 40
ROUNDING = 1e-9  # in float64, far above its rounding and far below any real difference


def run(seed: int, *, build: Callable[[ModelConfig], EncoderDecoder] = EncoderDecoder) -> Finding:
    config = small_config(seed, vocab_size=VOCABULARY, tied=True)
    model = build(config).double()  # so that only a real difference is left to see
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(3, VOCABULARY, (SENTENCES, SOURCE), generator=generator)
    labels = torch.randint(3, VOCABULARY, (SENTENCES, TARGET), generator=generator)
    start = labels.new_full((SENTENCES, 1), config.start_id or 0)
    tgt = torch.cat((start, labels[:, :-1]), dim=1)  # shifted: each step reads the labels before its own

    parallel = model(src, tgt)  # (B, T, V)
    serial = step_by_step(model, src, tgt)
    slopes = [gradient(model, logits, labels) for logits in (parallel, serial)]
    parallel, serial = parallel.detach(), serial.detach()
    cached = with_cache(model, src, tgt)
    apart = [(parallel - other).abs().amax((0, 2)) for other in (serial, cached)]  # (T) each
    worst, worst_cached = (float(each.max()) for each in apart)
    slope_apart = float((slopes[0] - slopes[1]).norm() / slopes[0].norm())
    likely = [logits.log_softmax(-1).gather(2, labels.unsqueeze(2))[0, :, 0] for logits in (parallel, serial)]
    # The first step reads the start token either way, so the comparison begins with the second.
    alike = float((free_running(model, src)[:, 1:] == parallel.argmax(-1)[:, 1:]).double().mean())
    largest = Text("largest difference of logits", "logit 的最大差")
    numbers = {
        join(largest, Text("one pass against steps", "一次并行与逐步")): worst,
        join(largest, Text("one pass against steps with a cache", "一次并行与带缓存的逐步")): worst_cached,
        Text("difference of the loss's gradient, relative", "损失梯度的相对差"): slope_apart,
        Text("spread of the logits (standard deviation)", "logit 的标准差"): float(parallel.std()),
        Text(
            "share of steps with the same choice if the model reads its own words",
            "改读模型自己的输出时，选择相同的步数比例",
        ): alike,
    }
    would_show = Text(
        "the logits are far from all alike, so a difference would show", "logit 彼此差别明显，若有偏差必会显现"
    )
    checks = [
        Check(Text("the logits of every step are the same", "每一步的 logit 都相同"), worst, high=ROUNDING, every=True),
        Check(Text("the same with a KV cache", "使用 KV 缓存时也相同"), worst_cached, high=ROUNDING, every=True),
        Check(Text("the gradient of the loss is the same", "损失的梯度也相同"), slope_apart, high=ROUNDING, every=True),
        Check(would_show, float(parallel.std()), low=0.1),
    ]
    summary = Text(
        f"{TARGET} steps in one pass and one by one: logits differ by at most {{worst:max.0e}}, "
        "gradients by {slope:max.0e} (relative, float64 rounding). It is the same computation on the same "
        "inputs; fed its own words instead of the labels, this untrained model chooses alike in {alike:.0%} of "
        "the steps, and that gap teacher forcing does not train.",
        f"{TARGET} 步一次并行算完与逐步计算相比：logit 最多相差 {{worst:max.0e}}，梯度相对误差不超过 "
        "{slope:max.0e}（float64 舍入误差）。输入相同，计算就相同；"
        "若改为读入模型自己的输出，这个未训练的模型只有 {alike:.0%} 的步骤选择一致，教师强制并不训练这种情形。",
    )
    quoted = {"worst": worst, "slope": slope_apart, "alike": alike}
    return Finding(numbers, checks, draw(apart, likely), summary, quoted)


def step_by_step(model: EncoderDecoder, src: Tensor, tgt: Tensor) -> Tensor:
    """Each step reads the target as far as it has come, and knows nothing of the rest."""
    memory = model.encode(src)
    steps = [model.decode(tgt[:, : t + 1], memory)[:, -1] for t in range(tgt.shape[1])]
    return torch.stack(steps, dim=1)  # (B, T, V)


@torch.no_grad()
def with_cache(model: EncoderDecoder, src: Tensor, tgt: Tensor) -> Tensor:
    memory, cache = model.encode(src), model.new_cache(tgt.shape[1])
    return torch.cat([model.decode(tgt[:, t : t + 1], memory, cache=cache) for t in range(tgt.shape[1])], dim=1)


@torch.no_grad()
def free_running(model: EncoderDecoder, src: Tensor) -> Tensor:
    """What the model chooses when it reads its own choices: inference."""
    memory, cache = model.encode(src), model.new_cache(TARGET)
    tokens = [src.new_full((len(src), 1), model.config.start_id or 0)]
    for _ in range(TARGET):
        tokens.append(model.decode(tokens[-1], memory, cache=cache).argmax(-1))
    return torch.cat(tokens[1:], dim=1)  # (B, T)


def gradient(model: EncoderDecoder, logits: Tensor, labels: Tensor) -> Tensor:
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())  # training's own would round to float32 first
    return torch.cat([slope.flatten() for slope in torch.autograd.grad(loss, list(model.parameters()))])


def draw(apart: list[Tensor], likely: list[Tensor]) -> Figure:
    steps = list(range(1, TARGET + 1))
    step = Text("step", "步")
    floor = 1e-18  # a difference of zero has no place on a logarithmic axis
    left = Panel(
        Text("One target, label by label", "同一目标序列，逐个标签"),
        step,
        Text("log-probability of the label", "标签的对数概率"),
        [
            Series(Text("one parallel pass", "一次并行"), steps, likely[0].tolist()),
            Series(Text("one step at a time", "逐步"), steps, likely[1].tolist(), kind="points"),
        ],
        example=True,
    )
    right = Panel(
        Text("Largest difference of the logits", "logit 的最大差"),
        step,
        Text("|difference|, float64", "|差|，float64"),
        [
            Series(Text("against steps", "与逐步相比"), steps, apart[0].clamp_min(floor).tolist()),
            Series(Text("against steps with a cache", "与带缓存的逐步相比"), steps, apart[1].clamp_min(floor).tolist()),
            Series(Text("allowed", "容许"), [1, TARGET], [ROUNDING, ROUNDING], dashed=True),
        ],
        log_y=True,
    )
    return Figure([left, right])


CLAIM = Claim(
    title=Text("Teacher forcing", "教师强制"),
    claim=Text(
        "Teacher forcing in one parallel pass equals running the steps one by one.",
        "教师强制下一次并行前向，与逐步运行得到的结果相同。",
    ),
    prediction=Text(
        "With the target shifted by one and a causal mask, the logits of every step and the gradient of the loss agree "
        "to rounding.",
        "目标右移一位并使用因果掩码时，每一步的 logit 和损失的梯度都一致，只差舍入误差。",
    ),
    change=Text(
        "A mask that leaks, a target that is not shifted, or dropout, which draws other zeros for every pass.",
        "掩码泄漏、目标没有右移，或开启 dropout（每次前向随机置零的位置不同），都会使两者不再相等。",
    ),
)
