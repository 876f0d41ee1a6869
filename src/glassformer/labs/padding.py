"""Padding: a sentence's result does not depend on it; a row that may see nothing; and what "minus infinity" should be.

Shapes: B sentences, S source, T target, H heads, d head width, V vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import cast

import torch
from torch import Tensor

from glassformer.decode.step import matmul_attention
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, bars, fill, join
from glassformer.labs.toy import small_config
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.model.attention import Attention, AttentionMask, softmax

VOCABULARY, SOURCE, TARGET, KEYS = 40, 8, 6, 4
PADS = (0, 1, 2, 4, 8, 16, 32)
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
NEVER, LARGE = float("-inf"), -1e9
HIDDEN = {NEVER: "-inf", LARGE: "-1e9"}

Softmax = Callable[[Tensor], Tensor]
plain: Softmax = partial(torch.softmax, dim=-1)


def run(
    seed: int, *, build: Callable[[ModelConfig], EncoderDecoder] = EncoderDecoder, softmax: Softmax = softmax
) -> Finding:
    config = small_config(seed, vocab_size=VOCABULARY, tied=True)
    model = build(config).eval()
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(3, VOCABULARY, (1, SOURCE), generator=generator)
    tgt = torch.randint(3, VOCABULARY, (1, TARGET), generator=generator)
    words = torch.randint(3, VOCABULARY, (1, max(PADS)), generator=generator)
    nothing = torch.full_like(words, config.pad_id or 0)
    masked = [change(model, src, tgt, nothing[:, :pads]) for pads in PADS]
    unmasked = [change(model, src, tgt, nothing[:, :pads], masked=False) for pads in PADS]
    other_words = change(model, src, tgt, words)
    on_the_left = change(model, src, tgt, nothing, left=True)
    with warnings.catch_warnings():  # a processor without bfloat16 products says that it takes another way
        warnings.filterwarnings("ignore", message="mkldnn_matmul failed")
        half = {name: change(build(config).eval().to(kind), src, tgt, nothing) for name, kind in TYPES.items()}
    blind = blind_output(cast(Attention, model.encoder.blocks[0].self_attention), generator)
    slope = blind_gradient(softmax)
    scores = torch.randn(2, KEYS, generator=generator)
    weights = {
        (name, value): hidden_weight(scores.to(kind), value, softmax if value == NEVER else plain)
        for name, kind in TYPES.items()
        for value in (NEVER, LARGE)
    }
    plain_slope, refused = blind_gradient(plain), float(masked_fill_fails())
    spread, lost = weights["float32", LARGE][1], weights["float16", LARGE][1]
    by_padding = Text(f"change by {max(PADS)} padding tokens", f"加 {max(PADS)} 个填充词元后的变化")
    weight = Text("weight on hidden keys, {0}, {1}, {2}", "被遮住的键得到的权重，{0}，{1}，{2}")
    some, none = Text("some key visible", "有可见的键"), Text("none visible", "没有可见的键")
    numbers = {
        join(by_padding, Text("masked", "有掩码")): masked[-1],
        join(by_padding, Text("not masked", "无掩码")): unmasked[-1],
        Text("change, masked: padding of random words", "有掩码时的变化：填充为随机词元"): other_words,
        Text("change, masked: padding on the left", "有掩码时的变化：填充在左侧"): on_the_left,
        **{Text(f"change, masked: {name}", f"有掩码时的变化：{name}"): value for name, value in half.items()},
        Text("largest value of a row that may see nothing", "没有可见键的行：输出的最大值"): blind,
        Text("gradient through such a row", "没有可见键的行：梯度"): slope,
        Text("gradient through such a row, plain softmax", "没有可见键的行：普通 softmax 的梯度"): plain_slope,
        **{fill(weight, name, HIDDEN[value], some): row[0] for (name, value), row in weights.items()},
        **{fill(weight, name, HIDDEN[value], none): row[1] for (name, value), row in weights.items()},
        Text("float16 refuses masked_fill with -1e9 (1: yes)", "float16 拒绝以 -1e9 做 masked_fill（1：是）"): refused,
    }
    any_words = Text("nor does padding made of other words", "填充成其他词元也不改变")
    half_precision = Text(
        "masked padding changes nothing in half precision, but for rounding", "半精度下也不改变（舍入误差除外）"
    )
    zero_row = Text("a row that may see nothing is zero, in every kernel", "没有可见键的行在各种算法中都为零")
    no_weight = Text(
        "softmax gives hidden keys no weight in any precision", "任何精度下 softmax 都不给被遮住的键分配权重"
    )
    large_visible = Text("-1e9 serves as well while some key is visible", "只要还有可见的键，-1e9 同样可用")
    large_hidden = Text(
        "-1e9 serves as well for a row that may see nothing, float32", "float32 中没有可见键时，-1e9 同样可用"
    )
    large_half = Text("-1e9 serves as well in float16", "float16 中 -1e9 同样可用")
    checks = [
        Check(Text("masked padding changes nothing", "有掩码时，填充不改变结果"), worst(masked), high=1e-5, every=True),
        Check(any_words, other_words, high=1e-5, every=True),
        Check(Text("nor does padding on the left", "填充在左侧也不改变"), on_the_left, high=1e-5, every=True),
        Check(Text("padding that is not masked does", "没有掩码的填充会改变结果"), unmasked[-1], low=0.1),
        Check(half_precision, worst(half.values()), high=0.15, every=True),
        Check(zero_row, blind, 0, 0),
        Check(Text("the gradient through it is zero, not NaN", "经过该行的梯度为零，而不是 NaN"), slope, 0, 0),
        Check(
            no_weight, worst(weight for (_, value), row in weights.items() if value == NEVER for weight in row), 0, 0
        ),
        Check(large_visible, worst(row[0] for row in weights.values()), 0, 0),
        Check(large_hidden, spread, high=1e-6, extent=True),
        Check(large_half, lost, high=1e-6, extent=True),
    ]
    summary = Text(
        f"{max(PADS)} padding tokens change the logits by {{masked:max.0g}} when masked and by {{unmasked:.2f}} "
        "when not. A row that may see nothing gives zeros, where a plain softmax over -inf gives NaN. With -1e9 "
        "instead, such a row spreads {spread:.0%} of its weight over hidden keys in "
        "float32; float16 cannot hold -1e9: it becomes -inf, and the row's weight {lost:g}.",
        f"{max(PADS)} 个填充词元在有掩码时使 logit 改变 {{masked:max.0g}}，无掩码时改变 {{unmasked:.2f}}。"
        "没有可见键的行输出零；普通 softmax 遇到整行 -inf 则得到 NaN。若改用 -1e9，"
        "这样的行在 float32 中会把 {spread:.0%} 的权重分给被遮住的键；"
        "float16 无法表示 -1e9，它变成 -inf，该行的权重变成 {lost:g}。",
    )
    quoted = {"masked": masked[-1], "unmasked": unmasked[-1], "spread": spread, "lost": lost}
    return Finding(numbers, checks, draw(masked, unmasked, weights), summary, quoted)


def worst(values: Iterable[float]) -> float:
    """The largest, and NaN if any is NaN."""
    return float(torch.tensor(list(values)).max())


@torch.inference_mode()
def change(
    model: EncoderDecoder, src: Tensor, tgt: Tensor, padding: Tensor, masked: bool = True, left: bool = False
) -> float:
    """How far the logits of a sentence move when padding, and beside it in the batch an empty sentence, is added."""
    parts = (padding, src) if left else (src, padding)
    padded = torch.cat(parts, dim=1).repeat(2, 1)
    real = torch.cat([torch.full_like(part, part is src, dtype=torch.bool) for part in parts], dim=1)
    mask = torch.cat((real, torch.zeros_like(real)))  # the second sentence is padding and nothing else
    moved = model(padded, tgt.repeat(2, 1), mask if masked else None) - model(src, tgt)
    # Of the empty sentence only that it comes out as numbers.
    return float(moved[0].abs().max()) if moved.isfinite().all() else float("nan")


@torch.inference_mode()
def blind_output(attention: Attention, generator: torch.Generator) -> float:
    """The largest value that any of attention's three ways gives to queries whose keys are all hidden."""
    shape = (1, attention.heads, KEYS, attention.d_head)  # (B, H, T, d)
    q, k, v = (torch.randn(shape, generator=generator) for _ in range(3))
    mask = AttentionMask(torch.full((1, 1, 1, KEYS), NEVER))
    contexts = (
        attention.reference(q, k, v, mask),
        attention.fused(q, k, v, mask),
        matmul_attention(q, k, v, mask.bias, attention.scale),
    )
    return worst(float(context.abs().max()) for context in contexts)


def hidden_weight(scores: Tensor, value: float, softmax: Softmax) -> list[float]:
    """The weight that hidden keys get where one key is visible, and where none is; scores (2, KEYS)."""
    hidden = torch.ones_like(scores, dtype=torch.bool)
    hidden[0, 0] = False
    bias = torch.where(hidden, value, 0.0).to(scores.dtype)
    weights = softmax(scores + bias)
    return weights.masked_fill(~hidden, 0.0).sum(-1).tolist()


def blind_gradient(softmax: Softmax) -> float:
    """The largest gradient that reaches the scores of a row that may see nothing."""
    scores = torch.zeros(1, KEYS, requires_grad=True)
    (softmax(scores + NEVER) * torch.arange(KEYS)).sum().backward()
    assert scores.grad is not None
    return float(scores.grad.abs().max())


def masked_fill_fails() -> bool:
    """Whether the tutorials' line, run in float16, raises."""
    try:
        torch.zeros(1, dtype=torch.float16).masked_fill(torch.ones(1, dtype=torch.bool), LARGE)
    except RuntimeError:
        return True
    return False


def draw(masked: list[float], unmasked: list[float], weights: Mapping[tuple[str, float], list[float]]) -> Figure:
    floor = 1e-9  # no change at all has no place on a logarithmic axis
    left = Panel(
        Text("What padding changes", "填充带来的变化"),
        Text("padding tokens", "填充词元数"),
        Text("largest change of the logits", "logit 的最大变化"),
        [
            Series(Text("masked", "有掩码"), PADS, [max(value, floor) for value in masked]),
            Series(Text("not masked", "无掩码"), PADS, [max(value, floor) for value in unmasked]),
        ],
        log_y=True,
    )
    right = Panel(
        Text("A row that may see nothing (no bar: zero, or NaN)", "没有可见键的行（无柱：为零或 NaN）"),
        Text("precision", "精度"),
        Text("weight on hidden keys", "被遮住的键得到的权重"),
        [
            bars(Text("-inf, rows checked", "-inf，处理空行"), [weights[name, NEVER][1] for name in TYPES]),
            bars(Text("-1e9 (float16: NaN)", "-1e9（float16：NaN）"), [weights[name, LARGE][1] for name in TYPES]),
        ],
        ticks=list(TYPES),
    )
    return Figure([left, right])


CLAIM = Claim(
    title=Text("Padding and minus infinity", "填充与负无穷"),
    claim=Text(
        "With a mask, padding does not change a sentence's result, a row that may see nothing gives zeros, and -1e9 "
        "serves as minus infinity.",
        "有掩码时，填充不改变句子的结果；没有可见键的行输出零；-1e9 可以代替负无穷。",
    ),
    prediction=Text(
        "Logits move by rounding only, with any padding, on either side, in half precision too. -1e9 differs from -inf "
        "where a whole row is hidden, and where the number type cannot hold it.",
        "无论填充内容、左右、是否半精度，logit 只差舍入误差。"
        "-1e9 与 -inf 的差别出现在整行被遮住、或数据类型无法表示它的时候。",
    ),
    change=Text(
        "Statistics over the batch (BatchNorm) would let padding in. If no row is ever hidden whole, -1e9 in float32 "
        "or bfloat16 does no harm. The last bits may differ, as other lengths take other kernels.",
        "若使用跨批次的统计量（如 BatchNorm），填充就会影响结果。"
        "只要没有整行被遮住，float32 或 bfloat16 中用 -1e9 并无坏处。"
        "形状不同可能选用不同的算子，末位会有差异。",
    ),
)
