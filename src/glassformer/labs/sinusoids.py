"""Sinusoidal positions: a step of k is one rotation, whatever the position it starts from.

That is a property of the table. Attention does not compare rows of the table but their projections by W_Q and W_K, so
the lab looks there too.

Shapes: L positions, D model width, P pairs (D / 2), N starts, K offsets.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text
from glassformer.model import ModelConfig
from glassformer.model.attention import Attention
from glassformer.model.embedding import PositionTable
from glassformer.model.transformer import initialise

OFFSETS = (1, 2, 3, 7, 16, 50, 111)
KNOWN = 64  # positions from which a map is found
FURTHEST = 128  # offsets compared
STARTS = (0, 300, 800)


def step_map(table: Tensor, offset: int) -> tuple[float, float]:
    """The best linear map of each pair, found on the first positions: its error on all, and how far it is from a turn.

    Nothing is assumed of the map but that it takes a pair to a pair, so a table of another make has its chance too.
    """
    pairs = table.view(len(table), -1, 2).transpose(0, 1)  # (P, L, 2)
    here, there = pairs[:, :-offset], pairs[:, offset:]
    step = torch.linalg.lstsq(here[:, :KNOWN], there[:, :KNOWN], driver="gelsd").solution  # (P, 2, 2)
    error = (here @ step - there).abs().max()
    bent = (step.transpose(1, 2) @ step - torch.eye(2, dtype=table.dtype)).abs().max()  # of a rotation: zero
    return float(error), float(bent)


def by_offset(similarity: Tensor) -> Tensor:
    """Column j: the similarity of positions start and start + j for every start that leaves room; (N, K)."""
    starts = len(similarity) - FURTHEST
    return torch.stack([similarity.diagonal(j)[:starts] for j in range(FURTHEST)], dim=1)


def left_open(curves: Tensor) -> float:
    """The share of the variance between starts: zero where the offset says everything."""
    return float(curves.var(0).mean() / curves.var())


def scores(table: Tensor, config: ModelConfig) -> Tensor:
    """What a fresh attention layer makes of the positions: its queries times its keys; (L, L)."""
    attention = Attention(config)
    initialise(attention, config)
    with torch.no_grad():
        q, k, _ = attention.projection.all(table.float())
    return (q @ k.T * attention.scale).double()


def run(seed: int, *, positions: type[PositionTable] = PositionTable) -> Finding:
    config = ModelConfig(vocab_size=8, d_model=128, heads=1, max_length=1024, seed=seed)
    table = positions(config).table.detach().double()  # (L, D)
    errors, bends = zip(*(step_map(table, offset) for offset in OFFSETS), strict=True)
    plain, projected = by_offset(table @ table.T), by_offset(scores(table, config))
    error, bend, open_share, open_scores = max(errors), max(bends), left_open(plain), left_open(projected)
    falls = float((plain.mean(0).diff() < 0).double().mean())
    numbers = {
        Text("largest error of one fixed map over all positions", "一个固定映射在所有位置上的最大误差"): error,
        Text("distance of the maps from rotations", "这些映射与旋转的偏差"): bend,
        Text(
            "share of the dot product's variance that the offset leaves open", "点积方差中偏移未能解释的比例"
        ): open_share,
        Text("the same share after random W_Q and W_K", "经过随机的 W_Q、W_K 之后的同一比例"): open_scores,
        Text(
            "share of offsets where one step further lowers the dot product", "再远一步点积就变小的偏移所占比例"
        ): falls,
    }
    one_map = Text("one map per offset fits every position", "每个偏移只需一个映射，对所有位置都成立")
    offset_fixes = Text("the offset alone fixes the dot product", "点积只由偏移决定")
    projections_too = Text(
        "it fixes the score of attention too, through W_Q and W_K as they are drawn",
        "经过随机初始化的 W_Q、W_K，注意力分数也只由偏移决定",
    )
    checks = [
        Check(one_map, error, high=1e-3, every=True),
        Check(Text("that map is a rotation", "这个映射是旋转"), bend, high=1e-3, every=True),
        Check(offset_fixes, open_share, high=1e-4, every=True),
        Check(projections_too, open_scores, high=0.1, extent=True),
    ]
    quoted = {"error": error, "table": open_share, "scores": open_scores}
    return Finding(numbers, checks, draw(plain, projected), SUMMARY, quoted)


def draw(plain: Tensor, projected: Tensor) -> Figure:
    def panel(title: Text, y: Text, curves: Tensor) -> Panel:
        lines = [
            Series(
                Text(f"from position {start}", f"从位置 {start} 起"),
                list(range(FURTHEST)),
                curves[start].tolist(),
                dashed=start > 0,  # so that curves which coincide can be told apart
            )
            for start in STARTS
        ]
        return Panel(title, Text("offset k (positions)", "偏移 k（位置数）"), y, lines, example=True)

    left = panel(Text("The table itself", "位置编码本身"), Text("dot product", "点积"), plain)
    right = panel(Text("After W_Q and W_K", "经过 W_Q 与 W_K 之后"), Text("attention score", "注意力分数"), projected)
    return Figure(
        [left, right],
        Text(
            "Left, three starts give one curve. Right, the same positions through untrained projections: three curves.",
            "左图：三个起点的曲线完全重合。右图：同样的位置经过未训练的投影，变成三条不同的曲线。",
        ),
    )


SUMMARY = Text(
    "One rotation per offset carries every position to the one k further on, to within {error:max.0e}. The offset "
    "leaves {table:max.0e} of the dot product's variance open. But attention compares what W_Q and W_K make of the "
    "table: with these as they are drawn, the offset leaves {scores:.1%} of the score's variance open.",
    "每个偏移对应一个旋转，能把任意位置的编码变成其后第 k 个位置的编码，误差不超过 {error:max.0e}。"
    "偏移未能解释的点积方差只占 {table:max.0e}。但注意力比较的是经 W_Q、W_K 投影后的结果：用随机初始化的矩阵时，"
    "偏移未能解释的分数方差占 {scores:.1%}。",
)


CLAIM = Claim(
    title=Text("Sinusoids turn", "正弦位置编码就是旋转"),
    claim=Text(
        "The sinusoid of pos + k is a fixed rotation of that of pos, so the dot product of two positions depends on "
        "their offset only, and attention sees relative positions.",
        "pos + k 的正弦编码是 pos 的编码经过一个固定旋转的结果，因此两个位置编码的点积只取决于它们的偏移，"
        "注意力由此看到相对位置。",
    ),
    prediction=Text(
        "For each offset, a linear map found on the first 64 positions fits all 1024 and is a rotation; dot products "
        "from different starts lie on one curve, and so do attention's scores.",
        "对每个偏移，由前 64 个位置求出的线性映射适用于全部 1024 个位置，并且是旋转；从不同起点算出的点积落在同一条曲"
        "线上，注意力分数也是如此。",
    ),
    change=Text(
        "A learnt table, or a sine and a cosine of different frequency in one pair. W_Q and W_K that training has "
        "made to keep each pair together would let scores depend on the offset; rotary positions do so by "
        "construction. Nor is nearer always more similar: the curve has waves.",
        "换成可学习的位置表，或让同一对正弦、余弦使用不同频率，结论就不再成立。若训练使 W_Q、W_K 保持每一对分量的"
        "对应关系，分数就可以只取决于偏移；旋转位置编码则从构造上保证这一点。另外，距离更近也不一定更相似：曲线是有起伏的。",
    ),
)
