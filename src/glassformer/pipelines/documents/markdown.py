"""Markdown: paragraphs, headings, list items and table cells are translated; code, targets and definitions stay."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from glassformer.pipelines.documents import html
from glassformer.pipelines.documents.markdown_inline import parser, units
from glassformer.pipelines.documents.passage import Asking, Passage, Tally, put_in, together
from glassformer.pipelines.documents.passage import translating as passage_translating
from glassformer.pipelines.documents.units import Unit, inside, marks

LINE = re.compile(r"\r\n|\r|\n")
# Lines that other readers of Markdown than CommonMark take for a word to them: containers, admonitions, templates.
DIRECTIVES = (":::", "!!!", "???", "{%", "{{%", "{{<", "=== ", "[TOC]", "[[toc]]")
BOXES = ("[ ] ", "[x] ", "[X] ")  # of a list of tasks


@dataclass
class Line:
    start: int
    text: str


@dataclass
class Placed:
    """Text that a block has in a document: its lines without what a quote or a list puts before them."""

    text: str
    starts: list[int]  # of each line in `text`
    places: list[int]  # of each line in the document

    def place(self, at: int) -> int:
        line = bisect_right(self.starts, at) - 1
        return self.places[line] + at - self.starts[line]

    @classmethod
    def of(cls, lines: list[Line]) -> Placed:
        starts, at = [], 0
        for line in lines:
            starts.append(at)
            at += len(line.text) + 1
        return cls("\n".join(line.text for line in lines), starts, [line.start for line in lines])


class Document:
    """A Markdown text with its blocks."""

    def __init__(self, text: str) -> None:
        self.text, self.env = text, dict[str, Any]()
        self.tokens = parser().parse(text, self.env)
        ends = [*LINE.finditer(text)]
        starts = [0, *(end.end() for end in ends)]
        stops = [*(end.start() for end in ends), len(text)]
        self.lines = [Line(start, text[start:stop]) for start, stop in zip(starts, stops, strict=True)]
        self.parse = partial(units, env=self.env)

    def line_at(self, place: int) -> int:
        return bisect_right(self.lines, place, key=lambda line: line.start) - 1

    def blocks(self) -> list[list[Passage]]:
        """The passages of every block that has text, in order."""
        found: list[list[Passage]] = []
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
                found.append(list(self.passages([cell], escaped_pipes)) if cell else [])
            elif kind == "heading_open":
                found.append(self.heading(token, underlined=before is not None and before.markup in ("=", "-")))
            else:
                found.append(list(self.paragraph(token)))
        return found

    def located(self, token: Token) -> list[Line]:
        """The lines of a block's text where they stand in the document; none where they cannot be told."""
        assert token.map is not None
        found = []
        for line, said in zip(self.lines[token.map[0] :], token.content.split("\n"), strict=False):
            said, shown = said.strip(), line.text.rstrip()
            if not shown.endswith(said):
                shown = shown.rstrip("#").rstrip()  # a heading may be closed as it was opened
            if not shown.endswith(said):
                return []
            stop = len(line.text) if shown == line.text.rstrip() else len(shown)
            begin = len(shown) - len(said)
            found.append(Line(line.start + begin, line.text[begin:stop]))
        if found:
            found[-1].text = found[-1].text.rstrip()
        return found

    def paragraph(self, token: Token) -> Iterator[Passage]:
        lines = self.located(token)
        if lines and lines[0].text.startswith(BOXES):
            lines[0] = Line(lines[0].start + 4, lines[0].text[4:])
        run: list[Line] = []
        for line in [*lines, None]:
            if line is not None and not directive(line.text):
                run.append(line)
                continue
            if run:
                run[-1] = Line(run[-1].start, run[-1].text.rstrip())
                yield from self.passages(run, one_paragraph)
            run = []

    def heading(self, token: Token, underlined: bool) -> list[Passage]:
        lines = self.located(token)
        if lines and lines[-1].text.endswith("}") and " {" in lines[-1].text:  # {#name}
            lines[-1].text = lines[-1].text.rpartition(" {")[0].rstrip()
        return list(self.passages(lines, one_paragraph if underlined else heading_text))

    def cell(self, token: Token, cursor: int) -> Line | None:
        assert token.map is not None
        line = self.lines[token.map[0]]
        said = token.content.replace("|", "\\|")
        at = line.text.find(said, cursor)
        return Line(line.start + at, said) if said and at >= 0 else None

    def html_block(self, token: Token) -> list[Passage]:
        assert token.map is not None
        lines = []
        for line, said in zip(self.lines[token.map[0] : token.map[1]], token.content.split("\n"), strict=False):
            if not line.text.endswith(said.lstrip()):
                return []
            begin = len(line.text) - len(said.lstrip())
            lines.append(Line(line.start + begin, line.text[begin:]))
        placed = Placed.of(lines)
        return [
            replace(one, start=placed.place(one.start), end=placed.place(one.end - 1) + 1, fit=one_html_line)
            for one in html.passages(placed.text)
        ]

    def passages(self, lines: list[Line], fit: Callable[[str], str | None]) -> Iterator[Passage]:
        """One for each stretch between hard breaks; markup that reaches over a line end keeps it."""
        if not lines:
            return
        placed = Placed.of(lines)
        found, at = self.parse(placed.text), 0
        run: list[Unit] = []
        begun = at
        for unit, around in inside([*found, Unit("", "=break")]):
            end = at + len(unit.source)
            if unit.mark == "=break" and not around:
                yield from self.passage(placed, run, begun, at, fit)
                run, begun = [], end
            else:
                slice_ = self.text[placed.place(at) : placed.place(end - 1) + 1] if unit.source else ""
                run.append(replace(unit, source=slice_) if unit.mark else unit)
            at = end

    def passage(
        self, placed: Placed, run: list[Unit], start: int, end: int, fit: Callable[[str], str | None]
    ) -> Iterator[Passage]:
        trim = placed.text[start:end]
        start, end = start + len(trim) - len(trim.lstrip()), end - len(trim) + len(trim.rstrip())
        if run and not run[0].mark:
            run[0] = Unit(run[0].source.lstrip(), "", run[0].text.lstrip())
        if run and not run[-1].mark:
            run[-1] = Unit(run[-1].source.rstrip(), "", run[-1].text.rstrip())
        one = Passage(
            placed.place(start) if start < end else 0,
            placed.place(end - 1) + 1 if start < end else 0,
            run,
            self.parse,
            fit,
            whole="=break" not in marks(run),
        )
        if one.read:
            yield one


def directive(line: str) -> bool:
    note = line.startswith("[!") and line.rstrip().endswith("]") and line.rstrip()[2:-1].isalpha()  # [!NOTE]
    return note or line.startswith(DIRECTIVES)


def one_paragraph(text: str) -> str | None:
    """As a paragraph of one line: a beginning that would make it a list, a heading or code is escaped."""
    for tried in (text, "\\" + text, re.sub(r"^(\d+)([.)])", r"\1\\\2", text)):
        lines = [line.lstrip("> \t") for line in LINE.split(tried)]
        if block_kinds("\n".join(lines)) == ["paragraph_open", "inline", "paragraph_close"]:
            return tried
    return None


def heading_text(text: str) -> str | None:
    """As the text of a heading: signs at its end are not its closing ones."""
    for tried in (text, re.sub(r"(#+)$", r"\\\1", text)):
        found = parser().parse(f"# {tried}", {})
        if [token.type for token in found] == ["heading_open", "inline", "heading_close"] and found[1].content == tried:
            return tried
    return None


def escaped_pipes(text: str) -> str | None:
    return re.sub(r"(?<!\\)((?:\\\\)*)\|", r"\1\\|", text)


def one_html_line(text: str) -> str | None:
    return text if text.strip() and "\n\n" not in text else None


def block_kinds(text: str) -> list[str]:
    return [token.type for token in parser().parse(text, {})]


@cache
def plain_reader() -> MarkdownIt:
    """Who knows nothing of tables or maths must find the same code and links too."""
    return MarkdownIt("commonmark").use(footnote_plugin, inline=False, move_to_end=False)


def structure(document: Document) -> list[tuple[int, object]]:
    """Everything of a document that its translation must share, block by block, with the line that it begins at."""
    told: list[tuple[int, object]] = []
    line = 0
    for token in document.tokens:
        line = token.map[0] if token.map else line
        if token.type == "inline":
            told.append((line, Counter(marks(document.parse(token.content)))))
        elif token.type == "html_block":
            tags = [token.content[one.start : one.end] for one in html.events(token.content) if one.name]
            told.append((line, Counter(tags)))
        else:
            content = token.content if token.nesting == 0 else ""
            attrs = sorted(token.attrs.items())
            told.append((line, (token.type, token.tag, token.markup, token.info, token.hidden, content, attrs)))
    for token in plain_reader().parse(document.text):
        line = token.map[0] if token.map else line
        told.append((line, (token.type, token.markup, token.content if token.type in ("fence", "code_block") else "")))
        told += [(line, Counter(targets(token.children or [])))]
    return told


def targets(tokens: list[Token]) -> Iterator[tuple[str, object]]:
    """Code and links within a paragraph."""
    for token in tokens:
        if token.type == "code_inline":
            yield "code", token.content
        yield from ((name, token.attrs[name]) for name in ("href", "src") if name in token.attrs)
        yield from targets(token.children or [])


def translating(text: str, tally: Tally) -> Asking[str]:
    """The document translated. It is parsed again: where it would be another document than the source, the blocks
    nearest to the first difference are given back their own words, until it is none."""
    document = Document(text)
    blocks = document.blocks()
    texts = yield from together([together([passage_translating(one, tally) for one in block]) for block in blocks])
    wanted, blamed = structure(document), 1
    while True:
        made = put_in(text, [one for block in blocks for one in block], [one for block in texts for one in block])
        found = structure(Document(made))
        pairs = enumerate(zip(wanted, found, strict=False))
        differing = next((i for i, (one, other) in pairs if one[1] != other[1]), min(len(wanted), len(found)))
        if differing == len(wanted) == len(found):
            return made
        line = wanted[min(differing, len(wanted) - 1)][0]
        changed = [i for i, block in enumerate(texts) if any(one is not None for one in block)]
        blamed *= 2
        for i in sorted(changed, key=lambda i: abs(document.line_at(blocks[i][0].start) - line))[:blamed]:
            tally.left += sum(one is not None for one in texts[i])
            texts[i] = [None] * len(texts[i])
