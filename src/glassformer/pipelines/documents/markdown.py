"""Markdown: paragraphs, headings, list items and table cells are translated; code, targets and definitions stay."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from glassformer.pipelines.documents import html
from glassformer.pipelines.documents.markdown_inline import parse_inlines, parser
from glassformer.pipelines.documents.segments import (
    NEWLINE,
    DocumentStats,
    Inline,
    Segment,
    Task,
    gather,
    line_spans,
    marks,
    replace_spans,
    translate_segment,
    with_open_marks,
)

# Lines with a meaning in dialects of Markdown: containers, admonitions, templates.
DIRECTIVES = (":::", "!!!", "???", "{%", "{{%", "{{<", "=== ", "[TOC]", "[[toc]]")
CHECKBOXES = ("[ ] ", "[x] ", "[X] ")


@dataclass
class Line:
    start: int
    text: str


@dataclass
class BlockText:
    """The text of a block: its lines, without the signs of a quote or a list before them."""

    text: str
    places: list[int]  # of each letter in the document

    @classmethod
    def of(cls, lines: list[Line]) -> BlockText:
        places = [line.start + i for line in lines for i in range(len(line.text) + 1)]
        return cls("\n".join(line.text for line in lines), places)


class MarkdownDocument:
    """A Markdown text with its blocks."""

    def __init__(self, text: str) -> None:
        self.text, self.env = text, dict[str, Any]()
        self.tokens = parser().parse(text, self.env)
        self.lines = [Line(start, text[start:stop]) for start, stop in line_spans(text)]
        self.parse = partial(parse_inlines, env=self.env)

    def line_at(self, place: int) -> int:
        return bisect_right(self.lines, place, key=lambda line: line.start) - 1

    def blocks(self) -> list[list[Segment]]:
        """The segments of every block that has text, in order."""
        found: list[list[Segment]] = []
        cursor, row = 0, -1
        for before, token in zip([None, *self.tokens], self.tokens, strict=False):
            kind = "" if before is None else before.type
            if token.type == "html_block":
                found.append(self.html_block(token))
            elif token.type != "inline":
                continue
            elif kind in ("th_open", "td_open"):
                assert token.map is not None
                cursor, row = (cursor, row) if row == token.map[0] else (0, token.map[0])
                cell = self.cell(token, cursor)
                cursor = cell.start + len(cell.text) - self.lines[row].start if cell else cursor
                found.append(list(self.segments([cell], escape_pipes)) if cell else [])
            elif kind == "heading_open":
                found.append(self.heading(token, underlined=before is not None and before.markup in ("=", "-")))
            else:
                found.append(list(self.paragraph(token)))
        return found

    def locate(self, token: Token) -> list[Line]:
        """The lines of a block's text at their places in the document; none if they cannot be found."""
        assert token.map is not None
        found = []
        for line, content in zip(self.lines[token.map[0] :], token.content.split("\n"), strict=False):
            words, source = content.strip(), line.text.rstrip()
            if not source.endswith(words):
                source = source.rstrip("#").rstrip()  # a heading may end with the signs that it begins with
            if not source.endswith(words):
                return []
            stop = len(line.text) if source == line.text.rstrip() else len(source)
            begin = len(source) - len(words)
            found.append(Line(line.start + begin, line.text[begin:stop]))
        if found:
            found[-1].text = found[-1].text.rstrip()
        return found

    def paragraph(self, token: Token) -> Iterator[Segment]:
        lines = self.locate(token)
        if lines and lines[0].text.startswith(CHECKBOXES):
            lines[0] = Line(lines[0].start + 4, lines[0].text[4:])
        run: list[Line] = []
        for line in [*lines, None]:
            if line is not None and not is_directive(line.text):
                run.append(line)
                continue
            if run:
                run[-1] = Line(run[-1].start, run[-1].text.rstrip())
                yield from self.segments(run, fit_paragraph)
            run = []

    def heading(self, token: Token, underlined: bool) -> list[Segment]:
        lines = self.locate(token)
        if lines and lines[-1].text.endswith("}") and " {" in lines[-1].text:  # {#name}
            lines[-1].text = lines[-1].text.rpartition(" {")[0].rstrip()
        return list(self.segments(lines, fit_paragraph if underlined else fit_heading))

    def cell(self, token: Token, cursor: int) -> Line | None:
        assert token.map is not None
        line = self.lines[token.map[0]]
        words = token.content.replace("|", "\\|")
        at = line.text.find(words, cursor)
        return Line(line.start + at, words) if words and at >= 0 else None

    def html_block(self, token: Token) -> list[Segment]:
        assert token.map is not None
        lines = []
        for line, content in zip(self.lines[token.map[0] : token.map[1]], token.content.split("\n"), strict=False):
            if not line.text.endswith(content.lstrip()):
                return []
            begin = len(line.text) - len(content.lstrip())
            lines.append(Line(line.start + begin, line.text[begin:]))
        block = BlockText.of(lines)
        return [
            replace(one, start=block.places[one.start], end=block.places[one.end - 1] + 1, fit=fit_html_block)
            for one in html.segments(block.text)
        ]

    def segments(self, lines: list[Line], fit: Callable[[str], str | None]) -> Iterator[Segment]:
        """One for each stretch between hard breaks; markup that reaches over a line end keeps it."""
        if not lines:
            return
        block = BlockText.of(lines)
        start = at = 0
        inlines: list[Inline] = []
        for inline, opened in with_open_marks([*self.parse(block.text), Inline("", "=break")]):
            end = at + len(inline.source)
            if inline.mark == "=break" and not opened:
                segment = self.segment(block, inlines, start, at, fit)
                if segment.has_words:
                    yield segment
                inlines, start = [], end
            elif inline.mark:
                source = self.text[block.places[at] : block.places[end - 1] + 1] if inline.source else ""
                inlines.append(replace(inline, source=source))
            else:
                inlines.append(inline)
            at = end

    def segment(
        self, block: BlockText, inlines: list[Inline], start: int, end: int, fit: Callable[[str], str | None]
    ) -> Segment:
        text = block.text[start:end]
        start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
        if inlines and not inlines[0].mark:
            inlines[0] = Inline(inlines[0].source.lstrip(), "", inlines[0].text.lstrip())
        if inlines and not inlines[-1].mark:
            inlines[-1] = Inline(inlines[-1].source.rstrip(), "", inlines[-1].text.rstrip())
        place = (block.places[start], block.places[end - 1] + 1) if start < end else (0, 0)
        return Segment(*place, inlines, self.parse, fit, is_text="=break" not in marks(inlines))


def is_directive(line: str) -> bool:
    note = line.startswith("[!") and line.rstrip().endswith("]") and line.rstrip()[2:-1].isalpha()  # [!NOTE]
    return note or line.startswith(DIRECTIVES)


def fit_paragraph(text: str) -> str | None:
    """As a paragraph: a beginning that would make it a list, a heading or code is escaped."""
    for tried in (text, "\\" + text, re.sub(r"^(\d+)([.)])", r"\1\\\2", text)):
        lines = [line.lstrip("> \t") for line in NEWLINE.split(tried)]
        blocks = parser().parse("\n".join(lines), {})
        if [token.type for token in blocks] == ["paragraph_open", "inline", "paragraph_close"]:
            return tried
    return None


def fit_heading(text: str) -> str | None:
    """As the text of a heading: signs at its end are escaped, so that they do not close it."""
    for tried in (text, re.sub(r"(#+)$", r"\\\1", text)):
        found = parser().parse(f"# {tried}", {})
        if [token.type for token in found] == ["heading_open", "inline", "heading_close"] and found[1].content == tried:
            return tried
    return None


def escape_pipes(text: str) -> str | None:
    return re.sub(r"(?<!\\)((?:\\\\)*)\|", r"\1\\|", text)


def fit_html_block(text: str) -> str | None:
    return text if text.strip() and "\n\n" not in text else None


@cache
def commonmark_parser() -> MarkdownIt:
    """A parser without tables and maths, which must find the same code and links."""
    return MarkdownIt("commonmark").use(footnote_plugin, inline=False, move_to_end=False)


def document_structure(document: MarkdownDocument) -> list[tuple[int, object]]:
    """What a translation must share with its document, block by block, with the line at which each starts."""
    found: list[tuple[int, object]] = []
    line = 0
    for token in document.tokens:
        line = token.map[0] if token.map else line
        if token.type == "inline":
            found.append((line, Counter(marks(document.parse(token.content)))))
        elif token.type == "html_block":
            tags = [token.content[one.start : one.end] for one in html.tokenize(token.content) if one.name]
            found.append((line, Counter(tags)))
        else:
            content = token.content if token.nesting == 0 else ""
            attrs = sorted(token.attrs.items())
            found.append((line, (token.type, token.tag, token.markup, token.info, token.hidden, content, attrs)))
    for token in commonmark_parser().parse(document.text):
        line = token.map[0] if token.map else line
        found.append((line, (token.type, token.markup, token.content if token.type in ("fence", "code_block") else "")))
        found += [(line, Counter(code_and_links(token.children or [])))]
    return found


def code_and_links(tokens: list[Token]) -> Iterator[tuple[str, object]]:
    """Those within a paragraph."""
    for token in tokens:
        if token.type == "code_inline":
            yield "code", token.content
        yield from ((name, token.attrs[name]) for name in ("href", "src") if name in token.attrs)
        yield from code_and_links(token.children or [])


def translate(text: str, stats: DocumentStats) -> Task[str]:
    """The document translated, and parsed again. While its structure differs from that of the source, the blocks
    nearest to the first difference get their own words back."""
    document = MarkdownDocument(text)
    blocks = document.blocks()
    translations = yield from gather([gather([translate_segment(one, stats) for one in block]) for block in blocks])
    structure, count = document_structure(document), 1
    spans = [(one.start, one.end) for one in chain(*blocks)]
    while True:
        translation = replace_spans(text, spans, chain(*translations))
        found = document_structure(MarkdownDocument(translation))
        pairs = enumerate(zip(structure, found, strict=False))
        differing = next((i for i, (one, other) in pairs if one[1] != other[1]), min(len(structure), len(found)))
        if differing == len(structure) == len(found):
            return translation
        line = structure[min(differing, len(structure) - 1)][0]
        translated = [i for i, block in enumerate(translations) if any(one is not None for one in block)]
        count *= 2
        for i in sorted(translated, key=lambda i: abs(document.line_at(blocks[i][0].start) - line))[:count]:
            stats.untranslated += sum(one is not None for one in translations[i])
            translations[i] = [None] * len(translations[i])
