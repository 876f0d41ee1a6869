"""The findings of a lab with several seeds, merged into one.

Numbers become means with 95% intervals, curves likewise. A check is judged by these rules:

    passed      the whole interval of the mean lies within the bounds
    failed      the whole interval lies outside them, or the number is none (NaN)
    open        a bound lies within the interval: these seeds cannot tell

A check of `every` seed (an equality, a count, a difference that is rounding alone) passes where each single value lies
within the bounds and fails otherwise; so does any check of one seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from glassformer.labs.experiment import Check, CheckOutcome, Finding, Verdict
from glassformer.labs.figures import Figure, Panel, Series, Text, localize
from glassformer.labs.spread import Spread

SEEDS = 5  # by default
CAPTION = Text(
    "Means of {0} seeds; bands and whiskers are their 95% intervals.", "{0} 个种子的均值；色带与误差线为 95% 置信区间。"
)


@dataclass(frozen=True)
class MergedCheck:
    check: Check  # as the first seed met it
    spread: Spread

    @property
    def outcome(self) -> CheckOutcome:
        low, high, values = self.check.low, self.check.high, self.spread.values
        if self.check.every or low == high or len(values) == 1 or any(map(math.isnan, values)):
            return CheckOutcome.PASSED if all(low <= value <= high for value in values) else CheckOutcome.FAILED
        least, most = (self.spread.mean,) * 2 if math.isnan(self.spread.half) else (self.spread.low, self.spread.high)
        if low <= least and most <= high:
            return CheckOutcome.PASSED
        return CheckOutcome.FAILED if most < low or least > high else CheckOutcome.OPEN


@dataclass(frozen=True)
class MergedFinding:
    numbers: Mapping[Text, Spread]
    checks: Sequence[MergedCheck]
    figure: Figure
    summary: Text

    @property
    def verdict(self) -> Verdict:
        core = [merged.outcome for merged in self.checks if not merged.check.extent]
        if not self.checks or CheckOutcome.FAILED in core:
            return Verdict.FAILS
        if CheckOutcome.OPEN in core:
            return Verdict.OPEN
        holds = all(merged.outcome is CheckOutcome.PASSED for merged in self.checks)
        return Verdict.HOLDS if holds else Verdict.LIMITED

    def named_numbers(self, language: str) -> dict[str, Spread]:
        return dict(zip(localize(self.numbers, language), self.numbers.values(), strict=True))


def merge(findings: Sequence[Finding]) -> MergedFinding:
    """The findings of one lab, a seed each."""
    first = findings[0]
    for other in findings[1:]:
        assert list(other.numbers) == list(first.numbers), "a lab gives its numbers the same names whatever the seed"
    numbers = {name: Spread([one.numbers[name] for one in findings]) for name in first.numbers}
    checks = [
        MergedCheck(check, Spread([one.checks[i].value for one in findings])) for i, check in enumerate(first.checks)
    ]
    quoted = {name: Spread([one.quoted[name] for one in findings]) for name in first.quoted}
    summary = first.summary
    if quoted:
        summary = Text(*(text.format(**quoted) for text in (summary.en, summary.zh)))
    return MergedFinding(numbers, checks, merge_figures([one.figure for one in findings]), summary)


def merge_figures(figures: Sequence[Figure]) -> Figure:
    """Means with their intervals. A panel that is an `example` of one draw stays the first seed's."""
    first = figures[0]
    panels = [merge_panels([figure.panels[i] for figure in figures]) for i in range(len(first.panels))]
    if not any(series.low for panel in panels for series in panel.series):
        return replace(first, panels=panels)
    seeds = Text(*(CAPTION.say(language, len(figures)) for language in ("en", "zh")))
    caption = Text(f"{first.caption.en} {seeds.en}".strip(), f"{first.caption.zh}{seeds.zh}")
    return replace(first, panels=panels, caption=caption)


def merge_panels(panels: Sequence[Panel]) -> Panel:
    first = panels[0]
    if first.example or len(panels) == 1:
        return first
    heat = [
        [Spread([panel.heat[i][j] for panel in panels]).mean for j in range(len(row))]
        for i, row in enumerate(first.heat)
    ]
    series = [merge_series([panel.series[i] for panel in panels], first.log_y) for i in range(len(first.series))]
    return replace(first, heat=heat, series=series)


def merge_series(series: Sequence[Series], log: bool) -> Series:
    """On a logarithmic axis the mean and its interval are those of the logarithms."""
    first = series[0]
    columns = list(zip(*(one.y for one in series), strict=True))
    logged = [log and all(value > 0 for value in values) for values in columns]
    spreads = [
        Spread([math.log(value) for value in values] if in_log else values)
        for values, in_log in zip(columns, logged, strict=True)
    ]

    def each(pick: Callable[[Spread], float]) -> list[float]:
        picked = map(pick, spreads)
        return [math.exp(value) if in_log else value for value, in_log in zip(picked, logged, strict=True)]

    x = [Spread(values).mean for values in zip(*(one.x for one in series), strict=True)]
    merged = replace(first, x=x, y=each(lambda spread: spread.mean))
    if first.dashed or all(spread.half == 0 for spread in spreads):
        return merged
    return replace(merged, low=each(lambda spread: spread.low), high=each(lambda spread: spread.high))
