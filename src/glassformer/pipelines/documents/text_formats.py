"""Plain text, PO messages and SubRip subtitles: formats of lines, without nested markup.

Plain text    paragraphs are translated; their order, blank lines, indents and list signs stay
PO            messages without a translation get one; finished translations, comments and ids stay
SubRip        what is spoken is translated; numbers, times and positions on the screen stay
"""

from __future__ import annotations

import math
import re
import textwrap
from bisect import bisect_left, bisect_right
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import polib

from glassformer.common.errors import DataError
from glassformer.data.icu import without_line_ends
from glassformer.pipelines.documents.html import parse_tags
from glassformer.pipelines.documents.segments import (
    NEWLINE,
    DocumentStats,
    Inline,
    Parse,
    Segment,
    Task,
    gather,
    is_unspaced,
    join_lines,
    line_spans,
    replace_spans,
    translate_segments,
)
from glassformer.pipelines.language.invariants import IN_TURN

LIST_SIGNS = re.compile(r"\s*(?:[-*•·>#=~_|+]+\s+|\d{1,3}[.)]\s+)*")  # what precedes the words of a line
NARROW = 30  # letters; text that is narrower was not wrapped
# As players read it: any of these signs between the numbers, an index or none, and after the times what they like.
TIMES = re.compile(r"\s*(?:\d++[,.:，．。：]){2}\d++[,.:，．。：]?\d*+ *-[ -] *> *(?:\d++[,.:，．。：]){2}\d")
NUMBER = re.compile(r"\s*-?\d++\.?\d*+\s*")
DASHES = ("-", "–", "—", "‐")  # before a speaker's words in a subtitle
JAVA_QUOTED = re.compile(r"''|'[^']*(?:'|$)")  # no format, and '' is an apostrophe
# All that a program may read as a format, even the "% o" of "50% off".
FORMAT = re.compile(
    r"%(?:\([^()]*\)|<\w+>|\d+[$:])?[-+ #'0]*[\d*]*(?:\.[\d*]*)?[hlLqjzt]*[A-Za-z@%]?|~[^\w\s]*\w?|\$\{?[A-Za-z_]\w*"
    r"|\{[^{}]*\}|[{}]"
)


class Line(NamedTuple):
    start: int
    words: int  # where they begin
    end: int  # of them


def translate_plain(text: str, stats: DocumentStats, parse: Parse | None = None) -> Task[str]:
    return (yield from translate_segments(text, plain_segments(text, parse or parse_words), stats))


def parse_words(text: str) -> list[Inline]:
    return [Inline(text)] if text else []


def plain_segments(text: str, parse: Parse) -> list[Segment]:
    """One for each line; lines that were wrapped, because the next word had no room, are joined."""
    lines = line_spans(without_line_ends(text))
    width = max(stop - start for start, stop in lines)
    found: list[list[Line]] = []
    for start, stop in lines:
        line = text[start:stop]
        signs = LIST_SIGNS.match(line)
        begin = start + (signs.end() if signs else 0)
        has_sign = begin - start != len(line) - len(line.lstrip())
        new = Line(start, begin, start + len(line.rstrip()))
        if found and begin < stop and not has_sign and is_wrapped(text, found[-1][-1], start, begin, stop, width):
            found[-1].append(new)
        else:
            found.append([new])
    return [segment for lines in found if (segment := plain_segment(text, lines, width, parse)).has_words]


def is_wrapped(text: str, before: Line, start: int, begin: int, stop: int, width: int) -> bool:
    """Whether the line before `start` would have been too long with the first word of the next line."""
    between = text[before.end : start].strip(" \t")
    word = text[begin:stop].split(maxsplit=1)
    return bool(
        before.words < before.end
        and between in ("\n", "\r", "\r\n")
        and width >= NARROW
        and word
        and before.end - before.start + 1 + len(word[0]) > width
    )


def plain_segment(text: str, lines: list[Line], width: int, parse: Parse) -> Segment:
    start, end = lines[0].words, lines[-1].end
    source = text[start:end]
    inlines = [one if one.mark else Inline(one.source, "", join_lines(one.source)) for one in parse(source)]
    if len(lines) == 1:
        return Segment(start, end, inlines, parse)
    indent = text[lines[1].start : lines[1].words]
    line_end = NEWLINE.search(source)
    assert line_end is not None
    offset = lines[0].words - lines[0].start
    layout = partial(wrap, width=width, offset=offset, indent=indent, newline=line_end[0])
    return Segment(start, end, inlines, parse, layout=layout)


def wrap(text: str, width: int, offset: int, indent: str, newline: str) -> str:
    """Wrapped at spaces, as its source was; the first line begins after `offset` letters."""
    wrapper = textwrap.TextWrapper(width, " " * offset, indent, break_long_words=False, break_on_hyphens=False)
    return newline.join(wrapper.wrap(text))[offset:]


def translate_po(text: str, stats: DocumentStats) -> Task[str]:
    entries, slots = [entry for entry in po_entries(text) if not entry.obsolete], po_slots(text)
    messages = [message for entry in entries for message in po_messages(entry)]
    if len(messages) != len(slots):
        raise DataError(f"no PO file: {len(messages)} messages, but {len(slots)} msgstr; check it: `msgfmt --check`")
    jobs = [(slot, *one) for slot, one in zip(slots, messages, strict=True) if one[0] and not one[1]]
    translations = yield from gather([translate_plain(source, stats, parse_tags) for _, source, *_ in jobs])
    strings: list[str | None] = []
    for ((*_, newline), source, _, flag), translation in zip(jobs, translations, strict=True):
        is_wrong = flag != "" and formats_of(translation, flag) != formats_of(source, flag)
        stats.untranslated += is_wrong
        strings.append(None if is_wrong or translation == source else po_string(translation, newline))
    return replace_spans(text, [(start, end) for (start, end, _), *_ in jobs], strings)


def po_entries(text: str) -> list[Any]:
    """The entries in the order of the file, including the header, which has an empty id."""
    try:
        # A text of one line could be a file's name to polib.
        found = polib.pofile(f"{text}\n", wrapwidth=0)
    except (OSError, ValueError) as error:
        raise DataError(f"no PO file: {error}; check it: `msgfmt --check`") from None
    header = [found.metadata_as_entry()] if has_po_header(text) else []
    return sorted(header + list(found), key=lambda entry: entry.linenum or 0)


def has_po_header(text: str) -> bool:
    """Whether the first message has no id."""
    lines = [line.strip() for line in NEWLINE.split(text)]
    first = next((i for i, line in enumerate(lines) if line.startswith("msgid")), None)
    return first is not None and lines[first] == 'msgid ""' and not lines[first + 1].startswith('"')


def po_messages(entry: Any) -> list[tuple[str, bool, str]]:
    """For each msgstr of an entry, its source, whether it has a translation already, and its flag if it is a format."""
    flag = next((one for one in entry.flags if one.endswith("-format") and not one.startswith("no-")), "")
    if not entry.msgid_plural:
        return [(entry.msgid, bool(entry.msgstr), flag)]
    forms = sorted(entry.msgstr_plural)
    has_singular = len(forms) > 1  # a language without plural uses the source's plural for everything
    sources = [entry.msgid if form == 0 and has_singular else entry.msgid_plural for form in forms]
    return [(one, bool(entry.msgstr_plural[form]), flag) for one, form in zip(sources, forms, strict=True)]


def formats_of(text: str, flag: str) -> tuple[list[str], list[str]]:
    """All formats of a text, whose order is free, and those that take their arguments in turn."""
    found = FORMAT.findall(JAVA_QUOTED.sub("", text) if flag.endswith("java-format") else text)
    return sorted(found), [one for one in found if IN_TURN.fullmatch(one)]


def po_slots(text: str) -> list[tuple[int, int, str]]:
    """Where each msgstr's quoted strings are, with the line end used there."""
    found: list[tuple[int, int, str]] = []
    continues = False
    for start, stop in line_spans(text):
        line = text[start:stop]
        end, quote = start + len(line.rstrip()), line.find('"')
        continues = continues and line.lstrip().startswith('"')
        if continues:
            found[-1] = (found[-1][0], end, found[-1][2])
        elif line.lstrip().startswith("msgstr") and quote >= 0:
            newline = NEWLINE.match(text, stop)
            found.append((start + quote, end, newline[0] if newline else "\n"))
            continues = True
    return found


def po_string(text: str, newline: str) -> str:
    """A string in PO syntax, on one line for each of its lines."""
    quoted = [f'"{polib.escape(line)}"' for line in text.splitlines(keepends=True)]
    return quoted[0] if len(quoted) == 1 else newline.join(['""', *quoted])


def translate_srt(text: str, stats: DocumentStats) -> Task[str]:
    return (yield from translate_segments(text, srt_segments(text), stats))


def srt_segments(text: str) -> list[Segment]:
    lines = line_spans(text)
    times = [i for i, (start, stop) in enumerate(lines) if TIMES.match(text[start:stop])]
    found: list[Segment] = []
    for at, end in pairwise([-1, *times, len(lines)]):
        rows = lines[at + 1 : end]
        while end < len(lines) and rows and not text[slice(*rows[-1])].strip():
            rows.pop()
        if end < len(lines) and rows and NUMBER.fullmatch(text[slice(*rows[-1])]):
            rows.pop()
        content = text[rows[0][0] : rows[-1][1]] if rows else ""
        if at < 0 and content.strip():
            raise DataError(
                f"no SubRip file: {content.strip()!r:.40} stands before all times; write 00:00:01,000 --> ..."
            )
        words = content.lstrip("\r\n")
        found += subtitle_segments(words.rstrip(), rows[-1][1] - len(words)) if words else []
    return found


def subtitle_segments(content: str, at: int) -> list[Segment]:
    """One for the subtitle, or one for each speaker."""
    newline = "\r\n" if "\r\n" in content else "\n"
    lines = content.split(newline)
    has_speakers = len(lines) > 1 and all(line.lstrip().startswith(DASHES) for line in lines)
    found = []
    for text in lines if has_speakers else [content]:
        begin = len(text) - len(text.lstrip())
        while text[begin:].startswith("{\\") and "}" in text[begin:]:  # {\an8}: a position on the screen
            begin = text.index("}", begin) + 1
        while begin < len(text) and (text[begin] in DASHES or text[begin].isspace()):
            begin += 1
        words = text[begin:].rstrip()
        inlines = [Inline(one.source, one.mark, join_lines(one.source)) for one in parse_tags(words)]
        layout = partial(break_lines, count=len(words.split(newline)), newline=newline)
        segment = Segment(at + begin, at + begin + len(words), inlines, parse_tags, layout=layout)
        found += [segment] if segment.has_words else []
        at += len(text) + len(newline)
    return found


def break_lines(text: str, count: int, newline: str) -> str:
    """In `count` lines of about the same length, if there are places to break it, outside all tags."""
    in_tag = [*accumulate(text, lambda inside, c: c == "<" or (inside and c != ">"), initial=False)]
    unspaced = [*map(is_unspaced, text)]
    breaks = (i for i in range(1, len(text)) if text[i] == " " or (unspaced[i - 1] and unspaced[i]))
    places = [i for i in breaks if not in_tag[i + 1]]
    lines, start = [], 0
    while count > 1 and start < len(text):
        middle, first = start + math.ceil((len(text) - start) / count), bisect_right(places, start)
        after = bisect_left(places, middle, first)
        near = places[max(first, after - 1) : after + 1]
        if not near:
            break
        cut = min(near, key=lambda place: abs(place - middle))
        lines.append(text[start:cut].strip())
        start, count = cut, count - 1
    return newline.join([*lines, text[start:].strip()])
