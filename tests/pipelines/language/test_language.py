"""The language of a text, of few words too; and what languages are called."""

from __future__ import annotations

import pytest

from glassformer.common.errors import ConfigError
from glassformer.pipelines.language.language import confident_language, detect_language, language_code

AMONG = ("en", "de", "zh")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Where is the nearest station?", "en"),
        ("Wo ist der nächste Bahnhof?", "de"),
        ("最近的车站在哪里？", "zh"),
        ("To install the package, run `pip install glassformer` in a terminal.", "en"),
        ("Führen Sie `pip install glassformer` aus, um das Paket zu installieren.", "de"),
        ("在终端中运行 `pip install glassformer` 即可安装。", "zh"),
        ("打开 Visual Studio Code 的设置", "zh"),
    ],
)
def test_a_sentence_leaves_no_doubt(text: str, code: str) -> None:
    assert confident_language(text) == code
    assert detect_language(text, AMONG) == (code, None)


@pytest.mark.parametrize(
    ("text", "code"), [("Hello world", "en"), ("Bahnhof", "de"), ("Guten Morgen", "de"), ("Save", "en"), ("东京", "zh")]
)
def test_a_few_words_are_told_by_the_library(text: str, code: str) -> None:
    assert detect_language(text, AMONG) == (code, None)


CODE = [
    "`make all`",
    "{folder}",
    "%s",
    "%(name)s",
    "$HOME",
    "--dry-run",
    "<b>",
    "https://der.die/das?x=1",
    "src/das.py",
]


@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("shape", ["Run {} in {}.", "Click {}", "Where is {}?", "Führe {} in {} aus.", "打开 {}"])
def test_code_and_placeholders_say_nothing_of_the_language(shape: str, code: str) -> None:
    language = "zh" if shape[0] == "打" else "de" if shape[0] == "F" else "en"
    assert detect_language(shape.replace("{}", code), AMONG) == (language, None)


@pytest.mark.parametrize(
    ("text", "other"),
    [("Bonjour, comment allez-vous ?", "fr"), ("¿Dónde está la estación?", "es"), ("Привет, как дела?", "ru")],
)
def test_a_language_that_is_not_asked_for_is_named(text: str, other: str) -> None:
    assert confident_language(text) is None
    assert detect_language(text, AMONG).other == other
    assert detect_language(text, AMONG).code in AMONG


@pytest.mark.parametrize("text", ["", "  \n", "12345", "https://example.org", "?!"])
def test_what_has_no_letters_has_no_language(text: str) -> None:
    assert confident_language(text) is None
    if text.startswith("http"):
        return  # an address is a text too, if it is all there is
    assert detect_language(text, AMONG) == (None, None)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *[("de", "de"), ("DE", "de"), ("german", "de"), ("Deutsch", "de"), ("de-AT", "de"), ("德语", "de")],
        *[("zh", "zh"), ("zh-CN", "zh"), ("zh_Hans", "zh"), ("中文", "zh"), ("Chinese", "zh"), ("en_US", "en")],
    ],
)
def test_a_language_has_many_names(name: str, code: str) -> None:
    assert language_code(name, AMONG) == code


def test_a_language_that_is_not_here_is_told_with_those_that_are() -> None:
    here = r"there are en \(English\), de \(German\), zh \(Chinese\)"
    with pytest.raises(ConfigError, match=f"the language `fr` is not here; {here}$"):
        language_code("fr", AMONG)
    with pytest.raises(ConfigError, match="did you mean `German`"):
        language_code("Germn", AMONG)
    with pytest.raises(ConfigError, match="`zh-TW` is Chinese in traditional characters"):
        language_code("zh-TW", AMONG)


def test_a_link_to_a_chinese_version_makes_no_page_chinese() -> None:
    page = "# Contributing\n\n[简体中文](CONTRIBUTING.zh-CN.md)\n\nRun the tests before you send it.\n"
    assert detect_language(page, ("en", "de", "zh")).code == "en"
    assert detect_language(page, ("de", "zh", "en")).other is None
    assert (
        detect_language(
            "# 参与开发\n\n[English](CONTRIBUTING.md)\n\n先在克隆里装好环境，再运行测试。\n", ("en", "de", "zh")
        ).code
        == "zh"
    )
