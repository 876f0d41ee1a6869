"""Findings of several seeds made one: means, intervals, what passes, fails or stays open, and what is drawn."""

from __future__ import annotations

import math
import random

import pytest

from glassformer.labs.experiment import Check, Finding, Verdict
from glassformer.labs.figures import Figure, Panel, Series, Text
from glassformer.labs.seeds import merge
from glassformer.labs.spread import Spread

T = Text("word", "词")


def test_the_interval_of_normal_draws_holds_the_truth_in_95_of_100():
    draw = random.Random(3).gauss
    for seeds in (2, 5, 40):
        spreads = [Spread([draw(1.0, 2.0) for _ in range(seeds)]) for _ in range(2000)]
        assert 0.935 <= sum(one.low <= 1.0 <= one.high for one in spreads) / 2000 <= 0.965


@pytest.mark.parametrize(
    ("values", "spec", "text"),
    [
        ([0.25, 0.27, 0.29], ".2f", "0.27 ± 0.05"),
        ([0.25, 0.27, 0.29], ".0%", "27 ± 5%"),
        ([0.25, 0.27, 0.29], "max.2f", "0.29"),
        ([0.25, 0.27, 0.29], "min.0%", "25%"),
        ([0.251, 0.252], ".1f", "0.3"),  # an interval too small to be seen
        ([4.0, 4.0, 4.0], ".0f", "4"),
        ([0.3], ".2f", "0.30"),
        ([math.nan, math.nan], ".1g", "NaN"),
    ],
)
def test_a_spread_is_told_as_a_float_is_with_its_interval(values, spec, text):
    assert format(Spread(values), spec) == text


def finding(value, *, panels=(), **options):
    bounds = {"low": 1.0, "high": 2.0} | options
    return Finding({T: value}, [Check(T, value, **bounds)], Figure(panels), Text("{x:.1f}", "值{x:.1f}"), {"x": value})


@pytest.mark.parametrize(
    ("values", "options", "verdict"),
    [
        ([1.5, 1.52, 1.48], {}, Verdict.HOLDS),
        ([3.0, 3.1, 2.9], {}, Verdict.FAILS),
        ([1.9, 2.1, 1.95], {}, Verdict.OPEN),  # the interval reaches beyond 2
        ([1.5, 1.5, math.nan], {}, Verdict.FAILS),
        ([1.5, math.inf, 1.5], {"high": math.inf}, Verdict.HOLDS),
        ([1.01, 1.5, 1.99], {"every": True}, Verdict.HOLDS),
        ([1.5] * 9 + [2.01], {"every": True}, Verdict.FAILS),
        ([1.0, 1.0, 1.0], {"low": 1.0, "high": 1.0}, Verdict.HOLDS),
        ([1.0, 1.0, 1.0000001], {"low": 1.0, "high": 1.0}, Verdict.FAILS),
        ([1.99], {}, Verdict.HOLDS),
    ],
)
def test_a_check_is_judged_over_the_seeds(values, options, verdict):
    assert merge([finding(value, **options) for value in values]).verdict is verdict


@pytest.mark.parametrize("value", [3.0, 1.9])
def test_an_extent_that_fails_or_stays_open_limits_the_claim(value):
    def one(shift):
        checks = [Check(T, 1.0, 0.0, 2.0), Check(T, value + shift, 1.0, 2.0, extent=True)]
        return Finding({}, checks, Figure([]), T)

    assert merge([one(shift) for shift in (0.0, 0.1, -0.1)]).verdict is Verdict.LIMITED


def test_the_summary_speaks_of_the_means():
    merged = merge([finding(value) for value in (1.0, 1.5, 2.0)])
    assert (merged.summary.en, merged.summary.zh) == ("1.5 ± 1.2", "值1.5 ± 1.2")
    assert merge([finding(1.0)]).summary.en == "1.0"


def test_curves_are_means_with_bands_and_an_example_stays_one_draw():
    def panels(k):
        lines = Panel(T, T, T, [Series(T, [1, 2], [k, 2 * k]), Series(T, [1, 2], [0, 0], dashed=True)])
        heat = Panel(T, T, T, heat=[[k, 1.0]])
        logs = Panel(T, T, T, [Series(T, [1], [10.0**k])], log_y=True)
        return [lines, heat, logs, Panel(T, T, T, [Series(T, [1], [k])], example=True)]

    figure = merge([finding(1.5, panels=panels(k)) for k in (1.0, 2.0, 3.0)]).figure
    lines, heat, logs, example = figure.panels
    assert list(lines.series[0].y) == [2.0, 4.0]
    assert list(lines.series[0].high) == pytest.approx([2 + 4.303 / math.sqrt(3), 4 + 2 * 4.303 / math.sqrt(3)])
    assert not lines.series[1].low
    assert heat.heat == [[2.0, 1.0]]
    assert list(logs.series[0].y) == pytest.approx([100.0])  # the mean of the logarithms
    assert logs.series[0].low[0] > 0
    assert list(example.series[0].y) == [1.0]
    assert "3 seeds" in figure.caption.en
    assert "3 个种子" in figure.caption.zh
