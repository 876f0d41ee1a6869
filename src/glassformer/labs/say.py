"""Numbers and limits as a reader meets them, in reports, pictures and on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from glassformer.common.strings import Text
from glassformer.labs.lab import Check, Outcome
from glassformer.labs.spread import Spread

MARKS = {Outcome.PASSED: "✓", Outcome.FAILED: "✗", Outcome.OPEN: "?"}
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
WORDS = {
    "claim": Text("Claim", "说法"),
    "prediction": Text("Prediction", "预期"),
    "measured": Text("Measured", "实测"),
    "numbers": Text("Numbers", "数据"),
    "checks": Text("Checks", "检验"),
    "change": Text("What would change it", "何时会变"),
    "verdict": Text("Verdict", "结论"),
    "value": Text("measured", "实测值"),
    "bounds": Text("expected", "应为"),
    "extent": Text("full extent", "最强形式"),
    "passed": Text("passed", "通过"),
    "failed": Text("failed", "未通过"),
    "open": Text("the seeds do not tell", "这些种子无法判定"),
    "seed": Text("seed {0}", "种子 {0}"),
    "seeds": Text("seeds {0} to {1}", "种子 {0} 至 {1}"),
    "seeds used": Text("seeds", "种子"),
    "seconds": Text("{0} s", "{0} 秒"),
    "to run": Text(
        "run one: glassformer lab {0}; all: glassformer lab --all",
        "运行一个：glassformer lab {0}；全部运行：glassformer lab --all",
    ),
    "to report": Text("figures and a report to read: add --out DIR", "需要图和可阅读的报告，请加上 --out DIR"),
    "reported": Text("the report: {0}", "报告：{0}"),
}


def say(word: str, language: str, *values: object) -> str:
    return WORDS[word].say(language, *values)


def brief(value: float, digits: int = 4) -> str:
    """A number in few signs: 0.25, 2,000, 3.1·10⁻⁵."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    if 1e-3 <= abs(rounded) < 1e7:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
        text = f"{value:,.{decimals}f}"
    else:
        mantissa, exponent = f"{value:.{min(digits, 3) - 1}e}".split("e")
        text = f"{plain(mantissa)}·10{str(int(exponent)).translate(SUPERSCRIPTS)}".removeprefix("1·")
        return text.replace("-1·", "-").replace("-", "−")
    return plain(text).replace("-", "−")


def spread_out(spread: Spread) -> str:
    """A mean with half its interval, both to the same place: 0.274 ± 0.031."""
    mean, half = spread.mean, spread.half
    if not math.isfinite(half) or half == 0 or not math.isfinite(mean):
        return brief(mean)
    if half < 1e-3 or abs(mean) >= 1e7 or half >= 1e5:
        return f"{brief(mean)} ± {brief(half, 2)}"
    decimals = max(0, 1 - math.floor(math.log10(half)))  # two digits of the interval are all that can be known
    return f"{mean:,.{decimals}f} ± {half:,.{decimals}f}".replace("-", "−")


def seeds_said(seeds: Sequence[int], language: str) -> str:
    return say("seed", language, seeds[0]) if len(seeds) == 1 else say("seeds", language, seeds[0], seeds[-1])


def plain(text: str) -> str:
    """Without zeros that say nothing."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def bounds(check: Check, language: str) -> str:
    """What a check's number has to be."""
    low, high = brief(check.low), brief(check.high)
    if check.low == check.high:
        return f"= {low}"
    if math.isfinite(check.low) and math.isfinite(check.high):
        return Text(f"{low} to {high}", f"{low} 至 {high}").say(language)
    return f"≥ {low}" if math.isfinite(check.low) else f"≤ {high}"
