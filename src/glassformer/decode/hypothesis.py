"""A written target, and the rule that makes long and short ones comparable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from glassformer.errors import ConfigError, one_of

Rule = Literal["average", "gnmt"]


@dataclass(frozen=True)
class Hypothesis:
    """A target: its ids without start, end or padding, its score, and whether it ended by itself.

    One that is not `finished` was cut off by the limit, or had its end forced in the last place (`force_end`).
    """

    ids: list[int]
    score: float
    finished: bool = True


@dataclass(frozen=True)
class LengthRule:
    """What a sum of log-probabilities is divided by, the end token counted.

    average   length ** power: the mean log-probability for power 1
    gnmt      ((5 + length) / 6) ** power, of Wu et al. 2016, gentler with short targets
    """

    power: float = 1.0
    kind: Rule = "average"

    def __post_init__(self) -> None:
        if self.kind not in get_args(Rule):
            raise ConfigError(f"length_rule={self.kind!r} is not one of {one_of(get_args(Rule))}")

    def divisor(self, length: Tensor) -> Tensor:
        return (length if self.kind == "average" else (5 + length) / 6) ** self.power

    def reach(self, length: Tensor, limit: int) -> Tensor:
        """The divisor that is kindest to a hypothesis of this length, if it may still grow to `limit`."""
        return self.divisor(length.clamp_min(limit) if self.power > 0 else length)


def written(row: list[int], end: int, forced: bool, score: float) -> list[Hypothesis]:
    """What a row of ids, -1 after the last, says; nothing if it cannot be: a target of no probability is none."""
    ids = [token for token in row if token >= 0]
    ended = ids[-1:] == [end]
    by_itself = ended and not (forced and len(ids) == len(row))
    return [Hypothesis(ids[:-1] if ended else ids, score, by_itself)] if math.isfinite(score) else []
