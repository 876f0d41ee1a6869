"""A written target, and the rule that makes long and short ones comparable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from torch import Tensor

from glassformer.common.errors import check_choice, check_finite
from glassformer.model import ModelConfig

Rule = Literal["average", "gnmt"]
NO_TOKEN = -1  # in a table of ids, where no token stands


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
        check_finite("length_penalty", self.power)
        check_choice("length_rule", self.kind, get_args(Rule))

    def divisor(self, length: Tensor) -> Tensor:
        return (length if self.kind == "average" else (5 + length) / 6) ** self.power

    def reach(self, length: Tensor, limit: Tensor) -> Tensor:
        """The divisor that is kindest to a hypothesis of this length, if it may still grow to `limit`."""
        return self.divisor(length.clamp_min(limit) if self.power > 0 else length)


class Marks(NamedTuple):
    """What ends a target, and what stands behind it."""

    end: int  # NO_TOKEN for a model that has none
    pad: int  # what a finished target's row reads while others go on
    forced: bool  # the last token that fits is the end, whatever the model would say

    @classmethod
    def of(cls, config: ModelConfig) -> Marks:
        end = NO_TOKEN if config.end_id is None else config.end_id
        pad = max(end, 0) if config.pad_id is None else config.pad_id
        return cls(end, pad, config.force_end and config.end_id is not None)

    def read(self, row: list[int], score: float) -> list[Hypothesis]:
        """What a row of ids, as long as the limit, says; nothing if its probability is none."""
        ids = [token for token in row if token != NO_TOKEN]
        ended = ids[-1:] == [self.end]
        by_itself = ended and not (self.forced and len(ids) == len(row))
        return [Hypothesis(ids[:-1] if ended else ids, score, by_itself)] if math.isfinite(score) else []
