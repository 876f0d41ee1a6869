"""Figures and the report: well-formed, the same every time, complete in one file, in both languages."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from glassformer.labs import find
from glassformer.labs.experiment import Check, Finding, Lab
from glassformer.labs.figures import Figure, Panel, Series, Text, svg
from glassformer.labs.report import html
from glassformer.labs.run import LabRun, run
from glassformer.labs.seeds import merge
from glassformer.labs.spread import Spread, format_number, format_spread

NAN, INF = math.nan, math.inf
X = Text("width <d_k>, $5", "宽度 <d_k>，$5")
Y = Text("variance & more", "方差等")


def panel(*series, **options):
    return Panel(Text("What is seen", "看到的是"), X, Y, series, **options)


def named(en, zh, *rest, **options):
    return Series(Text(en, zh), *rest, **options)


LINES = panel(
    named("measured", "实测", [0, 1, 10, 100], [0.0, 1, NAN, 1e-7]),
    named("predicted", "预测", [1, 100], [1, 50], dashed=True),
    named("points", "散点", [1, 2, INF], [-1, 3, 2], "points"),
    log_x=True,
    log_y=True,
)
BARS = panel(
    named("before", "之前", [0, 1, 2], [1.5, -2, NAN], "bars"),
    named("after", "之后", [0, 1, 2], [1, 2, 3], "bars", dashed=True),
    ticks=["a long name of a bar", Text("another long name", "另一个很长的名字"), "第三个名字"],
)
HEAT = panel(heat=[[0.5, -0.5], [NAN, 1]], ticks=["一", "b"], rows=[Text("c", "丙"), "四"])
FIGURES = {"series": Figure([BARS, LINES, panel()]), "heat": Figure([HEAT]), "nothing": Figure([])}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_one_element_with_words_as_words(name, language):
    figure = FIGURES[name]
    drawn = svg(figure, language)
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert int(root.get("width")) <= 900
    words_drawn = "".join(text for node in root.iter("{http://www.w3.org/2000/svg}text") for text in node.itertext())
    for one in figure.panels:
        names = [name for name in (*one.ticks, *one.rows) if isinstance(name, Text)]
        names += [series.name for series in one.series if len(one.series) > 1]
        for text in (one.title, one.x, one.y, *names):
            assert re.sub(r"\s", "", text.say(language)) in re.sub(r"\s", "", words_drawn)
    assert not re.search(r'(?:href|src)="(?!#|data:image/png;base64,)', drawn)
    assert not re.search(r"url\((?!#)", drawn)


def test_the_same_data_give_the_same_bytes():
    assert svg(FIGURES["heat"], "zh") == svg(FIGURES["heat"], "zh")


class Reader(HTMLParser):
    """Elements that are closed in order, and every address that is asked for."""

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.words, self.ids = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "xlink:href", "srcset")]
        self.ids += [found["id"]] if tag == "article" else []
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href", "xlink:href", "srcset")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["script"]):
            self.words.append(data)


def made_up(name, passed):
    """A lab whose core and extent come out as given."""
    checks = [Check(Text(f"check {n}", f"检验 {n}"), float(ok), 1, 1, extent=n > 0) for n, ok in enumerate(passed)]
    text = Text(f"<b>{name}</b> & co", f"<b>{name}</b> 等")
    finding = Finding({Text("a < b", "甲 < 乙"): 1234.5, Text("nothing", "无"): NAN}, checks, FIGURES["nothing"], text)
    lab = Lab(name=name, title=text, claim=text, prediction=text, change=text, run=lambda seed: finding)
    return LabRun(lab, merge([finding]), [7], 1.25)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_report_is_one_file_that_says_everything(language):
    runs = [run(find("sinusoids"), 7), made_up("holding", (True, True)), made_up("failing", (False, True))]
    figures = {one.lab.name: svg(one.finding.figure, language) for one in runs}
    text = html(runs, figures, language, "glassformer lab sinusoids <x>")
    read = Reader(text)
    assert read.open == []
    assert read.ids == ["sinusoids", "holding", "failing"]
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in read.addresses)
    assert not re.search(r"https?://(?!www\.w3\.org/(2000/svg|1999/xlink))", text)
    assert "<script" not in text
    assert "@import" not in text
    words = "".join(read.words)
    first = runs[0]
    for text_of in (first.lab.claim, first.lab.prediction, first.lab.change, first.finding.summary):
        assert text_of.say(language) in words
    for merged in first.finding.checks:
        assert merged.check.text.say(language) in words
    for name, spread in first.finding.named_numbers(language).items():
        assert name in words
        assert format_spread(spread) in words
    for verdict in (
        ("成立", "有条件成立", "不成立") if language == "zh" else ("holds", "holds with limits", "does not hold")
    ):
        assert f">{verdict}</span>" in text
    assert "<b>failing</b>" in words
    assert ("甲 < 乙" if language == "zh" else "a < b") in words
    assert "glassformer lab sinusoids <x>" in words
    assert "prefers-color-scheme: dark" in text
    assert text.count("<svg") == 3


def test_numbers_are_brief_and_right():
    values = {0: "0", 0.25: "0.25", -2000: "−2,000", 1234567: "1,234,567", 0.0000123: "1.23·10⁻⁵", 1e8: "10⁸",
              -1e-5: "−10⁻⁵", 99999.6: "100,000", 0.99996: "1", INF: "∞", -INF: "−∞"}  # fmt: skip
    assert {value: format_number(value) for value in values} == values
    assert format_number(NAN) == "–"


def test_a_mean_and_its_interval_are_written_to_the_same_place():
    expected = {(1.0, 2.0, 3.0): "2.0 ± 2.5", (0.27, 0.271, 0.275): "0.2720 ± 0.0066", (5.0, 5.0): "5", (7.25,): "7.25",
            (1200.0, 1300.0): "1,250 ± 635", (1e-7, 3e-7): "2·10⁻⁷ ± 1.3·10⁻⁶", (-1.0, -3.0): "−2 ± 13"}  # fmt: skip
    assert {values: format_spread(Spread(values)) for values in expected} == expected


def test_heat_maps_are_cells_and_no_images() -> None:
    values = [[0.0, 1.0, 2.0], [2.0, 1.0, math.nan]]
    drawn = svg(Figure([Panel(Text("t", "t"), Text("x", "x"), Text("y", "y"), heat=values)]), "en")
    assert "<image" not in drawn
    cells = re.findall(r'<path d="M\S+ \S+H\S+V\S+H\S+z" fill="(#\w{6})"/>', drawn)
    assert len(set(cells[:5])) == 3, "a colour for each of three values, none for what is no number"
    ticks = re.findall(r"<text[^>]*>([^<]+)</text>", drawn)
    assert not [tick for tick in ticks if "." in tick], "rows, columns and whole values are counted"


def test_no_figure_of_the_handbook_holds_an_image() -> None:
    figures = sorted((Path(__file__).parents[2] / "docs" / "figures").glob("*.svg"))
    assert figures
    assert [one.name for one in figures if "<image" in one.read_text(encoding="utf-8")] == []
