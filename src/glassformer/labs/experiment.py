"""A claim put to the test: the claim, what was measured, and the verdict that follows.

A lab is one file with a `CLAIM`. Its `run` makes a small experiment on the model code that ships, from one seed, and
returns a `Finding`: numbers, the checks they pass or fail, and a figure. `glassformer.labs.seeds` merges the findings
of several seeds. The verdict is computed from the checks, so a broken part gives another verdict; the tests hand each
lab a broken part and see that it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from glassformer.labs.figures import Figure, Panel, Series, Text, bars, localize

__all__ = [
    "VERDICTS", "Check", "CheckOutcome", "Claim", "Figure", "Finding", "Lab", "Panel", "Series", "Text", "Verdict",
    "bars", "fill", "join",
]  # fmt: skip


class Verdict(StrEnum):
    HOLDS = "holds"
    LIMITED = "holds with limits"
    FAILS = "does not hold"
    OPEN = "not decided"


CHINESE = ("成立", "有条件成立", "不成立", "尚无定论")
VERDICTS = {verdict: Text(verdict.value, chinese) for verdict, chinese in zip(Verdict, CHINESE, strict=True)}


class CheckOutcome(StrEnum):
    """`open` where the spread between seeds leaves both possible."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"


def join(*texts: Text) -> Text:
    """What is measured, and of what: "loss after 60 steps", "with residuals", commas between them."""
    return Text(", ".join(one.en for one in texts), "，".join(one.zh for one in texts))


def fill(template: Text, *values: object) -> Text:
    """A template with values in its places, {0}, {1}; a text among them in the language of each."""
    return Text(*(template.say(language, *localize(values, language)) for language in ("en", "zh")))


@dataclass(frozen=True)
class Check:
    """A statement about one measured number: it lies between `low` and `high`.

    Where a check of the claim's core fails, the claim does not hold. Where only a check of its full `extent` does not
    pass (everywhere, always, at no cost), it holds with limits. Over several seeds the mean is judged with its
    interval; what is a fact of `every` seed (an equality, a count) must hold of each.
    """

    text: Text
    value: float
    low: float = -math.inf
    high: float = math.inf
    extent: bool = False
    every: bool = False


@dataclass(frozen=True)
class Finding:
    """What one seed gave.

    The summary keeps places for what it quotes: "a loss of {loss:.2f}" with {"loss": 0.314} in `quoted`. Over several
    seeds it then speaks of their means, "a loss of 0.31 ± 0.02"; {loss:max.2f} is the largest of them.
    """

    numbers: Mapping[Text, float]  # measured, by a name a reader understands: "variance of scores, d_k = 64"
    checks: Sequence[Check]
    figure: Figure
    summary: Text  # what was measured, in a sentence or two
    quoted: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Claim:
    title: Text
    claim: Text  # in a sentence
    prediction: Text  # what should be seen if it is true
    change: Text  # what would change the verdict
    alone: bool = False  # its lab measures times, which a lab running in parallel would disturb


@dataclass(frozen=True, kw_only=True)
class Lab(Claim):
    name: str  # as typed after `glassformer lab`
    run: Callable[[int], Finding]  # the experiment, from its seed

    def as_dict(self, language: str = "en") -> dict[str, Any]:
        words = {key: getattr(self, key).say(language) for key in ("title", "claim", "prediction", "change")}
        return {"name": self.name, **words}
