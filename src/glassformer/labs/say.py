"""Numbers and limits as a reader meets them, in reports, pictures and on the terminal."""

from __future__ import annotations

import math

from glassformer.labs.lab import Check
from glassformer.text.strings import Text

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
    "seed": Text("seed", "种子"),
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
