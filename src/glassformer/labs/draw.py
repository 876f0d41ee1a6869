"""A figure drawn by matplotlib as SVG: the same picture, byte for byte, from the same data.

Words stay words, so that the reader's own fonts render Chinese. Colours are those of a light page; a style sheet in the
picture changes them where the reader prefers dark.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from io import StringIO
from itertools import pairwise
from typing import Any

from rich.cells import cell_len

from glassformer.common.errors import ConfigError
from glassformer.common.strings import wrap
from glassformer.labs.figure import Figure, Panel, Series, said
from glassformer.labs.heat import DRAWN_CELL, compact, paint_heat
from glassformer.labs.palette import COLOURS, DARK, INK, PAPER, RULE, SOFT
from glassformer.labs.ticks import named_ticks, scale, slants, whole

WIDE, NARROW, PLOT, LINE = 900, 640, 250, 19  # pixels: two panels, one panel, the height of a plot, of a line of text
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


def need_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ConfigError("figures need matplotlib, which is not installed; run: pip install 'glassformer[plot]'")


def svg(figure: Figure, language: str) -> str:
    """The figure as one `<svg>` element, for a file of its own or within a page."""
    need_matplotlib()
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    across = min(2, len(figure.panels)) or 1
    down = -(-len(figure.panels) // across) or 1
    width = WIDE if across == 2 else NARROW
    letters = width // across // 8  # that fit beside each other in a panel; a Chinese sign counts as two
    height = sum(
        max((tall(panel, language, letters) for panel in figure.panels[i : i + across]), default=PLOT)
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
            paint(axes, panel, language, letters)
        for axes in places[len(figure.panels) :]:
            axes.set_axis_off()
        canvas.savefig(text, format="svg", facecolor=PAPER, metadata={"Date": None, "Creator": None})
    return dressed(text.getvalue(), width, height, figure, language)


def tall(panel: Panel, language: str, letters: int) -> int:
    """The height of a panel: its plot, the words around it, and a line of legend for each series."""
    words = 60 + below(panel, language, letters) + LINE * wrap(panel.title.say(language), letters).count("\n")
    if panel.heat:
        return words + max(PLOT, min(420, 26 * len(panel.heat)))
    return words + PLOT + LINE * len(panel.series) * (len(panel.series) > 1)


def below(panel: Panel, language: str, letters: int) -> int:
    """How far the names of the ticks and of the axis reach below the plot."""
    ticks = said(panel.ticks, language)
    slanted = max(8 + 3 * cell_len(tick) for tick in ticks) if slants(ticks, letters) else 0
    return 42 + slanted + LINE * wrap(panel.x.say(language), letters).count("\n")


def paint(axes: Any, panel: Panel, language: str, letters: int) -> None:
    axes.set_title(wrap(panel.title.say(language), letters), loc="left", fontsize=13, fontweight="bold", pad=10)
    axes.set_xlabel(wrap(panel.x.say(language), letters))
    axes.set_ylabel(wrap(panel.y.say(language), 34))
    if panel.heat:
        paint_heat(axes, panel, language)
    else:
        paint_series(axes, panel, language, below(panel, language, letters))
    if panel.ticks:
        ticks = said(panel.ticks, language)
        named = named_ticks(ticks, letters // (2 + max(map(cell_len, ticks))) or 1)
        axes.set_xticks(named, [ticks[i] for i in named])
        axes.tick_params(axis="x", length=0)
        if slants(ticks, letters):
            axes.tick_params(axis="x", rotation=35)
            for label in axes.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")


def paint_series(axes: Any, panel: Panel, language: str, depth: int) -> None:
    from matplotlib.transforms import ScaledTranslation

    bars = [series for series in panel.series if series.kind == "bars"]
    places = sorted({float(x) for series in panel.series for x in series.x if drawable(x, panel.log_x)})
    step = min((b - a for a, b in pairwise(places)), default=1.0)
    # A measurement that its prediction lies upon is drawn broad and faint, so that both are seen.
    stroke = {"linewidth": 4, "alpha": 0.4} if paired(panel.series) else {"linewidth": 1.8}
    for series, colour in zip(panel.series, colours(panel.series), strict=True):
        # What a logarithm cannot place is left out, as is what is not a number.
        pairs = [(x, y) for x, y in zip(series.x, series.y, strict=True) if drawable(x, panel.log_x)]
        xs = [float(x) for x, _ in pairs]
        ys = [float(y) if drawable(y, panel.log_y) else math.nan for _, y in pairs]
        name = wrap(series.name.say(language), 56)
        low, high = interval(series, panel)
        if series.kind == "bars":
            each = 0.8 * step / len(bars)
            shift = each * (bars.index(series) - (len(bars) - 1) / 2)
            look: dict[str, Any] = {"facecolor": "none", "linestyle": "--"} if series.dashed else {"facecolor": colour}
            axes.bar([x + shift for x in xs], ys, 0.92 * each, label=name, edgecolor=colour, linewidth=1.2, **look)
            whiskers(axes, [x + shift for x in xs], ys, low, high, INK)
        elif series.kind == "points":
            face = PAPER if series.dashed else colour
            axes.plot(xs, ys, "o", label=name, color=colour, markersize=5, markerfacecolor=face)
            whiskers(axes, xs, ys, low, high, colour)
        elif series.dashed:
            axes.plot(xs, ys, label=name, color=colour, linewidth=1.8, linestyle=(0, (5, 3)), zorder=3)
        else:
            if low:
                axes.fill_between(xs, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(xs, ys, label=name, color=colour, marker="o" if len(xs) <= 24 else "", markersize=4, **stroke)
    if bars and places:
        axes.set_xlim(places[0] - step / 2, places[-1] + step / 2)  # where there is no number, the place stays
    scale(axes, "x", panel.log_x, places)
    scale(axes, "y", panel.log_y, counted=whole(y for one in panel.series for y in one.y if math.isfinite(y)))
    axes.grid(axis="y")
    if len(panel.series) > 1:
        # Below the axes, a series a line: nothing lies over the data, and no width of text is guessed at.
        place = axes.transAxes + ScaledTranslation(0, -depth / 72, axes.figure.dpi_scale_trans)
        look = {"frameon": False, "borderpad": 0, "borderaxespad": 0, "labelspacing": 0.35, "fontsize": 11}
        axes.legend(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=place, **look)


def interval(series: Series, panel: Panel) -> tuple[list[float], list[float]]:
    """The ends of the intervals of those points that are drawn; nothing where there are none."""
    if not series.low:
        return [], []
    kept = [i for i, x in enumerate(series.x) if drawable(x, panel.log_x)]
    ends = ([float(values[i]) for i in kept] for values in (series.low, series.high))
    low, high = ([value if drawable(value, panel.log_y) else math.nan for value in values] for values in ends)
    return low, high


def whiskers(axes: Any, xs: list[float], ys: list[float], low: list[float], high: list[float], colour: str) -> None:
    if low:
        reach = [[y - a for y, a in zip(ys, low, strict=True)], [b - y for y, b in zip(ys, high, strict=True)]]
        axes.errorbar(xs, ys, reach, fmt="none", ecolor=colour, elinewidth=1.2, capsize=3)


def colours(series: Sequence[Series]) -> list[str]:
    """Measurements in turn; a single reference in grey; as many predictions as measurements like those they belong to.

    The page colours its charts by the same rule.
    """
    dashed = sum(one.dashed for one in series)
    chosen, solid, broken = [], 0, 0
    for one in series:
        if not one.dashed:
            chosen.append(COLOURS[solid % len(COLOURS)])
            solid += 1
        elif dashed == 1:
            chosen.append(SOFT)
        else:
            chosen.append(COLOURS[(broken + (0 if paired(series) else len(series) - dashed)) % len(COLOURS)])
            broken += 1
    return chosen


def paired(series: Sequence[Series]) -> bool:
    """Two or more measurements, each with a prediction."""
    dashed = sum(one.dashed for one in series)
    return dashed > 1 and 2 * dashed == len(series)


def drawable(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def dressed(text: str, width: int, height: int, figure: Figure, language: str) -> str:
    """matplotlib's file as one element: sized in pixels, with a title, the reader's fonts and a dark coat."""
    body = text[text.index(">", text.index("<svg")) + 1 :]
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = DRAWN_CELL.sub(compact, body)
    body = re.sub(
        r'<g id="[^"]*">', "<g>", body
    )  # two figures of one page must not share names, and nobody asks for it
    body = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    body = body.replace(" font-family: 'DejaVu Sans';", "")
    title = escape("; ".join(panel.title.say(language) for panel in figure.panels))
    coat = "".join(
        f'.lab-figure [style*="{what}: {light}"]{{{what}:{dark}!important}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    return (
        f'<svg class="lab-figure" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'lang="{"zh-Hans" if language == "zh" else "en"}">'
        f"<title>{title}</title>"
        f"<style>.lab-figure{{max-width:100%;height:auto;font-family:{FONTS}}}.lab-figure *{{stroke-linejoin:round}}"
        ".lab-figure path[fill]{shape-rendering:crispEdges}"
        f"@media (prefers-color-scheme:dark){{{coat}}}</style>"
        f"{body.strip()}\n"
    )
