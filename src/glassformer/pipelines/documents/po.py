"""Messages (gettext): those without a translation get one; what people have translated, comments and ids stay."""

from __future__ import annotations

import re
from typing import Any

from glassformer.common.errors import DataError
from glassformer.pipelines.documents import plain
from glassformer.pipelines.documents.html import tagged
from glassformer.pipelines.documents.passage import Asking, Tally, together

LINE = re.compile(r"\r\n|\r|\n")


def translating(text: str, tally: Tally) -> Asking[str]:
    entries, places = [entry for entry in read(text) if not entry.obsolete], slots(text)
    wanted = [source for entry in entries for source in sources(entry)]
    if len(wanted) != len(places):
        raise DataError(f"no PO file: {len(wanted)} messages, but {len(places)} msgstr; check it: `msgfmt --check`")
    jobs = [(place, said) for place, (said, done) in zip(places, wanted, strict=True) if said and not done]
    answers = yield from together([plain.translating(said, tally, tagged) for _, said in jobs])
    parts, at = [], 0
    for ((start, end, newline), said), answer in zip(jobs, answers, strict=True):
        parts += [text[at:start], quoted(answer, newline) if answer != said else text[start:end]]
        at = end
    return "".join([*parts, text[at:]])


def read(text: str) -> list[Any]:
    """The entries in the order of the file, the header (an empty id) included."""
    import polib

    try:
        # A text of one line could be a file's name to polib.
        found = polib.pofile(f"{text}\n", wrapwidth=0)
    except (OSError, ValueError) as error:
        raise DataError(f"no PO file: {error}; check it: `msgfmt --check`") from None
    return sorted(([found.metadata_as_entry()] if header(text) else []) + list(found), key=lambda one: one.linenum or 0)


def header(text: str) -> bool:
    """Whether the first message has no id."""
    lines = [line.strip() for line in LINE.split(text)]
    first = next((i for i, line in enumerate(lines) if line.startswith("msgid")), None)
    return first is not None and lines[first] == 'msgid ""' and not lines[first + 1].startswith('"')


def sources(entry: Any) -> list[tuple[str, bool]]:
    """For each msgstr of an entry, what it is the translation of, and whether it is there already."""
    if not entry.msgid_plural:
        return [(entry.msgid, bool(entry.msgstr))]
    forms = sorted(entry.msgstr_plural)
    alone = len(forms) == 1  # a language without plural: what is said of many is said of one
    return [
        (entry.msgid if form == 0 and not alone else entry.msgid_plural, bool(entry.msgstr_plural[form]))
        for form in forms
    ]


def slots(text: str) -> list[tuple[int, int, str]]:
    """Where each msgstr's quoted strings stand, with the line end there."""
    found: list[tuple[int, int, str]] = []
    at, goes_on = 0, False
    for end in [*LINE.finditer(text), None]:
        stop = len(text) if end is None else end.start()
        line = text[at:stop]
        quote = line.find('"')
        if line.lstrip().startswith("msgstr") and quote >= 0:
            found.append((at + quote, at + len(line.rstrip()), "\n" if end is None else end[0]))
            goes_on = True
        elif goes_on and line.lstrip().startswith('"'):
            found[-1] = (found[-1][0], at + len(line.rstrip()), found[-1][2])
        else:
            goes_on = False
        at = stop if end is None else end.end()
    return found


def quoted(text: str, newline: str) -> str:
    """A string as PO writes it: in lines, where it has some."""
    import polib

    lines = text.splitlines(keepends=True)
    shown = [f'"{polib.escape(line)}"' for line in lines]
    return shown[0] if len(shown) == 1 else newline.join(['""', *shown])
