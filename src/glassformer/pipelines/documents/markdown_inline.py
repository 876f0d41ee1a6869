"""Markdown within a paragraph: words, and the markup between them with its place in the source.

markdown-it lists the tokens, but not their places. So each of its rules is wrapped here, to record where it began and
where it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from markdown_it import MarkdownIt, helpers
from markdown_it.helpers import parseLinkLabel
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from glassformer.pipelines.documents.html import OPAQUE, tag_name
from glassformer.pipelines.documents.segments import Inline, join_lines

DELIMITERS = ("emphasis", "strikethrough")  # rules that make one token of each sign that may open or close
Rule = Callable[[StateInline, bool], bool]


class Mark(NamedTuple):
    start: int
    end: int
    mark: str
    sent: str | None = None
    output: str | None = None


@cache
def parser() -> MarkdownIt:
    """CommonMark with tables and strike-through as on GitHub, front matter, footnotes, definition lists and maths."""
    from mdit_py_plugins.amsmath import amsmath_plugin
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.footnote import footnote_plugin
    from mdit_py_plugins.front_matter import front_matter_plugin

    made = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    made.use(front_matter_plugin).use(footnote_plugin, inline=False, move_to_end=False).use(deflist_plugin)
    made.use(dollarmath_plugin, allow_space=False, allow_digits=False, allow_labels=False).use(amsmath_plugin)
    made.inline.ruler2.disable("fragments_join")
    vars(made)["helpers"] = SimpleNamespace(**vars(helpers) | {"parseLinkLabel": find_label_end})
    ruler = made.inline.ruler
    for name, rule in zip(ruler.get_active_rules(), ruler.getRules(""), strict=True):
        ruler.at(name, with_positions(name, rule))
    return made


def with_positions(name: str, rule: Rule) -> Rule:
    """The rule, which also records the place in the source of each of its tokens."""

    def run(state: StateInline, silent: bool) -> bool:
        start, first, pending = state.pos, len(state.tokens), bool(state.pending)
        if not rule(state, silent):
            return False
        made = state.tokens[first + pending :]
        if silent or len(state.tokens) == first or not made:
            return True
        label = find_label_end(state, start + (name == "image"), name == "link") if name in ("link", "image") else -1
        if name in DELIMITERS:
            for token in made:
                token.meta["at"] = (start, start + len(token.content))
                start += len(token.content)
        elif name == "link":
            made[0].meta["at"], made[-1].meta["at"] = (start, start + 1), (label, state.pos)
        else:
            made[0].meta["at"], made[0].meta["label"] = (start, state.pos), label
            made[0].meta["rule"] = name
        return True

    return run


def find_label_end(state: StateInline, start: int, disableNested: bool = False) -> int:
    """As markdown-it finds it, but at once where no bracket closes: it would read the rest from each that opens."""
    closes = state.src.find("]", start, state.posMax) >= 0
    return parseLinkLabel(state, start, disableNested) if closes else -1


def inline_environment(env: dict[str, Any]) -> dict[str, Any]:
    """What the document defines, for parsing one of its paragraphs; the numbers of footnotes do not matter."""
    notes = env.get("footnotes", {}).get("refs", {})
    return {"references": env.get("references", {}), "footnotes": {"refs": dict.fromkeys(notes, -1), "list": {}}}


def parse_inlines(text: str, env: dict[str, Any]) -> list[Inline]:
    """The inlines of a paragraph; their sources together are the text."""
    tokens = parser().inline.parse(text, parser(), inline_environment(env), [])
    found, at = [], 0
    for one in merge_opaque(sorted(find_marks(tokens, text)), text):
        words, source = text[at : one.start], text[one.start : one.end]
        found.append(Inline(words, "", join_lines(words)))
        found.append(Inline(source, one.mark, join_lines(source) if one.sent is None else one.sent, one.output))
        at = one.end
    found.append(Inline(text[at:], "", join_lines(text[at:])))
    return [one for one in found if one.source or one.mark]


def find_marks(tokens: list[Token], text: str) -> Iterator[Mark]:
    links: list[tuple[int, str]] = []  # where the text of each starts, and its target
    for token in tokens:
        if "at" not in token.meta:
            continue
        start, end = token.meta["at"]
        kind = token.type.removesuffix("_open").removesuffix("_close")
        if token.meta.get("rule") == "autolink":
            yield Mark(start, end, f"=link {token.attrs['href']}")
        elif kind in ("em", "strong", "s"):
            if kind == "strong":  # the sign before, or after, is the other half
                start, end = (start - 1, end) if token.nesting > 0 else (start, end + 1)
            yield Mark(start, end, f"{'+' if token.nesting > 0 else '-'}{kind}")
        elif token.type == "link_open":
            links.append((end, str(token.attrs["href"])))
            yield Mark(start, end, f"+link {links[-1][1]}")
        elif token.type == "link_close":
            label_start, href = links.pop()
            yield closing_mark(text, label_start, start, end, f"link {href}", href)
        elif token.type == "image":
            label, href = token.meta["label"], str(token.attrs["src"])
            yield Mark(start, start + 2, f"+image {href}")
            for one in find_marks(token.children or [], text[start + 2 : label]):
                yield one._replace(start=one.start + start + 2, end=one.end + start + 2)
            yield closing_mark(text, start + 2, label, end, f"image {href}", href)
        elif token.type in ("code_inline", "html_inline"):
            yield Mark(start, end, f"={token.type} {collapse_spaces(token.content)}")
        elif token.type == "hardbreak":
            yield Mark(start, end, "=break")
        elif token.type not in ("text", "text_special", "softbreak"):
            label = token.meta.get("label") if token.type == "footnote_ref" else token.content
            yield Mark(start, end, f"={token.type} {collapse_spaces(str(label or text[start:end]))}")


def collapse_spaces(text: str) -> str:
    """Any white space as one space, including a line end within markup and the sign of a quote after it."""
    return " ".join(text.split())


def closing_mark(text: str, label_start: int, start: int, end: int, mark: str, href: str) -> Mark:
    """`](target)`. A reference is sent as its target, because its label must not be translated.

    A reference whose text is its label, `[text]`, keeps the label when the text is translated: `[Text][text]`.
    """
    source = text[start:end]
    if source.startswith("]("):
        return Mark(start, end, f"-{mark}", join_lines(source))
    target = f"](<{href}>)" if set(href) & set("() <>") else f"]({href})"
    return Mark(start, end, f"-{mark}", target, f"][{text[label_start:start]}]" if source in ("]", "][]") else None)


def merge_opaque(found: list[Mark], text: str) -> Iterator[Mark]:
    """HTML elements whose text is not translated, such as <code>, as one mark."""
    last, end_tags = list(range(len(found))), dict[str | None, int]()
    for i in reversed(last[:]):
        tag = text[found[i].start : found[i].end]
        if (name := tag_name(tag, "start")) in OPAQUE:
            last[i] = end_tags.get(name, i)
        end_tags[tag_name(tag, "end")] = i
    i = 0
    while i < len(found):
        one, end = found[i], found[last[i]].end
        if last[i] > i:
            one = Mark(one.start, end, f"=html_inline {collapse_spaces(text[one.start : end])}")
        yield one
        i = last[i] + 1
