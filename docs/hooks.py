"""What the handbook adds to MkDocs: source by name, choices, equations as MathML, figures, the other language."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import choices
import fences
import jieba
import named_source
import reference
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FIGURES = Path(__file__).parent / "figures"
LANGUAGES = {"en": "English", "zh": "中文"}
jieba.setLogLevel("WARNING")  # the search plugin cuts Chinese with it, and it talks while it loads
EQUATION = re.compile(r'<(span|div) class="arithmatex">(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>', re.S)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Figures are shared by the languages, so they lie beside their folders; the site gets this language's."""
    for figure in sorted(FIGURES.glob(f"*.{language(config)}.svg")):
        files.append(File.generated(config, f"figures/{figure.name}", abs_src_path=str(figure)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    def rewrite(fence: fences.Fence) -> str | None:
        if fence.kind == "source":
            return shown(fence.body.strip(), f"{page.file.src_uri}, line {fence.line}")
        if fence.kind == "api":
            return described(fence, page)
        if fence.kind == "choices":
            return choices.table(fence.body.strip(), language(config))
        if fence.kind == "output":
            return f"```{{ .text .output }}\n{fence.body}```"
        return f"```{fence.kind}\n{fence.body}```" if fence.words else None

    return fences.replace(markdown, rewrite).replace("](../figures/", "](figures/")


def on_page_content(html_text: str, page: Page, **_: Any) -> str:
    return EQUATION.sub(lambda found: mathml(html.unescape(found[2]), found[1] == "div", page), html_text)


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, **_: Any) -> dict[str, Any]:
    """The language switch leads to the same page, not to the start."""
    config.extra["alternate"] = [
        {"name": name, "lang": code, "link": f"../{code}/{page.url or 'index.html'}"}
        for code, name in LANGUAGES.items()
    ]
    return context


def language(config: MkDocsConfig) -> str:
    return Path(config.docs_dir).name


def shown(name: str, place: str) -> str:
    try:
        source = named_source.find(name)
    except LookupError as error:
        raise PluginError(f"{place}: {error}") from None
    return f'```python title="{source.path}" linenums="{source.line}"\n{source.text}\n```'


def described(fence: fences.Fence, page: Page) -> str:
    """The signature and the docstring of each name in the block."""
    try:
        return "\n".join(reference.markdown(reference.entry(name)) for name in fence.body.split())
    except LookupError as error:
        raise PluginError(f"{page.file.src_uri}, line {fence.line}: {error}") from None


def mathml(latex: str, display: bool, page: Page) -> str:
    written = convert(latex.strip(), display="block" if display else "inline")
    if "\\" in html.unescape(re.sub(r"<annotation.*?</annotation>", "", written)):
        raise PluginError(f"{page.file.src_uri}: latex2mathml does not know all of: {latex}")
    return written
