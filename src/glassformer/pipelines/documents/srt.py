"""Subtitles (SubRip): what is said is translated; numbers, times and places on the screen stay."""

from __future__ import annotations

import math
from functools import partial

from glassformer.common.errors import DataError
from glassformer.pipelines.documents.html import tagged
from glassformer.pipelines.documents.passage import Asking, Passage, Tally, all_translating
from glassformer.pipelines.documents.units import Unit, one_line, wide

DASHES = ("-", "–", "—", "‐")


def translating(text: str, tally: Tally) -> Asking[str]:
    return (yield from all_translating(text, passages(text), tally))


def passages(text: str) -> list[Passage]:
    import srt

    try:
        titles = list(srt.parse(text))
    except srt.SRTParseError as error:
        raise DataError(f"no SubRip file: {error}") from None
    found: list[Passage] = []
    at = 0
    for title in titles:
        said = next((one for one in (title.content, title.content.replace("\n", "\r\n")) if one in text[at:]), None)
        if said is None:
            raise DataError(f"subtitle {title.index}: its text cannot be found in the file; are its line ends mixed?")
        times = text.index("-->", at)
        at = text.index(said, times)
        found += spoken(said, at)
        at += len(said)
    return found


def spoken(said: str, at: int) -> list[Passage]:
    """One text, or one for each speaker."""
    newline = "\r\n" if "\r\n" in said else "\n"
    lines = said.split(newline)
    each = len(lines) > 1 and all(line.lstrip().startswith(DASHES) for line in lines)
    found = []
    for text in lines if each else [said]:
        begin = len(text) - len(text.lstrip())
        while text[begin:].startswith("{\\") and "}" in text[begin:]:  # {\an8}: where it is shown
            begin = text.index("}", begin) + 1
        while begin < len(text) and (text[begin] in DASHES or text[begin].isspace()):
            begin += 1
        words = text[begin:].rstrip()
        units = [Unit(unit.source, unit.mark, one_line(unit.source)) for unit in tagged(words)]
        write = partial(broken, count=len(words.split(newline)), newline=newline)
        one = Passage(at + begin, at + begin + len(words), units, tagged, write=write)
        found += [one] if one.read else []
        at += len(text) + len(newline)
    return found


def broken(text: str, count: int, newline: str) -> str:
    """In `count` lines of about the same length, where there are places to break it."""
    lines = []
    while count > 1 and text:
        middle = math.ceil(len(text) / count)
        tags = depths(text)
        places = [
            i for i in range(1, len(text)) if not tags[i] and (text[i] == " " or (wide(text[i - 1]) and wide(text[i])))
        ]
        if not places:
            break
        cut = min(places, key=lambda place: abs(place - middle))
        lines.append(text[:cut].rstrip())
        text, count = text[cut:].lstrip(), count - 1
    return newline.join([*lines, text])


def depths(text: str) -> list[bool]:
    """For each letter whether it stands within a tag."""
    found, within = [], False
    for letter in text:
        within = letter == "<" or (within and letter != ">")
        found.append(within)
    return found
