"""The Chinese texts have one word for each concept and are set as Chinese is; the English ones write learnt."""

import re
import tomllib
from pathlib import Path

import fences
import pytest

ROOT = Path(__file__).parents[2]
TERMS = tomllib.loads((ROOT / "docs" / "terms.toml").read_text(encoding="utf-8"))
PLACES = (
    "README.zh-CN.md", "CONTRIBUTING.zh-CN.md", "SECURITY.zh-CN.md", "docs/zh/**/*.md", "docs/zh.yml",
    "docs/figures/*.py", "docs/figures/*.zh.svg", "docs/build/*.py", "docs/before/*.py",
    "notebooks/zh/*.ipynb", "src/glassformer/labs/*.py",
    "src/glassformer/page/*.js", "src/glassformer/page/*.html", "src/glassformer/explain/**/*.py",
    "src/glassformer/train/card.zh.md",
    "src/glassformer/pipelines/box/*/README.zh-CN.md", "src/glassformer/pipelines/box/examples.toml",
)  # fmt: skip
UNWANTED = [(re.compile(word), concept, term["word"]) for concept, term in TERMS.items() for word in term["not"]]
CHINESE_PAGES = tuple(pattern for pattern in PLACES if pattern.endswith(".md"))
# Half-width signs, and spaces where none belong; a line that ends within a sentence is shown with a space.
MISPLACED = re.compile(
    "[一-鿿][,;!?]|[一-鿿] +[一-鿿]|[，。；：、！？] +[一-鿿]|[一-鿿] +[，。；：、！？]"
    "|[，。；、]{2}|[一-鿿，。；：、]\n *(?![-*+>|#<!]|\\d+\\.)[^\\s]"
)
CODE = re.compile(r"(`+)[^`\n].*?\1")
LEARNED = re.compile(r"""(?<!["'`.])\blearned\b""", re.I)
# English words in a German order or sense, each struck out once: behind for after, told for reported, stand for be.
GERMAN = re.compile(
    r"as decoder-only models have it|\bBehind it they\b|\bbehind the (?:softmax|embedding|activation|norm)\b"
    r"|\bis told;|\bare told of\b|\btells of it\b|\brow but one\b|\bnot anyhow\b|\band its likes\b"
    r"|\bof use on the way\b|\baddress of mail\b|\b[Vv]ariables of the environment\b"
    r"|\bslip of thought\b|^Who has \w+ that"
)
ENGLISH = (
    "docs/en/**/*.md", "README.md", "CONTRIBUTING.md", "SECURITY.md", "notebooks/en/*.ipynb", "docs/build/**/*.py",
    "docs/figures/*.py", "src/glassformer/labs/*.py", "src/glassformer/page/texts.js",
    "src/glassformer/explain/**/*.py", "src/glassformer/train/card.en.md",
    "src/glassformer/pipelines/box/*/README.md", "src/glassformer/pipelines/box/examples.toml",
)  # fmt: skip


def faults(text: str) -> list[str]:
    return [
        f"{found[0]} ({concept}: write {right})" for word, concept, right in UNWANTED if (found := word.search(text))
    ]


def found(pattern: str) -> list[Path]:
    return sorted(ROOT.glob(pattern))


@pytest.mark.parametrize("pattern", PLACES)
def test_each_concept_has_one_chinese_word(pattern):
    files = found(pattern)
    assert files or "box" in pattern, "nothing is there: was it moved?"
    wrong = {file.name: faults(file.read_text(encoding="utf-8")) for file in files}
    assert not {name: said for name, said in wrong.items() if said}


def test_a_word_that_is_not_used_is_noticed():
    assert faults("编码器的堆栈") == ["堆栈 (stack: write 堆叠)"]
    assert not faults("编码器的堆叠")
    assert faults("每批三句，一个批有多大") == ["批 (batch: write 批次)"]
    assert not faults("每批三句，同一批里，一个批次有多大，批归一化")
    assert faults("它的 logits 很大")
    assert not faults("它的 logit 很大，`logits` 是张量名")


def misplaced(page: str) -> list[str]:
    """The signs and spaces of a page's prose that are not as Chinese is set."""
    prose = CODE.sub("code", re.sub(r"^(#+ .*|\|.*|<.*)$", r"\1\n", fences.without(page), flags=re.M))
    return [prose[max(0, found.start() - 9) : found.end() + 9] for found in MISPLACED.finditer(prose)]


@pytest.mark.parametrize("pattern", CHINESE_PAGES)
def test_chinese_is_set_as_chinese(pattern):
    wrong = {file.name: misplaced(file.read_text(encoding="utf-8")) for file in found(pattern)}
    assert not {name: places for name, places in wrong.items() if places}


def test_a_misplaced_sign_is_noticed():
    for wrong in ("句子,句子", "句子 句子", "句子， 句子", "一行断开\n的句子", "句子，，句子"):
        assert misplaced(wrong)
    for right in ("句子，`a, b` 与 English, too。", "- 一项\n- 又一项", "| 表 | 格 |\n| 二 | 行 |", "一段\n\n又一段"):
        assert not misplaced(right)


def test_the_list_contradicts_neither_itself_nor_the_glossary():
    glossary = (ROOT / "docs" / "zh" / "glossary.md").read_text(encoding="utf-8")
    for term in TERMS.values():
        assert not faults(term["word"])
    for concept in ("stack", "mask", "token", "piece", "beam search", "checkpoint", "cross-attention"):
        assert f"| {TERMS[concept]['word']}" in glossary


def misworded(text: str) -> list[str]:
    return [line for line in text.splitlines() if LEARNED.search(line) or GERMAN.search(line)]


@pytest.mark.parametrize("pattern", ENGLISH)
def test_english_is_worded_as_english(pattern):
    files = found(pattern)
    assert files, "nothing is there: was it moved?"
    prose = {
        file.name: fences.without(text) if file.suffix == ".md" else text
        for file in files
        if (text := file.read_text(encoding="utf-8"))
    }
    assert not {name: lines for name, text in prose.items() if (lines := misworded(text))}


def test_english_that_is_misworded_is_noticed():
    assert misworded("what it has learned")
    assert misworded("A mask in front, as decoder-only models have it.")
    assert misworded("In front of it they agree. Behind it they are not.")
    assert not misworded('what it has learnt with positions="learned", `learned` and "scheme.learned"')
