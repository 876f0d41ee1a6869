"""What the handbook adds to MkDocs: titles of sources, answers, equations as MathML, figures, the other language, and
the page of a model to try."""

from __future__ import annotations

import html
import re
from pathlib import Path
from textwrap import indent
from typing import Any

import fences
import jieba
import named_source
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FIGURES = Path(__file__).parent / "figures"
LANGUAGES = {"en": "English", "zh": "中文"}
TRIED = "18-the-page.md"  # the chapter that shows it, at the end of its first section
PAGE = "page/index.html"  # beside the languages; docs/make_page.py writes it
TO_TRY = {
    "en": (
        "The demo, in this very place",
        "The demo runs here once these files come from a file server: "
        "<code>python -m http.server --directory site</code>",
    ),
    "zh": (
        "就在这里试试演示模型",
        "用文件服务器打开这些文件，演示模型就在这里运行：<code>python -m http.server --directory site</code>",
    ),
}
# From a disk alone a browser loads no modules, so there the words say what to do.
FRAME = """<div class="try-it" data-page="../{page}#lang={language}" data-title="{title}"><p hidden>{words}</p></div>
<script>
for (const place of document.querySelectorAll(".try-it")) {{
  if (location.protocol === "file:") place.firstElementChild.hidden = false;
  else {{
    const frame = document.createElement("iframe");
    frame.src = place.dataset.page;
    frame.title = place.dataset.title;
    place.append(frame);
  }}
}}
</script>"""
jieba.setLogLevel("WARNING")  # the search plugin cuts Chinese with it, and it talks while it loads
EQUATION = re.compile(r'<(span|div) class="arithmatex">(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>', re.S)
# A code host wants a space before an equation; behind a sign as wide as this one it is too much.
FULL_WIDTH = re.compile(r"([，。：；、？！（“]) \$(?!\$)")
# A line may not begin with the sign that follows an equation.
FOLLOWED = re.compile(r"(<math(?![^>]*block)[^>]*>(?:(?!</math>).)*</math>)([，。：；、？！）”,.:;?!)]+)", re.S)
FUNCTION = re.compile(r"(<mi>(?:ln|log|exp|sin|cos|tanh|erf)</mi>)(?=<m(?!o>|space))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Figures are shared by the languages, so they lie beside their folders; the site gets this language's."""
    for figure in sorted(FIGURES.glob(f"*.{language(config)}.svg")):
        files.append(File.generated(config, f"figures/{figure.name}", abs_src_path=str(figure)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """A page as a code host shows it, with what a site does better: titles, line numbers, coloured answers."""

    def rewrite(fence: fences.Fence) -> str | None:
        if fence.kind == "output":
            return f"```{{ .text .output }}\n{fence.body}```"
        return f"```{fence.kind}\n{fence.body}```" if fence.words else None

    def titled(found: re.Match[str]) -> str:
        if found["kind"] != "source":
            return found[0]
        return shown(found["name"], f"{page.file.src_uri}, line {markdown.count(chr(10), 0, found.start()) + 1}")

    markdown = fences.replace(markdown, rewrite)
    markdown = fences.MARKED.sub(titled, markdown)
    markdown = fences.FOLDED.sub(
        lambda found: f'??? success "{found["title"]}"\n{indent(found["body"], "    ")}', markdown
    )
    markdown = FULL_WIDTH.sub(r"\1$", markdown)
    if page.file.src_uri == TRIED and (Path(config.site_dir).parent / PAGE).is_file():
        why, *rest = re.split(r"(?<=\n)(?=## )", markdown)[1:]
        markdown = "".join((markdown[: markdown.index(why)], why, to_try(language(config)), "\n\n", *rest))
    return re.sub(r"\]\((?:\.\./)+figures/", lambda found: found[0].replace("../", "", 1), markdown)


def on_page_content(html_text: str, page: Page, **_: Any) -> str:
    drawn = EQUATION.sub(lambda found: mathml(html.unescape(found[2]), found[1] == "div", page), html_text)
    return FOLLOWED.sub(r'<span class="unbroken">\1\2</span>', drawn)


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, **_: Any) -> dict[str, Any]:
    """The language switch leads to the same page, not to the start."""
    config.extra["alternate"] = [
        {"name": name, "lang": code, "link": f"../{code}/{page.url or 'index.html'}"}
        for code, name in LANGUAGES.items()
    ]
    return context


def language(config: MkDocsConfig) -> str:
    return Path(config.docs_dir).name


def to_try(language: str) -> str:
    """The page of the demo, in place."""
    title, words = TO_TRY[language]
    return FRAME.format(page=PAGE, language=language, title=title, words=words)


def shown(name: str, place: str) -> str:
    try:
        source = named_source.find(name)
    except LookupError as error:
        raise PluginError(f"{place}: {error}") from None
    return f'```python title="{source.path}" linenums="{source.line}"\n{source.text}\n```'


def mathml(latex: str, display: bool, page: Page) -> str:
    written = convert(latex.strip(), display="block" if display else "inline")
    if "\\" in html.unescape(re.sub(r"<annotation.*?</annotation>", "", written)):
        raise PluginError(f"{page.file.src_uri}: latex2mathml does not know all of: {latex}")
    return FUNCTION.sub(r'\1<mspace width="0.17em"/>', written)
