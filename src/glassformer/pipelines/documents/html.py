"""HTML: the text between tags is translated; tags, attributes, comments, code and scripts stay."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from itertools import accumulate
from typing import NamedTuple

from glassformer.pipelines.documents.passage import (
    Asking,
    Passage,
    Tally,
    TextTranslating,
    all_translating,
    answered,
    together,
)
from glassformer.pipelines.documents.units import Unit, one_line

# Elements whose text no translator should touch; those of the first line stand within sentences.
OPAQUE_WORDS = frozenset(("code", "kbd", "samp", "var", "tt", "math", "svg"))
OPAQUE = OPAQUE_WORDS | {"pre", "script", "style", "textarea", "template", "xmp", "plaintext", "listing", "object"}
WITHIN = frozenset(  # elements within a sentence; at all others it ends
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "ins", "label",
     "mark", "nobr", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "u")
)  # fmt: skip
ALONE = frozenset(("img", "wbr", "input"))  # within a sentence, and without an end
VOID = ALONE | frozenset(["area", "base", "br", "col", "embed", "hr", "link", "meta", "param", "source", "track"])
SPACES = " \t\r\n\f"
WHITE = re.compile(f"[{SPACES}]+")
REFERENCE = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
DEEPEST = 100  # elements within each other, within a sentence
UNENDED = 50  # signs that may begin a tag, without one that ends it
CARRIER = 0xE100  # private-use characters that stand for elements which are no text, while a text is translated


class Event(NamedTuple):
    start: int
    end: int
    kind: str  # text, reference, start, end, other
    name: str = ""
    kept: bool = False  # its author wants it left as it is


class Events(HTMLParser):
    """What the parser meets, with its place: each reaches to where the next begins."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.begun: list[tuple[int, str, str, bool]] = []
        self.lines = [0, *(end.end() for end in re.finditer("\n", text))]
        self.feed(text)
        self.close()

    def met(self, kind: str, name: str = "", kept: bool = False) -> None:
        line, column = self.getpos()
        self.begun.append((self.lines[line - 1] + column, kind, name, kept))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.met("start", tag, said.get("translate") == "no" or "notranslate" in said.get("class", "").split())

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.met("alone" if tag in WITHIN | ALONE | OPAQUE_WORDS else "other", tag)

    def handle_endtag(self, tag: str) -> None:
        self.met("end", tag)

    def handle_data(self, data: str) -> None:
        self.met("text")

    def handle_entityref(self, name: str) -> None:
        self.met("reference")

    handle_charref = handle_entityref

    def handle_comment(self, data: str) -> None:
        self.met("comment")

    def handle_pi(self, data: str) -> None:
        self.met("other")

    def handle_decl(self, decl: str) -> None:
        self.met("other")

    unknown_decl = handle_pi


def events(text: str) -> list[Event]:
    begun = Events(text).begun
    ends = [*(start for start, *_ in begun[1:]), len(text)]
    return list(folded([Event(one[0], end, *one[1:]) for one, end in zip(begun, ends, strict=False)]))


def folded(found: list[Event]) -> Iterator[Event]:
    """Elements that stay whole as one event each."""
    i = 0
    while i < len(found):
        one = found[i]
        if one.kind == "start" and one.name not in VOID and (one.name in OPAQUE or one.kept):
            depth, last = 0, i
            for last in range(i, len(found)):
                depth += (found[last].name == one.name) * {"start": 1, "end": -1}.get(found[last].kind, 0)
                if depth == 0:
                    break
            word = one.name in OPAQUE_WORDS | WITHIN
            yield Event(one.start, found[last].end, "alone" if word else "other", one.name)
            i = last + 1
            continue
        if one.kind == "start" and one.name in ALONE:
            one = one._replace(kind="alone")
        yield one
        i += 1


def element(tag: str, kind: str) -> str | None:
    """The name of the element whose "start" or "end" a tag is."""
    found = Events(tag).begun if tag.startswith("<") else []
    return found[0][2] if len(found) == 1 and found[0][1] == kind else None


def passages(text: str) -> list[Passage]:
    """Every stretch of text and of tags within sentences that lies between two others."""
    found: list[Passage] = []
    run: list[Event] = []
    for one in [*events(text), Event(len(text), len(text), "other")]:
        if one.kind in ("text", "reference", "alone", "comment") or one.name in WITHIN:
            run.append(one)
            continue
        found += passage(text, trimmed(run, text))
        run = []
    return found


def trimmed(run: list[Event], text: str) -> list[Event]:
    """Without the tags at its edges whose partners are elsewhere, and without white space there."""

    def idle(one: Event, alone: bool) -> bool:
        if one.kind == "text":
            return not text[one.start : one.end].strip(SPACES)
        picture = one.kind == "comment" or one.name in ALONE
        return picture or (one.kind in ("start", "end") and alone)

    for _ in range(2):  # from the left, and from the right
        edge = 0
        for one, alone in zip(run, unpaired(run), strict=True):
            if not idle(one, alone):
                break
            edge += 1
        run = run[edge:][::-1]
    return run


def unpaired(run: list[Event]) -> list[bool]:
    """For each tag whether nowhere after it as many tags of its name have closed as opened."""
    depth: Counter[str] = Counter()
    before, last = [], dict[tuple[str, int], int]()
    for i, one in enumerate(run):
        before.append(depth[one.name])
        if one.kind in ("start", "end"):
            depth[one.name] += 1 if one.kind == "start" else -1
            last[one.name, depth[one.name]] = i
    return [last.get((one.name, was), -1) <= i for i, (one, was) in enumerate(zip(run, before, strict=True))]


def depth_of(run: list[Event]) -> int:
    """How many elements lie within each other at most."""
    steps = ({"start": 1, "end": -1}.get(one.kind, 0) for one in run)
    return max(accumulate(steps), default=0)


def passage(text: str, run: list[Event]) -> list[Passage]:
    """One where there is something to read in it; nobody writes what lies in so many elements to be read."""
    if not run or depth_of(run) > DEEPEST:
        return []
    if run[0].kind == "text":
        run[0] = run[0]._replace(start=run[0].end - len(text[run[0].start : run[0].end].lstrip(SPACES)))
    if run[-1].kind == "text":
        run[-1] = run[-1]._replace(end=run[-1].start + len(text[run[-1].start : run[-1].end].rstrip(SPACES)))
    start, end = run[0].start, run[-1].end
    own = any(CARRIER <= ord(letter) < CARRIER + len(run) for letter in text[start:end])
    signs: dict[str, Unit] = {}
    found = [*units_of(text, run, signs)]

    def parse(translation: str) -> list[Unit]:
        parsed = units_of(translation, events(translation), {})
        return list(carried_back([unit if unit.mark else Unit(refer(unit.text)) for unit in parsed], signs))

    one = Passage(start, end, found, parse, whole=not own)
    return [one] if one.read else []


def units_of(text: str, run: list[Event], signs: dict[str, Unit]) -> Iterator[Unit]:
    """Text with its character references read; tags by what they say; elements that are no text as signs."""
    opened: list[tuple[str, str]] = []
    words: list[str] = []
    at = run[0].start if run else 0
    for one, after in zip(run, [*run[1:], None], strict=False):
        source = text[one.start : one.end]
        if one.kind in ("text", "reference"):
            follows = text[after.start : after.start + 1] if after is not None else ""
            words.append(WHITE.sub(" ", source) if one.kind == "text" else referred(source, follows))
            continue
        if words:
            yield Unit(text[at : one.start], "", "".join(words))
            words = []
        at, said = one.end, one_line(source)
        if one.kind == "start":
            opened.append((one.name, said))
            yield Unit(source, f"+{said}", said)
        elif one.kind == "end":
            begun = opened.pop()[1] if opened and opened[-1][0] == one.name else source
            yield Unit(source, f"-{begun}", said)
        elif one.kind == "alone" and one.name not in ALONE:
            sign = chr(CARRIER + len(signs))
            signs[sign] = Unit(source, f"={said}")
            yield Unit(source, f"={said}", sign)
        else:
            yield Unit(source, f"={said}", said)
    if words:
        yield Unit(text[at : run[-1].end], "", "".join(words))


def carried_back(found: list[Unit], signs: dict[str, Unit]) -> Iterator[Unit]:
    """The elements that signs in the text stand for."""
    for unit in found:
        at = 0
        for i, letter in enumerate(unit.text if not unit.mark else ""):
            if letter in signs:
                if i > at:
                    yield Unit(unit.text[at:i])
                yield signs[letter]
                at = i + 1
        if unit.mark or at < len(unit.text):
            yield unit if at == 0 else Unit(unit.text[at:])


def referred(source: str, follows: str) -> str:
    """The character that a reference names, but for those that would be read as markup again."""
    sign = html.unescape(source)
    if not source.endswith(";") or sign < " " or sign == "<" or (sign == "&" and (follows.isalnum() or follows == "#")):
        return source
    return sign


def refer(text: str) -> str:
    """Text as HTML: no sign of it can be read as markup."""
    parts, at = [], 0
    for found in REFERENCE.finditer(text):
        parts += [html.escape(text[at : found.start()], quote=False), found[0]]
        at = found.end()
    return "".join([*parts, html.escape(text[at:], quote=False)])


def tagged(text: str) -> list[Unit]:
    """A text that is no HTML but may have tags in it, such as a message or a subtitle; `<file>` alone is one sign."""
    found = [Unit(unit.source, unit.mark) for unit in units_of(text, events(text), {})]
    pairs = Counter(unit.mark[1:] for unit in found if unit.mark.startswith("-"))
    alone = [bool(unit.mark) and not pairs[unit.mark[1:]] for unit in found]
    return [Unit(unit.source, f"={unit.mark[1:]}") if one else unit for unit, one in zip(found, alone, strict=True)]


def fragment(text: str, tally: Tally) -> Asking[str]:
    """Some HTML translated; its letters are written as they are."""
    return (yield from all_translating(text, passages(text), tally))


def translating(text: str, tally: Tally) -> Asking[str]:
    """The page translated. One that is all ASCII and does not say that it is UTF-8 stays ASCII."""
    made = yield from fragment(text, tally)
    if text.isascii() and "utf-8" not in text[:1024].lower():
        made = made.encode("ascii", "xmlcharrefreplace").decode("ascii")
    return made


def translate_fragments(texts: Sequence[str], translator: TextTranslating) -> list[str]:
    """Pieces of HTML that are no page of their own, such as those of a message. What has tag after tag that begins and
    does not end is no HTML, and stays as it is: the parser would look for the end of each through all of the text."""
    asking = [fragment(text, Tally()) if ends(text) else unasked(text) for text in texts]
    return answered(together(asking), translator)


def ends(text: str) -> bool:
    return all(part.count("<") <= UNENDED for part in text.split(">"))


def unasked(text: str) -> Asking[str]:
    yield []
    return text
