"""Both languages say the same in the same order; what a page points to is there."""

import re
from pathlib import Path

import fences
import named_source
import pytest
from words_in_code import all_words, printed_as, split_words

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
ENGLISH = re.compile(r"[A-Za-z]{3,} [a-z]{2,}")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
HEADING = re.compile(r"^(#+) +(.+?) *$", re.M)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"(?<![\w.~/])/(?:home|root|work|tmp|Users|usr|mnt)/")


def text(file: str) -> str:
    return (DOCS / f"{file}.md").read_text(encoding="utf-8")


def test_the_contents_list_every_page_in_the_same_order():
    listed = [re.findall(r"([\w/-]+)\.md", (DOCS / f"{language}.yml").read_text("utf-8")) for language in LANGUAGES]
    assert listed[0] == listed[1]
    assert sorted(listed[0]) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_shape(name):
    en, zh = (text(f"{language}/{name}") for language in LANGUAGES)
    headings = [[found.groups() for found in HEADING.finditer(fences.without(page))] for page in (en, zh)]
    assert [marks for marks, _ in headings[0]] == [marks for marks, _ in headings[1]]
    for (_, english), (_, chinese) in zip(*headings, strict=True):
        assert HEADINGS.get(english, chinese) == chinese
    blocks = [[block for block in fences.read(page) if block.kind in SAME] for page in (en, zh)]
    assert [(b.kind, b.words) for b in blocks[0]] == [(b.kind, b.words) for b in blocks[1]]
    assert differing(*blocks) == []
    marks = [[(what.kind, what.name) for what in fences.included(page)] for page in (en, zh)]
    assert marks[0] == marks[1]
    assert len(fences.FOLDED.findall(en)) == len(fences.FOLDED.findall(zh))


def differing(english: list[fences.Fence], chinese: list[fences.Fence]) -> list[str]:
    """The blocks that differ by more than the language of comments, docstrings and printed words."""
    found = []
    words: tuple[list[str], list[str]] = ([], [])
    for en, zh in zip(english, chinese, strict=True):
        lines = f"line {en.line} and line {zh.line}"
        if en.kind == "python":
            (code, english_words), (chinese_code, chinese_words) = map(split_words, (en.body, zh.body))
            words = (english_words, chinese_words)
            if code != chinese_code or len(english_words) != len(chinese_words):
                found.append(f"{lines}: the code is not the same")
        elif en.kind == "console":
            words = ([], [])
            if en.body != zh.body:
                found.append(f"{lines}: the commands are not the same")
        elif printed_as(en.body, *words) != zh.body:
            found.append(f"{lines}: the output is not the same")
    return found


def test_a_difference_that_is_not_one_of_language_is_noticed():
    def blocks(code: str, output: str) -> list[fences.Fence]:
        return fences.read(f"```python\n{code}\n```\n\n```output\n{output}\n```\n")

    one = blocks('print("sum", 1 + 2, "of", total["of"])  # both', "sum 3 of 7")
    assert differing(one, blocks('print("和", 1 + 2, "/", total["of"])  # 两者', "和 3 / 7")) == []
    assert "output" in differing(one, blocks('print("和", 1 + 2, "/", total["of"])', "和 4 / 7"))[0]
    assert "output" in differing(one, blocks('print("和", 1 + 2, "/", total["of"])', "sum 3 / 7"))[0]
    assert "code" in differing(one, blocks('print("和", 1 + 3, "/", total["of"])', "和 3 / 7"))[0]
    assert "code" in differing(one, blocks('print("和", 1 + 2, "/", total["/"])', "和 3 / 7"))[0]


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_chinese_page_speaks_chinese(name):
    """But for what a page includes: the source is English, and stands as it is."""
    spoken = [
        words
        for block in fences.read(fences.MARKED.sub(fences.blank, text(f"zh/{name}")))
        if block.kind == "python"
        for words in all_words(block.body)
    ]
    assert not [words for words in spoken if ENGLISH.search(words) and not CHINESE.search(words)]


@pytest.mark.parametrize("file", FILES)
def test_a_page_keeps_the_format(file):
    page = text(file)
    prose = fences.without(page)
    headings = [found.groups() for found in HEADING.finditer(prose)]
    assert [marks for marks, _ in headings].count("#") == 1
    if re.match(r"\d\d-", Path(file).name):
        required = {"Why", "Exercises"} if file.startswith("en") else {HEADINGS["Why"], HEADINGS["Exercises"]}
        assert required <= {words for _, words in headings}
    assert {block.kind for block in fences.read(page)} <= {*SAME, "text"}
    assert not ELSEWHERE.search(page), "an absolute path"


@pytest.mark.parametrize("file", FILES)
def test_figures_have_a_description_and_only_papers_are_linked_outside(file):
    for image, words, target in LINK.findall(fences.without(text(file))):
        assert not target.startswith("http") or target.startswith("https://arxiv.org/"), target
        if image:
            assert words, f"{target}: describe the figure"
            assert target.endswith(f".{file.split('/')[0]}.svg")


def test_every_figure_that_has_a_script_is_shown():
    shown = {Path(target).name for file in FILES for _, _, target in LINK.findall(text(file))}
    drawn = {f"{script.stem}.{language}.svg" for script in (DOCS / "figures").glob("*.py") for language in LANGUAGES}
    assert drawn <= shown


def test_a_wrong_name_of_a_source_is_noticed():
    with pytest.raises(LookupError, match="defines no `softmix`"):
        named_source.find("glassformer.model.attention.softmix")
    with pytest.raises(LookupError, match="no such module"):
        named_source.find("glassfarmer.model")
    found = named_source.find("glassformer.model.attention.Attention.forward")
    assert found.path == "src/glassformer/model/attention.py"
    assert found.text.startswith("def forward(")
