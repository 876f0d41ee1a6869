"""The KV cache: what a step costs with it and without, in multiply-adds and in time, and that it writes the same text.

Shapes: T tokens of the whole output, V vocabulary.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor, nn

from glassformer.labs import toy
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, fill
from glassformer.model import Cache, DecoderOnly, ModelConfig
from glassformer.model.attention import Attention
from glassformer.model.transformer import Head, share_weights

LENGTH = 128
FROM = 32  # orders are fitted from here on: sums over few steps have not final_loss yet
FAR, REPEATS = 1000, 7  # for the clock, which sees nothing of orders at short lengths
ATTENTION, DENSE = "attention", "dense layers"

MakeCache = Callable[[DecoderOnly, int], Cache]


class Reading(NamedTuple):
    """One text taken token by token; `attention` and `dense` are the multiply-adds of each step."""

    logits: Tensor  # (T, V)
    attention: Sequence[float]
    dense: Sequence[float]


def run(seed: int, *, make_cache: MakeCache = DecoderOnly.new_cache) -> Finding:
    # Not tied: a tied model that has learnt nothing repeats its last token, whatever the cache holds.
    model = DecoderOnly(
        ModelConfig(vocab_size=64, d_model=64, heads=4, d_ff=256, layers=2, dropout=0.0, tied=False, seed=seed)
    ).eval()
    text = torch.randint(3, 64, (1, LENGTH), generator=torch.Generator().manual_seed(seed))
    without, cached = (read(model, text, make) for make in (None, make_cache))
    apart = float((without.logits - cached.logits).abs().max())
    same = float((without.logits.argmax(-1) == cached.logits.argmax(-1)).double().mean())
    whole, cached_whole = (list(accumulate(reading.attention)) for reading in (without, cached))
    orders = {
        Text("attention, one step, without cache", "单步注意力，无缓存"): order(without.attention),
        Text("attention, one step, with cache", "单步注意力，有缓存"): order(cached.attention),
        Text("attention, whole output, without cache", "整段输出的注意力，无缓存"): order(whole),
        Text("attention, whole output, with cache", "整段输出的注意力，有缓存"): order(cached_whole),
        Text("dense layers, one step, without cache", "单步的线性层，无缓存"): order(without.dense),
        Text("dense layers, one step, with cache", "单步的线性层，有缓存"): order(cached.dense),
    }
    step_without, step_with, whole_without, whole_with = list(orders.values())[:4]
    faster = speed_up(model, make_cache)
    total = [sum(reading.attention) + sum(reading.dense) for reading in (without, cached)]
    numbers = {
        Text("largest difference of logits", "logit 的最大差"): apart,
        Text("share of steps with equal choices", "选择相同的步数比例"): same,
        **{fill(Text("order in T: {0}", "T 的阶：{0}"), name): value for name, value in orders.items()},
        Text(f"multiply-adds for {LENGTH} tokens, without cache", f"{LENGTH} 个词元的乘加次数，无缓存"): total[0],
        Text(f"multiply-adds for {LENGTH} tokens, with cache", f"{LENGTH} 个词元的乘加次数，有缓存"): total[1],
        Text(
            "with cache: attention's share of the last step's multiply-adds", "有缓存：最后一步的乘加中注意力所占比例"
        ): cached.attention[-1] / (cached.attention[-1] + cached.dense[-1]),
        Text(
            f"time of a step after {FAR} tokens, without cache / with cache",
            f"{FAR} 个词元之后一步的耗时，无缓存 / 有缓存",
        ): faster,
    }
    summary = Text(
        f"{LENGTH} tokens: the same text (logits within {{apart:max.0e}}) with {{fewer:.0f}} times fewer "
        f"multiply-adds; by the clock, a step after {FAR} tokens is {{faster:.0f}} times faster. "
        "Attention of one step grows as T^{step_with:.2f} instead of T^{step_without:.2f}. “O(T^2) to O(T)” speaks "
        "of a step: a whole text goes from T^{whole_without:.2f} to T^{whole_with:.2f}.",
        f"{LENGTH} 个词元：输出相同（logit 相差不超过 {{apart:max.0e}}），乘加次数约为原来的 1/{{fewer:.0f}}；"
        f"按实测时间，{FAR} 个词元之后的一步快 {{faster:.0f}} 倍。单步注意力从 T^{{step_without:.2f}} "
        "降为 T^{step_with:.2f}。“O(T²) 降为 O(T)”说的是单步：整段输出从 T^{whole_without:.2f} 降为 "
        "T^{whole_with:.2f}。",
    )
    quoted = {"apart": apart, "fewer": total[0] / total[1], "faster": faster}
    quoted |= {"step_without": step_without, "step_with": step_with}
    quoted |= {"whole_without": whole_without, "whole_with": whole_with}
    return Finding(numbers, judge(apart, same, list(orders.values()), faster), draw(without, cached), summary, quoted)


@torch.inference_mode()
def read(model: DecoderOnly, text: Tensor, make_cache: MakeCache | None) -> Reading:
    """The text as if it were being written, a token per step; without a cache each step reads all of it again."""
    cache = None if make_cache is None else make_cache(model, LENGTH)
    watched = share_weights(model)  # hooks on a copy, so that the clock sees the fast way
    counts = count_products(watched)
    logits, attention, dense = [], [], []
    for t in range(LENGTH):
        counts.clear()
        logits.append(watched(text[:, : t + 1] if cache is None else text[:, t : t + 1], cache=cache)[0, -1])
        attention.append(counts[ATTENTION])
        dense.append(counts[DENSE])
    return Reading(torch.stack(logits), attention, dense)


def count_products(model: DecoderOnly) -> Counter[str]:
    """Multiply-adds of every product of the forward passes to come, from the shapes that were really multiplied."""
    counts: Counter[str] = Counter()
    width = model.config.d_head

    def attend(module: nn.Module, inputs: tuple[Tensor, ...], pattern: Tensor) -> None:
        counts[ATTENTION] += 2 * pattern.numel() * width  # each weight: once q times k, once weight times v

    def multiply(module: nn.Module, inputs: tuple[Tensor, ...], product: Tensor) -> None:
        counts[DENSE] += inputs[0].numel() * product.shape[-1]

    for part in model.modules():
        if isinstance(part, Attention):  # watched, it takes its written-out form, which has all its products
            part.pattern.register_forward_hook(attend)
        elif isinstance(part, nn.Linear | Head):
            part.register_forward_hook(multiply)
    return counts


def order(costs: Sequence[float]) -> float:
    """The exponent p of cost ~ T^p, of the steps from FROM on."""
    return toy.power_law(range(FROM, LENGTH + 1), costs[FROM - 1 :])


@torch.inference_mode()
def speed_up(model: DecoderOnly, make_cache: MakeCache) -> float:
    """How many times faster one step after FAR tokens is, taken in turns so that a busy machine is unfair to both."""
    text = torch.full((1, FAR + REPEATS), 3)
    cache = make_cache(model, FAR + REPEATS)
    model(text[:, :FAR], cache=cache)
    ratios = []
    for t in range(FAR, FAR + REPEATS):
        begin = time.perf_counter()
        model(text[:, : t + 1])
        middle = time.perf_counter()
        model(text[:, t : t + 1], cache=cache)
        ratios.append((middle - begin) / (time.perf_counter() - middle))
    return median(ratios)


def judge(apart: float, same: float, orders: Sequence[float], faster: float) -> list[Check]:
    wanted = (  # powers of T, in the order of `orders`
        (2, Text("attention of one step without cache: T^2", "单步注意力，无缓存：T²")),
        (1, Text("attention of one step with cache: T", "单步注意力，有缓存：T")),
        (3, Text("attention of the whole output without cache: T^3", "整段输出的注意力，无缓存：T³")),
        (2, Text("attention of the whole output with cache: T^2", "整段输出的注意力，有缓存：T²")),
        (1, Text("dense layers of one step without cache: T", "单步的线性层，无缓存：T")),
        (0, Text("dense layers of one step with cache: constant", "单步的线性层，有缓存：常数")),
    )
    late_step = Text("a late step is faster by the clock (times)", "按实测时间，靠后的一步更快（倍数）")
    return [
        Check(Text("the logits are the same", "logit 相同"), apart, high=1e-4, every=True),
        Check(Text("every step makes the same choice", "每一步的选择都相同"), same, low=1.0, every=True),
        *(
            Check(text, exponent, low=power - 0.15, high=power + 0.15, every=True)
            for (power, text), exponent in zip(wanted, orders, strict=True)
        ),
        Check(late_step, faster, low=2.0),
    ]


def draw(without: Reading, cached: Reading) -> Figure:
    lengths = list(range(1, LENGTH + 1))
    names = Text("without cache", "无缓存"), Text("with cache", "有缓存")
    steps = without.attention, cached.attention
    panels = []
    for title, curves, powers in (
        (Text("Attention of step T", "第 T 步的注意力"), steps, (2, 1)),
        (Text("Attention of all T steps", "前 T 步注意力之和"), [list(accumulate(each)) for each in steps], (3, 2)),
    ):
        series = [Series(name, lengths, curve) for name, curve in zip(names, curves, strict=True)]
        for curve, power in zip(curves, powers, strict=True):
            guide = [curve[-1] * (t / LENGTH) ** power for t in (FROM, LENGTH)]
            series.append(Series(Text(f"T^{power}", f"T^{power}"), [FROM, LENGTH], guide, dashed=True))
        axes = Text("T (tokens)", "T（词元数）"), Text("multiply-adds", "乘加次数")
        panels.append(Panel(title, *axes, series, log_x=True, log_y=True))
    return Figure(panels, Text("Slopes on logarithmic axes are orders.", "双对数坐标中，斜率就是阶。"))


CLAIM = Claim(
    title=Text("The KV cache", "KV 缓存"),
    claim=Text(
        "Keeping the keys and values of earlier tokens spares every step the attention of the whole prefix: from "
        "O(T^2) to O(T), and faster, with the same output.",
        "缓存历史的 K/V，避免每一步对整个前缀重新计算注意力，从而将复杂度从 O(T²) 降到 O(T)，速度更快，且输出不变。",
    ),
    prediction=Text(
        "Equal logits. Attention of a step falls from T^2 to T (so of a whole output from T^3 to T^2), the dense "
        "layers of a step from T to a constant; a late step takes less time.",
        "logit 相等。单步注意力从 T² 降到 T（整段输出因而从 T³ 降到 T²），"
        "线性层单步从 T 降到常数；靠后的一步耗时更短。",
    ),
    change=Text(
        "What the orders are taken of: a whole output is O(T) only where attention sees a window of fixed size. While "
        "T is well below the model's width, the dense layers cost more than attention, and the measured total grows "
        "more gently than either order.",
        "要看阶指的是什么：只有当注意力只看固定大小的窗口时，整段输出才是 O(T)。当 T 远小于模型宽度时，"
        "线性层的开销高于注意力，总开销的增长会比上述阶更平缓。",
    ),
    alone=True,
)
