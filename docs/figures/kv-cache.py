"""What the demo's decoder multiplies with a cache and without, counted."""

from __future__ import annotations

from itertools import accumulate

from glassformer.explain.kv_cache import multiply_adds
from glassformer.labs.figures import Figure, Panel, Series, Text
from glassformer.pipelines.translator import Translator

LENGTH, SOURCE = 128, 3


def draw(t: Translator) -> Figure:
    decoder, steps = t.model.config.decoder, range(1, LENGTH + 1)
    again = [multiply_adds(decoder, n, n, SOURCE, first=True) / 1e6 for n in steps]
    cached = [multiply_adds(decoder, n, 1, SOURCE, first=n == 1) / 1e6 for n in steps]
    without, with_ = Text("read again", "重读全部"), Text("cached", "有缓存")
    unit = Text("million multiply-adds", "百万次乘加")
    return Figure(
        panels=[
            Panel(
                Text("One step", "一步"),
                Text("tokens written so far", "已写出的词元数"),
                unit,
                [Series(without, steps, again, dashed=True), Series(with_, steps, cached)],
                log_y=True,
            ),
            Panel(
                Text("The whole target up to here", "到此为止的整个译文"),
                Text("tokens written so far", "已写出的词元数"),
                unit,
                [
                    Series(without, steps, list(accumulate(again)), dashed=True),
                    Series(with_, steps, list(accumulate(cached))),
                ],
                log_y=True,
            ),
        ],
        caption=Text(
            "The decoder of the demo (2 layers, width 128), source of 3 tokens; the newest token's logits only.",
            "演示模型的解码器（2 层，宽 128），源句 3 个词元；logit 只算最新的那个词元。",
        ),
    )
