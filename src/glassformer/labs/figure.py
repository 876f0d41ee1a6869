"""A figure as data: matplotlib draws it for reports, the page draws it in the browser."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from glassformer.text.strings import Text as Text

Kind = Literal["line", "points", "bars"]


@dataclass(frozen=True)
class Series:
    name: Text
    x: Sequence[float]
    y: Sequence[float]
    kind: Kind = "line"
    dashed: bool = False  # a prediction or a reference, not a measurement


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


@dataclass(frozen=True)
class Figure:
    panels: Sequence[Panel]
    caption: Text = field(default=Text("", ""))

    def as_dict(self, language: str = "en") -> dict[str, Any]:
        """For JSON: texts in one language, numbers JSON cannot hold as null."""
        return {
            "caption": self.caption.say(language),
            "panels": [
                {
                    "title": panel.title.say(language),
                    "x": panel.x.say(language),
                    "y": panel.y.say(language),
                    "log_x": panel.log_x,
                    "log_y": panel.log_y,
                    "ticks": said(panel.ticks, language),
                    "rows": said(panel.rows, language),
                    "heat": [numbers(row) for row in panel.heat],
                    "series": [
                        {
                            "name": series.name.say(language),
                            "x": numbers(series.x),
                            "y": numbers(series.y),
                            "kind": series.kind,
                            "dashed": series.dashed,
                        }
                        for series in panel.series
                    ],
                }
                for panel in self.panels
            ],
        }


def said(names: Iterable[str | Text], language: str) -> list[str]:
    return [name.say(language) if isinstance(name, Text) else name for name in names]


def numbers(values: Sequence[float]) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]
