"""HTML: the text between tags is translated; tags, attributes, comments, code and scripts stay."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from glassformer.pipelines.documents.segments import (
    REFERENCE,
    DocumentStats,
    Inline,
    Segment,
    SupportsTranslate,
    Task,
    gather,
    join_lines,
    run_task,
    translate_segments,
)

# Elements whose text is not translated; those of the first line occur within sentences.
OPAQUE_INLINE = frozenset(("code", "kbd", "samp", "var", "tt", "math", "svg"))
OPAQUE = OPAQUE_INLINE | {"pre", "script", "style", "textarea", "template", "xmp", "plaintext", "listing", "object"}
INLINE = frozenset(  # elements within a sentence; all others end it
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "ins", "label",
     "mark", "nobr", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "u")
)  # fmt: skip
VOID_INLINE = frozenset(("img", "wbr", "input"))  # within a sentence, and without an end tag
VOID = VOID_INLINE | frozenset(["area", "base", "br", "col", "embed", "hr", "link", "meta", "param", "source", "track"])
SPACES = " \t\r\n\f"
WHITE = re.compile(f"[{SPACES}]+")
# As the HTML standard reads them; `rest` is what none of the others can close.
MARKUP = re.compile(
    REFERENCE.pattern
    + r"""|(?P<comment><!--(?:-?>|.*?--!?>)|</(?![a-z])[^>]*+>)
    |(?P<other><!\[CDATA\[.*?\]\]>|<\?[^>]*+>|<!(?!--|\[CDATA\[)[^>]*+>)
    |(?P<tag><(?P<slash>/?)(?P<name>[a-z][^\s/>]*+)
        (?:[^>=/]++|/(?!>)|=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+|(?=>)))*+(?P<single>/?)>)
    |(?P<rest><[!?/a-z].*)""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
ATTRIBUTE = re.compile(r"""([^\s/>=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]++)))?+""")
RAW = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style", "textarea", "xmp")}
MAX_DEPTH = 100  # nested elements within a sentence
PLACEHOLDER = 0xE100  # private-use characters that stand for opaque elements while a text is translated
STEPS = {"start": 1, "end": -1}  # of the depth


class Token(NamedTuple):
    start: int
    end: int
    kind: str  # text, reference, start, end, single (an element as a whole, within a sentence), comment, other
    name: str = ""
    no_translate: bool = False  # an attribute says so


def tokenize(text: str) -> list[Token]:
    """The tokens of a text; together they are the text."""
    return list(fold_opaque([*scan(text)]))


def scan(text: str) -> Iterator[Token]:
    """The tokens, opaque elements not yet folded. Markup that is never closed takes the rest of the text, as in a
    browser, so nothing is read twice; where no `>` follows, it is no markup."""
    at, pattern = 0, MARKUP
    while found := pattern.search(text, at):
        start, end = found.span()
        if at < start:
            yield Token(at, start, "text")
        at, kind, name = end, found.lastgroup or "reference", ""
        no_translate = False
        if kind == "rest" and ">" not in found[0] and not found[0].startswith("<!--"):
            at, pattern = start, REFERENCE
            continue
        if kind == "tag":
            name, kind = found["name"].lower(), "end" if found["slash"] else "start"
            if kind == "start" and found["single"]:
                kind = "single" if name in INLINE | VOID_INLINE | OPAQUE_INLINE else "other"
            no_translate = kind == "start" and "translate" in found[0].lower() and is_no_translate(found[0])
        yield Token(start, end, "other" if kind == "rest" else kind, name, no_translate)
        if kind == "start" and name in RAW:
            close = RAW[name].search(text, end)
            at = close.start() if close else len(text)
            yield Token(end, at, "text")
    if at < len(text):
        yield Token(at, len(text), "text")


def is_no_translate(tag: str) -> bool:
    values = {name.lower(): a or b or c for name, a, b, c in ATTRIBUTE.findall(tag)}
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()


def fold_opaque(found: list[Token]) -> Iterator[Token]:
    """Each element that stays as it is as one token."""
    i = 0
    while i < len(found):
        one = found[i]
        if one.kind == "start" and one.name not in VOID and (one.name in OPAQUE or one.no_translate):
            depth, last = 0, i
            for last in range(i, len(found)):
                depth += (found[last].name == one.name) * STEPS.get(found[last].kind, 0)
                if depth == 0:
                    break
            kind = "single" if one.name in OPAQUE_INLINE | INLINE else "other"
            yield Token(one.start, found[last].end, kind, one.name)
            i = last + 1
            continue
        if one.kind == "start" and one.name in VOID_INLINE:
            one = one._replace(kind="single")
        yield one
        i += 1


def tag_name(tag: str, kind: str) -> str | None:
    """The element's name if this is a tag of the kind "start" or "end"."""
    found = MARKUP.fullmatch(tag)
    is_kind = found and found.lastgroup == "tag" and not found["single"] and bool(found["slash"]) == (kind == "end")
    return found["name"].lower() if found and is_kind else None


def segments(text: str) -> list[Segment]:
    """One for each stretch of text and inline tags."""
    found: list[Segment] = []
    run: list[Token] = []
    for token in [*tokenize(text), Token(len(text), len(text), "other")]:
        if token.kind in ("text", "reference", "single", "comment") or token.name in INLINE:
            run.append(token)
            continue
        if (segment := segment_of(text, trim(run, text))) is not None:
            found.append(segment)
        run = []
    return found


def trim(run: list[Token], text: str) -> list[Token]:
    """Without white space, pictures, comments and unpaired tags at both edges."""
    for _ in range(2):  # from the left, then from the right
        edge = 0
        for token, unpaired in zip(run, unpaired_tags(run), strict=True):
            blank = token.kind == "text" and not text[token.start : token.end].strip(SPACES)
            single = token.kind == "comment" or (token.kind != "text" and token.name in VOID_INLINE)
            if not (blank or single or (token.kind in STEPS and unpaired)):
                break
            edge += 1
        run = run[edge:][::-1]
    return run


def unpaired_tags(run: list[Token]) -> list[bool]:
    """For each tag whether it has no partner: at no place after it are the tags of its name balanced."""
    depth: Counter[str] = Counter()
    before, last = [], dict[tuple[str, int], int]()
    for i, one in enumerate(run):
        before.append(depth[one.name])
        if one.kind in STEPS:
            depth[one.name] += STEPS[one.kind]
            last[one.name, depth[one.name]] = i
    return [last.get((one.name, was), -1) <= i for i, (one, was) in enumerate(zip(run, before, strict=True))]


def segment_of(text: str, run: list[Token]) -> Segment | None:
    """None if there are no words in it; text that is nested so deeply is not meant to be read."""
    if not run or max(accumulate(STEPS.get(one.kind, 0) for one in run)) > MAX_DEPTH:
        return None
    if run[0].kind == "text":
        run[0] = run[0]._replace(start=run[0].end - len(text[run[0].start : run[0].end].lstrip(SPACES)))
    if run[-1].kind == "text":
        run[-1] = run[-1]._replace(end=run[-1].start + len(text[run[-1].start : run[-1].end].rstrip(SPACES)))
    start, end = run[0].start, run[-1].end
    has_placeholders = any(PLACEHOLDER <= ord(letter) < PLACEHOLDER + len(run) for letter in text[start:end])
    opaque: dict[str, Inline] = {}
    inlines = [*parse_inlines(text, run, opaque)]

    def parse(translation: str) -> list[Inline]:
        found = parse_inlines(translation, tokenize(translation), {})
        escaped = [one if one.mark else Inline(escape(one.text)) for one in found]
        return list(restore_opaque(escaped, opaque))

    segment = Segment(start, end, inlines, parse, is_text=not has_placeholders)
    return segment if segment.has_words else None


def parse_inlines(text: str, run: list[Token], opaque: dict[str, Inline]) -> Iterator[Inline]:
    """Text with its character references decoded, and markup. An opaque element is sent as a placeholder, which
    `opaque` then maps to it."""
    opened: list[tuple[str, str]] = []
    words: list[str] = []
    at = run[0].start if run else 0
    for one, after in zip(run, [*run[1:], None], strict=False):
        source = text[one.start : one.end]
        if one.kind in ("text", "reference"):
            follows = text[after.start : after.start + 1] if after is not None else ""
            words.append(WHITE.sub(" ", source) if one.kind == "text" else unescape(source, follows))
            continue
        if words:
            yield Inline(text[at : one.start], "", "".join(words))
            words = []
        at, tag = one.end, join_lines(source)
        if one.kind == "start":
            opened.append((one.name, tag))
            yield Inline(source, f"+{tag}", tag)
        elif one.kind == "end":
            start_tag = opened.pop()[1] if opened and opened[-1][0] == one.name else source
            yield Inline(source, f"-{start_tag}", tag)
        elif one.kind == "single" and one.name not in VOID_INLINE:
            placeholder = chr(PLACEHOLDER + len(opaque))
            opaque[placeholder] = Inline(source, f"={tag}")
            yield Inline(source, f"={tag}", placeholder)
        else:
            yield Inline(source, f"={tag}", tag)
    if words:
        yield Inline(text[at : run[-1].end], "", "".join(words))


def restore_opaque(inlines: list[Inline], opaque: dict[str, Inline]) -> Iterator[Inline]:
    """With the opaque elements in the place of their placeholders."""
    for inline in inlines:
        if inline.mark or not opaque:
            yield inline
        else:
            parts = re.split(f"([{''.join(opaque)}])", inline.text)
            yield from (opaque.get(part) or Inline(part) for part in parts if part)


def unescape(source: str, follows: str) -> str:
    """The character of a reference, unless it would be parsed as markup again."""
    letter = html.unescape(source)
    is_reference = letter == "&" and (follows.isalnum() or follows == "#")
    return source if not source.endswith(";") or letter < " " or letter == "<" or is_reference else letter


def escape(text: str) -> str:
    """Text as HTML, in which no character can be parsed as markup."""
    parts = re.split(f"({REFERENCE.pattern})", text)
    return "".join(part if i % 2 else html.escape(part, quote=False) for i, part in enumerate(parts))


def parse_tags(text: str) -> list[Inline]:
    """A text that is not HTML but may have tags, such as a message or a subtitle; `<file>` alone is a single tag."""
    found = [Inline(one.source, one.mark) for one in parse_inlines(text, tokenize(text), {})]
    ends = {one.mark[1:] for one in found if one.mark.startswith("-")}
    return [Inline(one.source, f"={one.mark[1:]}") if one.mark and one.mark[1:] not in ends else one for one in found]


def translate_fragment(text: str, stats: DocumentStats) -> Task[str]:
    """Some HTML translated; its letters are not escaped."""
    return (yield from translate_segments(text, segments(text), stats))


def translate(text: str, stats: DocumentStats) -> Task[str]:
    """A page translated. A page that is all ASCII and does not declare UTF-8 stays ASCII."""
    translation = yield from translate_fragment(text, stats)
    if text.isascii() and "utf-8" not in text[:1024].lower():
        translation = translation.encode("ascii", "xmlcharrefreplace").decode("ascii")
    return translation


def translate_fragments(
    texts: Sequence[str], translator: SupportsTranslate, requested: Sequence[list[str]] = ()
) -> list[str]:
    """Pieces of HTML that are not pages, such as those of a message. The texts that each sends to the translator are
    added to its list of `requested`."""
    return run_task(gather([translate_fragment(text, DocumentStats()) for text in texts], requested), translator)
