"""A figure as data: matplotlib draws it for reports, the page draws it in the browser."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from glassformer.common.strings import Text as Text

Kind = Literal["line", "points", "bars"]


@dataclass(frozen=True)
class Series:
    name: Text
    x: Sequence[float]
    y: Sequence[float]
    kind: Kind = "line"
    dashed: bool = False  # a prediction or a reference, not a measurement
    low: Sequence[float] = ()  # where y is a mean over seeds: the ends of its interval
    high: Sequence[float] = ()


def bars(name: Text, values: Sequence[float]) -> Series:
    """A bar for each of the panel's ticks."""
    return Series(name, range(len(values)), values, kind="bars")


@dataclass(frozen=True)
class Panel:
    """One pair of axes. With `heat`, a matrix of colours instead of series: rows downwards, columns to the right."""

    title: Text
    x: Text
    y: Text
    series: Sequence[Series] = ()
    log_x: bool = False
    log_y: bool = False
    ticks: Sequence[str | Text] = ()  # names of x = 0, 1, 2, ... for bars, or of a heat map's columns
    rows: Sequence[str | Text] = ()  # names of a heat map's rows; a plain one is the same in every language
    heat: Sequence[Sequence[float]] = ()
    example: bool = False  # one draw shown as it is; the mean over seeds would show nothing


@dataclass(frozen=True)
class Figure:
    panels: Sequence[Panel]
    caption: Text = field(default=Text("", ""))

    def as_dict(self, language: str = "en") -> dict[str, Any]:
        """For JSON: texts in one language, numbers JSON cannot hold as null."""
        told: dict[str, Any] = plain(self, language)
        return told


def plain(part: Any, language: str) -> Any:
    if isinstance(part, Text):
        return part.say(language)
    if is_dataclass(part):
        return {each.name: plain(getattr(part, each.name), language) for each in fields(part)}
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [plain(one, language) for one in part]
    return None if isinstance(part, float) and not math.isfinite(part) else part


def said(names: Iterable[str | Text], language: str) -> list[str]:
    return [name.say(language) if isinstance(name, Text) else name for name in names]
