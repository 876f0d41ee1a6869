"""A claim put to the test: what is said, what was measured, and what follows from it.

A lab is one file with a `LAB`. Its `run` makes a small seeded experiment on the model code that ships and returns a
`Finding`: numbers, the checks they pass or fail, and a figure. The verdict is computed from the checks, so a broken
part gives another verdict; the tests hand each lab a broken part and see that it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from glassformer.labs.figure import Figure, Panel, Series, Text, said

__all__ = ["VERDICTS", "Check", "Figure", "Finding", "Lab", "Panel", "Series", "Text", "Verdict"]


class Verdict(StrEnum):
    HOLDS = "holds"
    LIMITED = "holds with limits"
    FAILS = "does not hold"


VERDICTS = {
    Verdict.HOLDS: Text("holds", "成立"),
    Verdict.LIMITED: Text("holds with limits", "有条件成立"),
    Verdict.FAILS: Text("does not hold", "不成立"),
}


@dataclass(frozen=True)
class Check:
    """A statement about one measured number: it lies between `low` and `high`.

    Where a check of the claim's core fails, the claim does not hold. Where only a check of its full `extent` fails
    (everywhere, always, at no cost), it holds with limits.
    """

    text: Text
    value: float
    low: float = -math.inf
    high: float = math.inf
    extent: bool = False

    @property
    def passed(self) -> bool:
        return self.low <= self.value <= self.high  # False for NaN as well


@dataclass(frozen=True)
class Finding:
    numbers: Mapping[Text, float]  # measured, by a name a reader understands: "variance of scores, d_k = 64"
    checks: Sequence[Check]
    figure: Figure
    summary: Text  # what was measured, in a sentence or two with the numbers in it

    @property
    def verdict(self) -> Verdict:
        if not self.checks or not all(check.passed for check in self.checks if not check.extent):
            return Verdict.FAILS
        return Verdict.HOLDS if all(check.passed for check in self.checks) else Verdict.LIMITED

    def named(self, language: str) -> dict[str, float]:
        """The numbers by their names in one language."""
        return dict(zip(said(self.numbers, language), self.numbers.values(), strict=True))


@dataclass(frozen=True)
class Lab:
    name: str  # as typed after `glassformer lab`
    title: Text
    claim: Text  # in a sentence
    prediction: Text  # what should be seen if it is true
    change: Text  # what would change the verdict
    run: Callable[[int], Finding]  # the experiment, from its seed

    def as_dict(self, language: str = "en") -> dict[str, Any]:
        words = {key: getattr(self, key).say(language) for key in ("title", "claim", "prediction", "change")}
        return {"name": self.name, **words}
