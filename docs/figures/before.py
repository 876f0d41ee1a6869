"""How far back a gradient reaches in each kind of layer, and how long a list a model keeps."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import before_rows
import torch
from torch import Tensor, nn

from glassformer.labs.figures import Figure, Panel, Series, Text

WIDTH, FARTHEST, BATCH = 64, 40, 64


def draw() -> Figure:
    torch.manual_seed(0)
    rnn, lstm, patient = (kind(WIDTH, WIDTH, batch_first=True) for kind in (nn.RNN, nn.LSTM, nn.LSTM))
    nn.init.ones_(patient.bias_hh_l0.data[WIDTH : 2 * WIDTH])
    attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
    layers: list[tuple[Text, Callable[[Tensor], Tensor]]] = [
        (Text("plain recurrence", "普通循环"), lambda x: rnn(x)[0]),
        (Text("LSTM", "LSTM"), lambda x: lstm(x)[0]),
        (Text("LSTM, forget bias 1", "LSTM，遗忘偏置 1"), lambda x: patient(x)[0]),
        (Text("self-attention", "自注意力"), lambda x: attention(x, x, x)[0]),
    ]
    found = before_rows.kept()
    kept = [
        Series(
            before_rows.MODELS[kind],
            found["lists"],
            [100 * statistics.fmean(run["right"][place] for run in runs) for place in range(len(found["lists"]))],
        )
        for kind, runs in found["keep"].items()
    ]
    return Figure(
        panels=[
            Panel(
                Text("How far back a gradient reaches", "梯度能传回多远"),
                Text("distance, tokens", "距离（词元）"),
                Text("gradient, share of the nearest", "梯度，与最近处之比"),
                [Series(name, range(1, FARTHEST), reach(layer)) for name, layer in layers],
                log_y=True,
            ),
            Panel(
                Text("Lists of digits, written without a fault", "一串数字，写得一字不差的"),
                Text("digits in the list", "一串有几个数字"),
                Text("share, %", "占比（%）"),
                kept,
            ),
        ],
        caption=Text(
            f"Left: layers as they start, untrained. Right: means of {len(found['keep']['transformer'])} seeds, "
            f"{found['steps']} steps of training each.",
            f"左：刚初始化、未训练的层。右：{len(found['keep']['transformer'])} 个随机种子的平均，"
            f"各训练 {found['steps']} 步。",
        ),
    )


def reach(layer: Callable[[Tensor], Tensor]) -> list[float]:
    """The gradient of the last output by the token at each distance, beside that at distance 1."""
    x = torch.randn(BATCH, FARTHEST, WIDTH, requires_grad=True)
    last = layer(x)[:, -1]
    (last * torch.randn_like(last)).sum().backward()
    assert x.grad is not None
    sizes = x.grad.norm(dim=-1).mean(0).flip(0)[1:]  # nearest first, the last token itself left out
    return (sizes / sizes[0]).tolist()
