"""Where the heads lie in memory: a transpose moves nothing, and who pays for that depends on the kernel.

Projections give (B, T, H, d): the heads of one position side by side. `transpose(1, 2)` names the axes (B, H, T, d)
but leaves every value where it is. Plain products then copy what they need into one piece, at every call.

Shapes: B batch, T positions, H heads, d head width.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from glassformer.decode.step import matmul_attention
from glassformer.labs.lab import Check, Figure, Finding, Lab, Panel, Series, Text
from glassformer.model import Cache, ModelConfig
from glassformer.model.attention import NO_MASK, Attention

B, H, D_HEAD = 4, 8, 64
LENGTHS = (64, 128, 256, 512)
LENGTH = 256  # of the comparison between kernels
REPEATS = 21
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


def race(slow: Call, fast: Call) -> tuple[float, float, float]:
    """Median milliseconds of both and the median of their ratios, taken in turns so that noise meets both alike."""
    times = []
    for turn in range(REPEATS + 2):
        start = time.perf_counter()
        slow()
        middle = time.perf_counter()
        fast()
        end = time.perf_counter()
        if turn >= 2:  # the first turns warm up
            times.append((1e3 * (middle - start), 1e3 * (end - middle)))
    one, other = (statistics.median(column) for column in zip(*times, strict=True))
    return one, other, statistics.median(a / b for a, b in times)


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

    def both(attend: Attend, queries: Tensor, keys: int) -> tuple[Call, Call]:
        """The same attention over views that were only transposed, and over what the cache keeps."""
        k, v = heads_of(keys), heads_of(keys)
        kept_k, kept_v = keep(k, v)
        return lambda: attend(queries, k, v), lambda: attend(queries, kept_k, kept_v)

    one, many = heads_of(1), heads_of(LENGTH)
    steps = {length: race(*both(plain, one, length)) for length in LENGTHS}
    calls = {
        PLAIN: both(plain, one, LENGTH),
        FUSED: both(fused, one, LENGTH),
        SENTENCE: both(fused, many, LENGTH),
    }
    k, v = heads_of(LENGTH), heads_of(LENGTH)
    copied_first = race(
        lambda: fused(many, k.contiguous(), v.contiguous()),
        lambda: fused(many, k, v),
    )
    ratios = {name: race(*pair)[2] for name, pair in calls.items()}
    moved = {name: (megabytes_copied(pair[0]), megabytes_copied(pair[1])) for name, pair in calls.items()}
    split = megabytes_copied(lambda: attention.split(torch.zeros(B, 64, 512), H))
    numbers = {
        Text("MB copied by the split into heads", "拆分成多头时复制的 MB 数"): split,
        **{
            Text(f"{name.en}: MB copied, position-major", f"{name.zh}：复制的 MB 数，按位置存放"): copied[0]
            for name, copied in moved.items()
        },
        **{
            Text(f"{name.en}: MB copied, head-major", f"{name.zh}：复制的 MB 数，按头存放"): copied[1]
            for name, copied in moved.items()
        },
        **{
            Text(f"{name.en}: time, position-major / head-major", f"{name.zh}：耗时比，按位置 / 按头"): ratio
            for name, ratio in ratios.items()
        },
        Text(
            f"{SENTENCE.en}: time, copied first / as it lies", f"{SENTENCE.zh}：耗时比，先整理再算 / 直接算"
        ): copied_first[2],
    }
    checks = [
        Check(
            Text(
                "a step of plain products copies all keys and values unless they lie head by head",
                "普通矩阵乘的解码步：若不按头存放，每步都要复制全部键和值",
            ),
            (moved[PLAIN][0] - moved[PLAIN][1]) / ((k.nbytes + v.nbytes) / 1e6),
            low=0.99,
        ),
        Check(
            Text(
                "and that takes longer: time, position-major / head-major", "因此更慢：按位置存放 / 按头存放 的耗时比"
            ),
            ratios[PLAIN],
            low=1.2,
        ),
        Check(
            Text("the fused kernel copies them too (MB)", "融合算子同样需要复制（MB）"),
            moved[FUSED][0],
            low=0.01,
            extent=True,
        ),
    ]
    return Finding(numbers, checks, draw(steps, ratios), summary(moved[PLAIN][0], ratios))


def draw(steps: Mapping[int, tuple[float, float, float]], ratios: Mapping[Text, float]) -> Figure:
    lengths: Sequence[float] = list(steps)
    return Figure(
        [
            Panel(
                Text("One decoding step of plain products", "普通矩阵乘的一个解码步"),
                Text("keys (positions)", "键的数量（位置）"),
                Text("time (ms)", "耗时（毫秒）"),
                [
                    Series(Text("position-major", "按位置存放"), lengths, [times[0] for times in steps.values()]),
                    Series(Text("head-major", "按头存放"), lengths, [times[1] for times in steps.values()]),
                ],
                log_x=True,
                log_y=True,
            ),
            Panel(
                Text("What the layout costs, by kernel", "不同算子下布局的代价"),
                Text("what is computed", "计算内容"),
                Text("time, position-major / head-major", "耗时比：按位置 / 按头"),
                [Series(Text("ratio", "比值"), list(range(len(ratios))), list(ratios.values()), kind="bars")],
                ticks=list(ratios),
            ),
        ],
        Text("A ratio of 1: the layout does not matter.", "比值为 1 表示布局没有影响。"),
    )


def summary(moved: float, ratios: Mapping[Text, float]) -> Text:
    plain, fused, sentence = (ratios[name] for name in (PLAIN, FUSED, SENTENCE))
    return Text(
        f"With plain products a decoding step over {LENGTH} keys copies {moved:.1f} MB if the heads were only "
        f"transposed, nothing if the cache keeps them head by head, and takes {plain:.1f} times as long. The fused "
        f"kernel reads either layout without a copy: {fused:.2f} times for a step, {sentence:.2f} for a whole "
        "sentence.",
        f"用普通矩阵乘时，{LENGTH} 个键的一个解码步，若只做转置，要复制 {moved:.1f} MB；若缓存按头存放则无需复制。"
        f"前者耗时是后者的 {plain:.1f} 倍。融合算子两种布局都能直接读取：解码步为 {fused:.2f} 倍，整句为 "
        f"{sentence:.2f} 倍。",
    )


LAB = Lab(
    name="layout",
    title=Text("Heads in one piece", "按头连续存放"),
    claim=Text(
        "Attention wants each head's data contiguous in memory; transposing without that costs time.",
        "注意力计算要求每个头的数据在内存中连续；只转置而不连续存放会变慢。",
    ),
    prediction=Text(
        "A transpose copies nothing; the products after it copy all keys and values and run slower than on head-major "
        "memory, whatever the kernel.",
        "转置本身不复制任何数据；其后的矩阵乘要复制全部键和值，因而比按头存放慢，无论用哪种算子。",
    ),
    change=Text(
        "The kernel and how often the same keys are read: a cache read at every step repays one copy many times, a "
        "sentence that a fused kernel reads once hardly can. Times are of this machine's CPU; the bytes copied are "
        "not.",
        "取决于算子以及同一批键被读取的次数：缓存每步都要读，一次整理可多次受益；而整句只被融合算子读一遍，"
        "很难收回这次整理的成本。耗时因机器而异，复制的字节数则不会。",
    ),
    run=run,
)
