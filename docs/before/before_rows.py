"""The tables of chapter 0, from what docs/before/measure.py has kept."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from glassformer.common.strings import Text

MEASURED = Path(__file__).resolve().parent / "measured.json"
MODELS = {
    "recurrent": Text("LSTM to LSTM, no attention", "LSTM 到 LSTM，没有注意力"),
    "with attention": Text("LSTM with attention", "带注意力的 LSTM"),
    "transformer": Text("Transformer", "Transformer"),
}
LAYERS = {"recurrent": Text("LSTM", "LSTM"), "self-attention": Text("self-attention", "自注意力")}
# Student's t for a 95 % interval, by the number of seeds.
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


def mean(values: Sequence[float], digits: int, unit: float = 1.0) -> str:
    """The mean, and half of its 95 % interval where there are several values."""
    told = f"{unit * statistics.fmean(values):.{digits}f}"
    if len(values) in STUDENT:
        half = STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
        told += f" ± {unit * half:.{digits}f}"
    return told


def translate(found: dict[str, Any], language: str) -> list[list[str]]:
    heads = Text(
        "model | weights | loss, nats per piece | right, % | ms for a step",
        "模型 | 权重数 | 损失（每个词元，奈特） | 全对（%） | 每步毫秒",
    )
    rows = [
        [
            MODELS[kind].say(language),
            f"{found['weights'][kind]:,}",
            mean([run["loss"] for run in runs], 3),
            mean([run["right"] for run in runs], 1, 100),
            f"{1000 * statistics.median(run['seconds'] for run in runs):.0f}",
        ]
        for kind, runs in found["translate"].items()
    ]
    return [heads.say(language).split(" | "), *rows]


def keep(found: dict[str, Any], language: str) -> list[list[str]]:
    first = Text("digits in the list", "一串有几个数字").say(language)
    rows = [
        [
            str(length),
            *(f"{100 * statistics.fmean(run['right'][place] for run in runs):.0f}" for runs in found["keep"].values()),
        ]
        for place, length in enumerate(found["lists"])
    ]
    return [[first, *(MODELS[kind].say(language) for kind in found["keep"])], *rows]


def layer(found: dict[str, Any], language: str) -> list[list[str]]:
    first = Text("tokens", "词元数").say(language)
    rows = [
        [str(length), *(f"{1000 * times[name]:.1f}" for name in LAYERS)]
        for length, times in zip(found["lengths"], found["layer"], strict=True)
    ]
    return [[first, *(name.say(language) for name in LAYERS.values())], *rows]


TABLES: dict[str, Callable[[dict[str, Any], str], list[list[str]]]] = {
    "translate": translate,
    "keep": keep,
    "layer": layer,
}


def markdown(found: dict[str, Any], table: str, language: str) -> str:
    if table not in TABLES:
        raise LookupError(f"docs/before measures no `{table}`, only {', '.join(TABLES)}")
    heads, *rows = TABLES[table](found, language)
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def rounded(value: Any) -> Any:
    """Five digits are more than any two machines agree on."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return round(value, 5) if isinstance(value, float) else value


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found
