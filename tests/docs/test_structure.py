"""Both languages say the same in the same order; what a page points to is there."""

from __future__ import annotations

import re
from pathlib import Path

import fences
import named_source
import pytest

DOCS = Path(__file__).parents[2] / "docs"
LANGUAGES = ("en", "zh")
PAGES = sorted(
    {
        page.relative_to(DOCS / language).with_suffix("").as_posix()
        for language in LANGUAGES
        for page in (DOCS / language).rglob("*.md")
    }
)
FILES = [f"{language}/{name}" for language in LANGUAGES for name in PAGES]
HEADINGS = {
    "Why": "为什么",
    "The equation": "公式",
    "The code": "代码",
    "On our sentence": "看我们的句子",
    "Try it": "动手",
    "Exercises": "练习",
}
SAME = ("python", "console", "output")
KINDS = {*SAME, "text"}
HEADING = re.compile(r"^(#+) +(.+?) *$", re.M)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"(?<![\w.~/])/(?:home|root|work|tmp|Users|usr|mnt)/")


def text(file: str) -> str:
    return (DOCS / f"{file}.md").read_text(encoding="utf-8")


def test_the_contents_list_every_page_in_the_same_order() -> None:
    listed = [re.findall(r"([\w/-]+)\.md", (DOCS / f"{language}.yml").read_text("utf-8")) for language in LANGUAGES]
    assert listed[0] == listed[1]
    assert sorted(listed[0]) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_shape(name: str) -> None:
    en, zh = (text(f"{language}/{name}") for language in LANGUAGES)
    headings = [[found.groups() for found in HEADING.finditer(fences.without(page))] for page in (en, zh)]
    assert [marks for marks, _ in headings[0]] == [marks for marks, _ in headings[1]]
    for (_, english), (_, chinese) in zip(*headings, strict=True):
        assert HEADINGS.get(english, chinese) == chinese
    blocks = [[(b.kind, b.words, b.body) for b in fences.read(page) if b.kind in SAME] for page in (en, zh)]
    assert blocks[0] == blocks[1]
    marks = [[(what.kind, what.name) for what in fences.included(page)] for page in (en, zh)]
    assert marks[0] == marks[1]
    assert len(fences.FOLDED.findall(en)) == len(fences.FOLDED.findall(zh))


@pytest.mark.parametrize("file", FILES)
def test_a_page_keeps_the_format(file: str) -> None:
    page = text(file)
    prose = fences.without(page)
    headings = [found.groups() for found in HEADING.finditer(prose)]
    assert [marks for marks, _ in headings].count("#") == 1
    if re.match(r"\d\d-", Path(file).name):
        wanted = {english if file.startswith("en") else chinese for english, chinese in HEADINGS.items()}
        missing = wanted & {HEADINGS["Why"], HEADINGS["Exercises"], "Why", "Exercises"} - {
            words for _, words in headings
        }
        assert not missing
    assert {block.kind for block in fences.read(page)} <= KINDS
    assert prose.count("```") == 0, "a fence is not closed"
    assert prose.count("$$") % 2 == 0
    assert not ELSEWHERE.search(page), "an absolute path"


@pytest.mark.parametrize("file", FILES)
def test_links_figures_and_sources_lead_somewhere(file: str) -> None:
    page = text(file)
    language = file.split("/")[0]
    for image, words, target in LINK.findall(fences.without(page)):
        if target.startswith("http"):
            assert target.startswith("https://arxiv.org/"), f"{target}: only papers are linked outside"
            continue
        place = ((DOCS / file).parent / target.split("#")[0]).resolve() if not target.startswith("#") else DOCS
        assert place.exists(), f"{target} is not there"
        if image:
            assert words, f"{target}: say what one sees"
            assert target.endswith(f".{language}.svg")


def test_every_figure_that_has_a_script_is_shown() -> None:
    shown = {Path(target).name for file in FILES for _, _, target in LINK.findall(text(file))}
    drawn = {f"{script.stem}.{language}.svg" for script in (DOCS / "figures").glob("*.py") for language in LANGUAGES}
    assert drawn <= shown


def test_a_wrong_name_of_a_source_is_noticed() -> None:
    with pytest.raises(LookupError, match="defines no `softmix`"):
        named_source.find("glassformer.model.attention.softmix")
    with pytest.raises(LookupError, match="no such module"):
        named_source.find("glassfarmer.model")
    found = named_source.find("glassformer.model.attention.Attention.forward")
    assert found.path == "src/glassformer/model/attention.py"
    assert found.text.startswith("def forward(")
