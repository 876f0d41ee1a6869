"""Where an axis has its ticks, and which of them are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from rich.cells import cell_len

from glassformer.labs.say import brief

MOST_NAMES = 12  # along an axis; of more, some are left out


def slants(names: Sequence[str], letters: int) -> bool:
    """Whether a few names would touch if they lay flat; of many, some are left out instead."""
    return len(names) <= MOST_NAMES and sum(cell_len(name) + 2 for name in names) > letters


def named_ticks(names: Sequence[str], most: int) -> list[int]:
    """The ticks that are named: all of a few, or every second, third, ... of many."""
    every = -(-len(names) // most) if len(names) > MOST_NAMES else 1
    return list(range(0, len(names), every or 1))


def scale(axes: Any, which: str, log: bool, met: Sequence[float] = (), counted: bool = False) -> None:
    """Ticks at round numbers, or on a logarithmic axis at those few that were `met`: 4, 8, 16, ...

    There is no tick between whole numbers where only whole ones were met: no layer 1.5.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axis = getattr(axes, f"{which}axis")
    if log:
        getattr(axes, f"set_{which}scale")("log")
        low, high = sorted(getattr(axes, f"get_{which}lim")())
        few = high / max(low, 1e-300) < 100  # within two decades the powers of ten alone would be bare
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=9))
        if 2 <= len(met) <= 10 and all(b / a > 1.4 for a, b in pairwise(met)):
            axis.set_major_locator(FixedLocator(met))
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10], integer=counted or whole(met)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: brief(value, 6)))


def whole(values: Iterable[float]) -> bool:
    """Whether all of several values are whole numbers, so that a tick between two would say nothing."""
    met = list(values)
    return len(met) > 0 and all(value == round(value) for value in met)
