"""A figure: panels of series or of a heat map as data, and that data drawn by matplotlib as SVG.

The same data give the same picture, byte for byte. Words stay words, so that the reader's own fonts render Chinese.
Colours are those of a light page; a style sheet in the picture changes them where the reader prefers dark.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from importlib.util import find_spec
from io import StringIO
from itertools import pairwise
from typing import Any, Literal

from rich.cells import cell_len

from glassformer.common.errors import ConfigError
from glassformer.common.strings import Text as Text
from glassformer.common.strings import wrap
from glassformer.labs.spread import format_number

SeriesKind = Literal["line", "points", "bars"]


@dataclass(frozen=True)
class Series:
    name: Text
    x: Sequence[float]
    y: Sequence[float]
    kind: SeriesKind = "line"
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
        content: dict[str, Any] = to_json(self, language)
        return content


def to_json(part: Any, language: str) -> Any:
    if isinstance(part, Text):
        return part.say(language)
    if is_dataclass(part):
        return {each.name: to_json(getattr(part, each.name), language) for each in fields(part)}
    if isinstance(part, Sequence) and not isinstance(part, str):
        return [to_json(one, language) for one in part]
    return None if isinstance(part, float) and not math.isfinite(part) else part


def localize(names: Iterable[object], language: str) -> list[str]:
    return [name.say(language) if isinstance(name, Text) else str(name) for name in names]


PAPER, INK, SOFT, RULE = "#fffefc", "#1d1b18", "#6b655c", "#e4dfd5"
COLOURS = ("#2862a8", "#c4412a", "#0b7f71", "#7547be", "#a86e00", "#ad3262")
ON_DARK = ("#1b1a17", "#f0ece4", "#a89f92", "#33302a", "#79b0f2", "#ff7d5e", "#4bc7b0", "#b898f3", "#e2ae49", "#f085ad")
DARK = dict(zip((PAPER, INK, SOFT, RULE, *COLOURS), ON_DARK, strict=True))  # what replaces each colour on a dark page
WIDE, NARROW, PLOT, LINE = 900, 640, 250, 19  # pixels: two panels, one panel, the height of a plot, of a line of text
MOST_NAMES = 12  # along an axis; of more, some are left out
CELL, SHADES = "cell", 48  # of a heat map: the id of its cells, the steps of its colour bar
DRAWN_CELL = re.compile(
    rf'<g id="{CELL}">\s*<path d="M (\S+) (\S+) \s*L \S+ \S+ \s*L (\S+) (\S+) [^"]*"\s*'
    r'style="fill: (#\w+)[^"]*"/>\s*</g>'
)
FONTS = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, "PingFang SC", '
    '"Microsoft YaHei", "Noto Sans CJK SC", sans-serif'
)
SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "glassformer",
    "text.parse_math": False,  # a dollar sign is a dollar sign
    "font.family": ["DejaVu Sans"],  # comes with matplotlib and is wide, so what fits here fits in the reader's font
    "font.size": 11,
    "text.color": INK,
    "axes.facecolor": PAPER,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": SOFT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
}


def matplotlib_installed() -> bool:
    return find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    if not matplotlib_installed():
        raise ConfigError("figures need matplotlib, which is not installed; run: pip install 'glassformer[plot]'")


def svg(figure: Figure, language: str) -> str:
    """The figure as one `<svg>` element, for a file of its own or within a page."""
    require_matplotlib()
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    across = min(2, len(figure.panels)) or 1
    down = -(-len(figure.panels) // across) or 1
    width = WIDE if across == 2 else NARROW
    letters = width // across // 8  # that fit beside each other in a panel; a Chinese sign counts as two
    height = sum(
        max((panel_height(panel, language, letters) for panel in figure.panels[i : i + across]), default=PLOT)
        for i in range(0, max(1, len(figure.panels)), across)
    )
    text = StringIO()
    with matplotlib.rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # the words are not drawn with this font
        spacing = ConstrainedLayoutEngine(w_pad=0.16, h_pad=0.14, wspace=0.03)
        canvas = Canvas(figsize=(width / 72, height / 72), facecolor=PAPER, layout=spacing)
        FigureCanvasSVG(canvas)
        places = list(canvas.subplots(down, across, squeeze=False).flat)
        for axes, panel in zip(places, figure.panels, strict=False):
            draw_panel(axes, panel, language, letters)
        for axes in places[len(figure.panels) :]:
            axes.set_axis_off()
        no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.savefig(text, format="svg", facecolor=PAPER, metadata=no_metadata)
    return standalone(text.getvalue(), width, height, figure, language)


def panel_height(panel: Panel, language: str, letters: int) -> int:
    """The height of a panel: its plot, the words around it, and a line of legend for each series."""
    words = 60 + depth_below(panel, language, letters) + LINE * wrap(panel.title.say(language), letters).count("\n")
    if panel.heat:
        return words + max(PLOT, min(420, 26 * len(panel.heat)))
    return words + PLOT + LINE * len(panel.series) * (len(panel.series) > 1)


def depth_below(panel: Panel, language: str, letters: int) -> int:
    """How far the names of the ticks and of the axis reach below the plot."""
    ticks = localize(panel.ticks, language)
    slanted = max(8 + 3 * cell_len(tick) for tick in ticks) if must_slant(ticks, letters) else 0
    return 42 + slanted + LINE * wrap(panel.x.say(language), letters).count("\n")


def must_slant(names: Sequence[str], letters: int) -> bool:
    """Whether a few names would touch if they lay flat; of many, some are left out instead."""
    return len(names) <= MOST_NAMES and sum(cell_len(name) + 2 for name in names) > letters


def named_ticks(names: Sequence[str], most: int) -> list[int]:
    """The ticks that are named: all of a few, or every second, third, ... of many."""
    every = -(-len(names) // most) if len(names) > MOST_NAMES else 1
    return list(range(0, len(names), every or 1))


def draw_panel(axes: Any, panel: Panel, language: str, letters: int) -> None:
    axes.set_title(wrap(panel.title.say(language), letters), loc="left", fontsize=13, fontweight="bold", pad=10)
    axes.set_xlabel(wrap(panel.x.say(language), letters))
    axes.set_ylabel(wrap(panel.y.say(language), 34))
    if panel.heat:
        draw_heat(axes, panel, language)
    else:
        draw_series(axes, panel, language, depth_below(panel, language, letters))
    if panel.ticks:
        ticks = localize(panel.ticks, language)
        named = named_ticks(ticks, letters // (2 + max(map(cell_len, ticks))) or 1)
        axes.set_xticks(named, [ticks[i] for i in named])
        axes.tick_params(axis="x", length=0)
        if must_slant(ticks, letters):
            axes.tick_params(axis="x", rotation=35)
            for label in axes.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")


def draw_series(axes: Any, panel: Panel, language: str, depth: int) -> None:
    from matplotlib.transforms import ScaledTranslation

    bars = [series for series in panel.series if series.kind == "bars"]
    places = sorted({float(x) for series in panel.series for x in series.x if drawable(x, panel.log_x)})
    step = min((b - a for a, b in pairwise(places)), default=1.0)
    # A measurement that its prediction lies upon is drawn broad and faint, so that both are seen.
    stroke = {"linewidth": 4, "alpha": 0.4} if is_paired(panel.series) else {"linewidth": 1.8}
    for series, colour in zip(panel.series, series_colours(panel.series), strict=True):
        kept = [i for i, x in enumerate(series.x) if drawable(x, panel.log_x)]
        xs = [float(series.x[i]) for i in kept]
        ys, low, high = (
            [float(values[i]) if drawable(values[i], panel.log_y) else math.nan for i in kept] if values else []
            for values in (series.y, series.low, series.high)
        )
        look: dict[str, Any] = {"label": wrap(series.name.say(language), 56), "color": colour}
        if series.kind == "bars":
            each = 0.8 * step / len(bars)
            xs = [x + each * (bars.index(series) - (len(bars) - 1) / 2) for x in xs]
            look |= {"color": "none", "linestyle": "--"} if series.dashed else {}
            axes.bar(xs, ys, 0.92 * each, edgecolor=colour, linewidth=1.2, **look)
        elif series.kind == "points":
            axes.plot(xs, ys, "o", markersize=5, markerfacecolor=PAPER if series.dashed else colour, **look)
        elif series.dashed:
            axes.plot(xs, ys, linewidth=1.8, linestyle=(0, (5, 3)), zorder=3, **look)
        else:
            if low:
                axes.fill_between(xs, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(xs, ys, marker="o" if len(xs) <= 24 else "", markersize=4, **look, **stroke)
        if low and series.kind != "line":
            reach = [[y - a for y, a in zip(ys, low, strict=True)], [b - y for y, b in zip(ys, high, strict=True)]]
            whisker = INK if series.kind == "bars" else colour
            axes.errorbar(xs, ys, reach, fmt="none", ecolor=whisker, elinewidth=1.2, capsize=3)
    if bars and places:
        axes.set_xlim(places[0] - step / 2, places[-1] + step / 2)  # where there is no number, the place stays
    set_scale(axes, "x", panel.log_x, places)
    set_scale(axes, "y", panel.log_y, whole=all_whole(y for one in panel.series for y in one.y if math.isfinite(y)))
    axes.grid(axis="y")
    if len(panel.series) > 1:
        # Below the axes, a series a line: nothing lies over the data, and no width of text is guessed at.
        place = axes.transAxes + ScaledTranslation(0, -depth / 72, axes.figure.dpi_scale_trans)
        style = {"frameon": False, "borderpad": 0, "borderaxespad": 0, "labelspacing": 0.35, "fontsize": 11}
        axes.legend(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=place, **style)


def series_colours(series: Sequence[Series]) -> list[str]:
    """Measurements in turn; a single reference in grey; as many predictions as measurements like those they belong to.

    Several references that belong to no measurement take the colours that the measurements leave.
    """
    measured, references = ([one for one in series if one.dashed is dashed] for dashed in (False, True))
    ordered = measured + references
    shift = len(measured) if is_paired(series) else 0
    places = [ordered.index(one) - shift * one.dashed for one in series]
    alone = len(references) == 1
    return [
        SOFT if one.dashed and alone else COLOURS[at % len(COLOURS)] for one, at in zip(series, places, strict=True)
    ]


def is_paired(series: Sequence[Series]) -> bool:
    """Two or more measurements, each with a prediction."""
    dashed = sum(one.dashed for one in series)
    return dashed > 1 and 2 * dashed == len(series)


def drawable(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def set_scale(axes: Any, which: str, log: bool, met: Sequence[float] = (), whole: bool = False) -> None:
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
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10], integer=whole or all_whole(met)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value, 6)))


def all_whole(values: Iterable[float]) -> bool:
    """Whether all of several values are whole numbers, so that a tick between two would say nothing."""
    met = list(values)
    return len(met) > 0 and all(value == round(value) for value in met)


def draw_heat(axes: Any, panel: Panel, language: str) -> None:
    import numpy as np
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.ticker import MaxNLocator

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
    draw_cells(axes, scale.to_rgba(values), range(values.shape[1] + 1), range(values.shape[0] + 1))
    axes.set(xlim=(-0.5, values.shape[1] - 0.5), ylim=(values.shape[0] - 0.5, -0.5))
    for axis in (axes.xaxis, axes.yaxis):  # rows and columns are counted
        axis.set_major_locator(MaxNLocator(8, integer=True))
    if panel.rows:
        rows = localize(panel.rows, language)
        named = named_ticks(rows, 32)
        axes.set_yticks(named, [rows[i] for i in named])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = axes.figure.colorbar(scale, ax=axes, fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    bar.solids.set_visible(False)  # it would be a raster
    edges = np.linspace(bar.vmin, bar.vmax, SHADES + 1).tolist()
    shades = np.linspace(low, high, SHADES)
    draw_cells(bar.ax, scale.to_rgba(shades[:, None]), (0, 1), edges, 0.0)
    set_scale(bar.ax, "y", log=False, whole=all_whole(finite))
    if values.size <= 64:
        for (i, j), value in np.ndenumerate(values):
            red, green, blue, _ = colours(scale.norm(value))
            light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.55
            colour = SOFT if math.isnan(value) else "#000000" if light else "#ffffff"
            axes.text(j, i, format_number(value, 3), ha="center", va="center", color=colour)


def draw_cells(axes: Any, colours: Any, across: Sequence[float], down: Sequence[float], middle: float = 0.5) -> None:
    """A rectangle for each cell: an image within a picture is blurred by some viewers and left out by others."""
    from matplotlib.patches import Rectangle

    for i, row in enumerate(colours):
        for j, colour in enumerate(row):
            corner = (across[j] - middle, down[i] - middle)
            size = (across[j + 1] - across[j], down[i + 1] - down[i])
            axes.add_patch(Rectangle(corner, *size, facecolor=colour, linewidth=0, clip_on=False, gid=CELL))


def compact_cell(match: re.Match[str]) -> str:
    """A cell in a third of the letters."""
    left, bottom, right, top = (f"{float(value):.1f}".removesuffix(".0") for value in match.groups()[:4])
    return f'<path d="M{left} {bottom}H{right}V{top}H{left}z" fill="{match[5]}"/>'


def standalone(text: str, width: int, height: int, figure: Figure, language: str) -> str:
    """matplotlib's file as one element: sized in pixels, with a title, the reader's fonts and dark colours."""
    body = text[text.index(">", text.index("<svg")) + 1 :]
    body = DRAWN_CELL.sub(compact_cell, body)
    body = re.sub(r'<g id="[^"]*">', "<g>", body)  # two figures of one page must not share ids; nothing refers to these
    body = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    body = body.replace(" font-family: 'DejaVu Sans';", "")
    title = escape("; ".join(panel.title.say(language) for panel in figure.panels))
    dark = "".join(
        f'.lab-figure [style*="{what}: {light}"]{{{what}:{instead}!important}}'
        for light, instead in DARK.items()
        for what in ("fill", "stroke")
    )
    return (
        f'<svg class="lab-figure" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'lang="{"zh-Hans" if language == "zh" else "en"}">'
        f"<title>{title}</title>"
        f"<style>.lab-figure{{max-width:100%;height:auto;font-family:{FONTS}}}.lab-figure *{{stroke-linejoin:round}}"
        ".lab-figure path[fill]{shape-rendering:crispEdges}"
        f"@media (prefers-color-scheme:dark){{{dark}}}</style>"
        f"{body.strip()}\n"
    )
