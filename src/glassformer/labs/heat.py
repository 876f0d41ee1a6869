"""A matrix of colours, drawn as cells of its own and not as an image."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from glassformer.labs.figure import Panel, said
from glassformer.labs.palette import SOFT
from glassformer.labs.say import brief
from glassformer.labs.ticks import named_ticks, whole

CELL, SHADES = "cell", 48
DRAWN_CELL = re.compile(
    rf'<g id="{CELL}">\s*<path d="M (\S+) (\S+) \s*L \S+ \S+ \s*L (\S+) (\S+) [^"]*"\s*'
    r'style="fill: (#\w+)[^"]*"/>\s*</g>'
)


def paint_heat(axes: Any, panel: Panel, language: str) -> None:
    import numpy as np
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    values = np.array([[value if math.isfinite(value) else math.nan for value in row] for row in panel.heat], float)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low < 0 < high:
        reach = max(-low, high)
        low, high, stops = -reach, reach, ["#1d4c8a", "#8db3dd", "#f6f3ed", "#f1b28b", "#a43817"]
    else:
        stops = ["#f6f3ed", "#93bae4", "#154785"]
    colours = LinearSegmentedColormap.from_list("glassformer", stops)
    scale = ScalarMappable(Normalize(low, high), colours)
    paint_cells(axes, scale.to_rgba(values), range(values.shape[1] + 1), range(values.shape[0] + 1))
    axes.set(xlim=(-0.5, values.shape[1] - 0.5), ylim=(values.shape[0] - 0.5, -0.5))
    for axis in (axes.xaxis, axes.yaxis):  # rows and columns are counted
        axis.set_major_locator(MaxNLocator(8, integer=True))
    if panel.rows:
        rows = said(panel.rows, language)
        named = named_ticks(rows, 32)
        axes.set_yticks(named, [rows[i] for i in named])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = axes.figure.colorbar(scale, ax=axes, fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    bar.solids.set_visible(False)  # it would be a raster
    edges = np.linspace(bar.vmin, bar.vmax, SHADES + 1).tolist()
    shades = np.linspace(low, high, SHADES)
    paint_cells(bar.ax, scale.to_rgba(shades[:, None]), (0, 1), edges, 0.0)
    bar.ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10], integer=whole(finite)))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: brief(value, 6)))
    if values.size <= 64:
        for (i, j), value in np.ndenumerate(values):
            red, green, blue, _ = colours(scale.norm(value))
            light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.55
            colour = SOFT if math.isnan(value) else "#000000" if light else "#ffffff"
            axes.text(j, i, brief(value, 3), ha="center", va="center", color=colour)


def paint_cells(axes: Any, colours: Any, across: Sequence[float], down: Sequence[float], middle: float = 0.5) -> None:
    """A rectangle for each cell: an image within a picture is blurred by some viewers and left out by others."""
    from matplotlib.patches import Rectangle

    for i, row in enumerate(colours):
        for j, colour in enumerate(row):
            corner = (across[j] - middle, down[i] - middle)
            size = (across[j + 1] - across[j], down[i + 1] - down[i])
            axes.add_patch(Rectangle(corner, *size, facecolor=colour, linewidth=0, clip_on=False, gid=CELL))


def compact(found: re.Match[str]) -> str:
    """A cell in a third of the letters."""
    left, bottom, right, top = (f"{float(value):.1f}".removesuffix(".0") for value in found.groups()[:4])
    return f'<path d="M{left} {bottom}H{right}V{top}H{left}z" fill="{found[5]}"/>'
