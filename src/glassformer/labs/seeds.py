"""What a lab found with several seeds, made one finding.

Numbers become means with 95% intervals, curves likewise. A check is judged by these rules:

    passed      the whole interval of the mean lies within the bounds
    failed      the whole interval lies outside them, or the number is none (NaN)
    open        a bound lies within the interval: these seeds cannot tell

A check of `every` seed (an equality, a count, a difference that is rounding alone) passes where each single value lies
within the bounds and fails otherwise; so does any check of one seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from glassformer.labs.figure import Figure, Panel, Series, Text, said
from glassformer.labs.lab import Check, Finding, Outcome, Verdict, verdict
from glassformer.labs.spread import Spread

SEEDS = 5  # unless told otherwise
CAPTION = Text(
    "Means of {0} seeds; bands and whiskers are their 95% intervals.", "{0} 个种子的均值；色带与误差线为 95% 置信区间。"
)


@dataclass(frozen=True)
class Judged:
    """A check with its values over the seeds."""

    check: Check  # as the first seed met it
    spread: Spread

    @property
    def text(self) -> Text:
        return self.check.text

    @property
    def extent(self) -> bool:
        return self.check.extent

    @property
    def outcome(self) -> Outcome:
        low, high, values = self.check.low, self.check.high, self.spread.values
        if self.check.every or low == high or len(values) == 1 or any(map(math.isnan, values)):
            return Outcome.PASSED if all(low <= value <= high for value in values) else Outcome.FAILED
        least, most = (self.spread.mean,) * 2 if math.isnan(self.spread.half) else (self.spread.low, self.spread.high)
        if low <= least and most <= high:
            return Outcome.PASSED
        return Outcome.FAILED if most < low or least > high else Outcome.OPEN


@dataclass(frozen=True)
class Merged:
    """The findings of all seeds as one."""

    numbers: Mapping[Text, Spread]
    checks: Sequence[Judged]
    figure: Figure
    summary: Text

    @property
    def verdict(self) -> Verdict:
        return verdict([(judged.outcome, judged.extent) for judged in self.checks])

    def named(self, language: str) -> dict[str, Spread]:
        """The numbers by their names in one language."""
        return dict(zip(said(self.numbers, language), self.numbers.values(), strict=True))


def merge(findings: Sequence[Finding]) -> Merged:
    """The findings of one lab, a seed each."""
    first = findings[0]
    for other in findings[1:]:
        assert list(other.numbers) == list(first.numbers), "a lab gives its numbers the same names whatever the seed"
    numbers = {name: Spread([one.numbers[name] for one in findings]) for name in first.numbers}
    checks = [Judged(check, Spread([one.checks[i].value for one in findings])) for i, check in enumerate(first.checks)]
    quoted = {name: Spread([one.quoted[name] for one in findings]) for name in first.quoted}
    summary = first.summary
    if quoted:
        summary = Text(*(text.format(**quoted) for text in (summary.en, summary.zh)))
    return Merged(numbers, checks, merge_figures([one.figure for one in findings]), summary)


def merge_figures(figures: Sequence[Figure]) -> Figure:
    """Means with their intervals. A panel that is an `example` of one draw stays the first seed's."""
    first = figures[0]
    panels = [merge_panels([figure.panels[i] for figure in figures]) for i in range(len(first.panels))]
    if not any(series.low for panel in panels for series in panel.series):
        return replace(first, panels=panels)
    told = Text(*(CAPTION.say(language, len(figures)) for language in ("en", "zh")))
    caption = Text(f"{first.caption.en} {told.en}".strip(), f"{first.caption.zh}{told.zh}")
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
    x = [Spread(values).mean for values in zip(*(one.x for one in series), strict=True)]
    spreads = [Spread(values) for values in zip(*(one.y for one in series), strict=True)]
    turn = [log and all(value > 0 for value in spread.values) for spread in spreads]
    spreads = [
        Spread([math.log(value) for value in spread.values]) if turned else spread
        for spread, turned in zip(spreads, turn, strict=True)
    ]

    def back(values: Sequence[float]) -> list[float]:
        return [math.exp(value) if turned else value for value, turned in zip(values, turn, strict=True)]

    if first.dashed or all(spread.half == 0 for spread in spreads):
        return replace(first, x=x, y=back([spread.mean for spread in spreads]))
    return replace(
        first,
        x=x,
        y=back([spread.mean for spread in spreads]),
        low=back([spread.low for spread in spreads]),
        high=back([spread.high for spread in spreads]),
    )
