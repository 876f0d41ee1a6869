"""The likeliest pieces at the first steps of writing the translation."""

from __future__ import annotations

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Series, Text

SHOWN = 5
STEPS = 2  # the third only ends the sentence


def draw(t: gf.Translator) -> Figure:
    tr = gf.trace(t, "twenty-one")
    panels = []
    for step in tr.steps[:STEPS]:
        top = step["top"][:SHOWN]
        panels.append(
            Panel(
                Text(f"having read {step['reads']}", f"读完 {step['reads']}"),
                Text("next piece", "下一个片段"),
                Text("probability", "概率"),
                [Series(Text("probability", "概率"), range(SHOWN), [row["probability"] for row in top], "points")],
                log_y=True,
                ticks=[row["piece"] for row in top],
            )
        )
    return Figure(
        panels,
        Text(
            "The likeliest pieces at the first two steps of writing `einundzwanzig`.",
            "写 `einundzwanzig` 时，前两步最可能的片段。",
        ),
    )
