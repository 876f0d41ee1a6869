"""Where the heads lie in memory: a transpose moves nothing, and who pays for that depends on the kernel.

Projections give (B, T, H, d): the heads of one position side by side. `transpose(1, 2)` names the axes (B, H, T, d)
but leaves every value where it is. Plain products then copy what they need into one piece, at every call.

Shapes: B batch, T positions, H heads, d head width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from glassformer.decode.step import matmul_attention
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, bars, fill
from glassformer.model import Cache, ModelConfig
from glassformer.model.attention import NO_MASK, Attention

B, H, D_HEAD = 4, 8, 64
LENGTHS = (64, 128, 256, 512)
LENGTH = 256  # of the comparison between kernels
LAYOUTS = Text("position-major", "按位置存放"), Text("head-major", "按头存放")
PLAIN, FUSED, SENTENCE = (
    Text("step, plain products", "解码步，普通矩阵乘"),
    Text("step, fused kernel", "解码步，融合算子"),
    Text("sentence, fused kernel", "整句，融合算子"),
)

Keep = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
Call = Callable[[], Tensor]
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def cached(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values (B, H, T, d) as the decoder's cache keeps them: head by head."""
    cache = Cache(layers=1, capacity=k.shape[2])
    cache.admit(torch.zeros(k.shape[0], k.shape[2], dtype=torch.long), None)
    return cache.layers[0].append(k, v)


class Copied(TorchDispatchMode):
    """Counts the bytes that operations copy to rearrange them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch gives it no types
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in (torch.ops.aten.clone.default, torch.ops.aten.copy_.default):
            self.bytes += result.nbytes
        return result


def megabytes_copied(call: Call) -> float:
    with Copied() as copied:
        call()
    return float(copied.bytes / 1e6)


@torch.no_grad()
def run(seed: int, *, keep: Keep = cached) -> Finding:
    generator = torch.Generator().manual_seed(seed)
    attention = Attention(ModelConfig(vocab_size=8, d_model=H * D_HEAD, heads=H, dropout=0.0)).eval()

    def heads_of(length: int) -> Tensor:
        return attention.split(torch.randn(B, length, H * D_HEAD, generator=generator), H)  # a view: (B, H, T, d)

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return matmul_attention(q, k, v, None, attention.scale)

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention.fused(q, k, v, NO_MASK)

    def copied(attend: Attend, queries: Tensor, keys: int) -> tuple[float, float]:
        """Megabytes that attention copies over views that were only transposed, and over what the cache keeps."""
        k, v = heads_of(keys), heads_of(keys)
        kept_k, kept_v = keep(k, v)
        return (
            megabytes_copied(lambda: attend(queries, k, v)),
            megabytes_copied(lambda: attend(queries, kept_k, kept_v)),
        )

    one, many = heads_of(1), heads_of(LENGTH)
    steps = {length: copied(plain, one, length) for length in LENGTHS}
    moved = {PLAIN: steps[LENGTH], FUSED: copied(fused, one, LENGTH), SENTENCE: copied(fused, many, LENGTH)}
    projected = torch.zeros(B, LENGTH, H * D_HEAD)
    split = megabytes_copied(lambda: attention.split(projected, H))
    whole = 2 * projected.nbytes / 1e6  # all keys and values of LENGTH positions
    (views, kept), fused_views = moved[PLAIN], moved[FUSED][0]
    numbers = {
        Text("MB copied by the split into heads", "拆分成多头时复制的 MB 数"): split,
        Text(f"MB that {LENGTH} keys and values take", f"{LENGTH} 个键和值占用的 MB 数"): whole,
        **{
            fill(Text("{0}: MB copied, {1}", "{0}：复制的 MB 数，{1}"), name, layout): pair[i]
            for i, layout in enumerate(LAYOUTS)
            for name, pair in moved.items()
        },
    }
    copies = Text(
        "a step of plain products copies all keys and values that were only transposed (share)",
        "普通矩阵乘的解码步要复制全部只做了转置的键和值（比例）",
    )
    copies_none = Text("it copies none that lie head by head (share)", "若按头存放则一个也不复制（比例）")
    fused_copies = Text("the fused kernel copies them too (share)", "融合算子同样需要复制（比例）")
    checks = [
        Check(Text("the split into heads moves nothing (MB)", "拆分成多头不移动任何数据（MB）"), split, 0, 0),
        Check(copies, views / whole, low=0.99, every=True),
        Check(copies_none, kept / whole, high=0.01, every=True),
        Check(fused_copies, fused_views / whole, low=0.99, extent=True, every=True),
    ]
    quoted = {"plain": views, "kept": kept, "fused": fused_views, "sentence": moved[SENTENCE][0]}
    return Finding(numbers, checks, draw(steps, moved), SUMMARY, quoted)


def draw(steps: Mapping[int, tuple[float, float]], moved: Mapping[Text, tuple[float, float]]) -> Figure:
    lengths: Sequence[float] = list(steps)
    megabytes = Text("copied (MB)", "复制量（MB）")
    left = Panel(
        Text("One decoding step of plain products", "普通矩阵乘的一个解码步"),
        Text("keys (positions)", "键的数量（位置）"),
        megabytes,
        [Series(layout, lengths, [pair[i] for pair in steps.values()]) for i, layout in enumerate(LAYOUTS)],
        log_x=True,
    )
    right = Panel(
        Text(f"What is copied, by kernel ({LENGTH} keys)", f"不同算子的复制量（{LENGTH} 个键）"),
        Text("what is computed", "计算内容"),
        megabytes,
        [bars(layout, [pair[i] for pair in moved.values()]) for i, layout in enumerate(LAYOUTS)],
        ticks=list(moved),
    )
    return Figure(
        [left, right],
        Text("Bytes that operations copy to rearrange them, counted.", "统计的是各操作为重新排列而复制的字节数。"),
    )


SUMMARY = Text(
    f"The split into heads is a view and moves nothing. With plain products a decoding step over {LENGTH} keys then "
    "copies {plain:.1f} MB, all keys and values, and {kept:.1f} MB if the cache keeps them head by head. The fused "
    "kernel reads either layout as it lies: {fused:.1f} MB for a step, {sentence:.1f} for a whole sentence.",
    f"拆分成多头只是换一种视图，不移动数据。此后用普通矩阵乘，{LENGTH} 个键的一个解码步要复制 {{plain:.1f}} MB，"
    "即全部键和值；若缓存按头存放则为 {kept:.1f} MB。融合算子两种布局都能直接读取：解码步复制 {fused:.1f} MB，"
    "整句 {sentence:.1f} MB。",
)


CLAIM = Claim(
    title=Text("Heads in one piece", "按头连续存放"),
    claim=Text(
        "Attention wants each head's data in one piece of memory; where heads were only transposed, they are copied.",
        "注意力计算要求每个头的数据在内存中连续；若只做转置，计算时就要复制。",
    ),
    prediction=Text(
        "A transpose moves nothing; the products after it copy all keys and values, and none that lie head by head, "
        "whatever the kernel.",
        "转置本身不移动任何数据；其后的矩阵乘要复制全部键和值，按头存放时则不必，无论用哪种算子。",
    ),
    change=Text(
        "The kernel, and how often the same keys are read: a cache that is read at every step repays one copy many "
        "times, a sentence that is read once does not. What a copy costs in time depends on the machine; the lab "
        "counts bytes.",
        "取决于算子以及同一批键被读取的次数：缓存每步都要读，一次整理可多次受益；只读一遍的整句则不然。"
        "复制要花多少时间因机器而异，因此本实验只统计字节数。",
    ),
)
