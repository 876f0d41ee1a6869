"""Markdown within a paragraph: words, and the markup between them with its place in the source.

markdown-it tells which tokens there are, but not where; each of its rules is asked here where it stood, and where it
went on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from glassformer.pipelines.documents.html import OPAQUE, element
from glassformer.pipelines.documents.units import Unit, one_line

DELIMITERS = ("emphasis", "strikethrough")  # rules that give one token for each sign that may open or close
Rule = Callable[[StateInline, bool], bool]


class Mark(NamedTuple):
    start: int
    end: int
    mark: str
    carried: str | None = None
    kept: str | None = None


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
    ruler = made.inline.ruler
    for name, rule in zip(ruler.get_active_rules(), ruler.getRules(""), strict=True):
        ruler.at(name, placed(name, rule))
    return made


def placed(name: str, rule: Rule) -> Rule:
    """The rule, its tokens marked with the stretch of the source that each stands for."""

    def run(state: StateInline, silent: bool) -> bool:
        start, first, pending = state.pos, len(state.tokens), bool(state.pending)
        label = -1
        if name in ("link", "image") and not silent and state.src[start] in "[!":
            label = label_end(state, start, name)
        if not rule(state, silent):
            return False
        made = state.tokens[first + pending :]
        if silent or len(state.tokens) == first or not made:
            return True
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


def label_end(state: StateInline, start: int, name: str) -> int:
    at = start if name == "link" else start + 1
    if state.src[at : at + 1] != "[":
        return -1
    return int(state.md.helpers.parseLinkLabel(state, at, name == "link"))


def environment(env: dict[str, Any]) -> dict[str, Any]:
    """What a document defines, for the reading of one of its passages, which may count footnotes as it likes."""
    notes = env.get("footnotes", {}).get("refs", {})
    return {"references": env.get("references", {}), "footnotes": {"refs": dict.fromkeys(notes, -1), "list": {}}}


def units(text: str, env: dict[str, Any]) -> list[Unit]:
    """The units of inline Markdown, joined again the text itself."""
    tokens = parser().inline.parse(text, parser(), environment(env), [])
    found, at = [], 0
    for one in merged(sorted(placed_marks(tokens, text)), text):
        if one.start > at:
            found.append(Unit(text[at : one.start], "", one_line(text[at : one.start])))
        source = text[one.start : one.end]
        found.append(Unit(source, one.mark, one_line(source) if one.carried is None else one.carried, one.kept))
        at = one.end
    if at < len(text):
        found.append(Unit(text[at:], "", one_line(text[at:])))
    return found


def placed_marks(tokens: list[Token], text: str) -> Iterator[Mark]:
    links: list[tuple[int, str]] = []  # where the text of each begins, and its target
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
            begun, href = links.pop()
            yield closing(text, begun, start, end, f"link {href}", href)
        elif token.type == "image":
            label, href = token.meta["label"], str(token.attrs["src"])
            yield Mark(start, start + 2, f"+image {href}")
            for one in placed_marks(token.children or [], text[start + 2 : label]):
                yield one._replace(start=one.start + start + 2, end=one.end + start + 2)
            yield closing(text, start + 2, label, end, f"image {href}", href)
        elif token.type in ("code_inline", "html_inline"):
            yield Mark(start, end, f"={token.type} {squeezed(token.content)}")
        elif token.type == "hardbreak":
            yield Mark(start, end, "=break")
        elif token.type not in ("text", "text_special", "softbreak"):
            label = token.meta.get("label") if token.type == "footnote_ref" else token.content
            yield Mark(start, end, f"={token.type} {squeezed(str(label or text[start:end]))}")


def squeezed(text: str) -> str:
    """White space of any kind as one space: a line end within markup is one, and what a quote puts after it."""
    return " ".join(text.split())


def closing(text: str, begun: int, start: int, end: int, mark: str, href: str) -> Mark:
    """`](target)`. A reference is carried as what it refers to, since its label is no word to translate.

    One whose text is its label, `[text]`, keeps the label when the text is translated: `[Text][text]`.
    """
    source = text[start:end]
    if source.startswith("]("):
        return Mark(start, end, f"-{mark}", one_line(source))
    target = f"](<{href}>)" if set(href) & set("() <>") else f"]({href})"
    return Mark(start, end, f"-{mark}", target, f"][{text[begun:start]}]" if source in ("]", "][]") else None)


def merged(found: list[Mark], text: str) -> Iterator[Mark]:
    """HTML elements whose text is no text, such as <code>, as one mark."""
    i = 0
    while i < len(found):
        one = found[i]
        name = element(text[one.start : one.end], "start") if one.mark.startswith("=html_inline") else None
        last = i
        if name in OPAQUE:
            ends = (k for k in range(i + 1, len(found)) if element(text[found[k].start : found[k].end], "end") == name)
            last = next(ends, i)
        if last > i:
            end = found[last].end
            yield Mark(one.start, end, f"=html_inline {squeezed(text[one.start : end])}")
        else:
            yield one
        i = last + 1
