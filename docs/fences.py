"""The fenced blocks of a page: what is run, what it prints, what is included. Site and tests read these.

What a page includes stands in it, between two marks, so that it is read where no site is built:

    <!-- source: glassformer.model.attention.softmax -->
    ... docs/refresh.py writes what is here ...
    <!-- /source -->
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<ticks>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=ticks) *$", re.M | re.S)
MARKED = re.compile(
    r"^<!-- (?P<kind>source|choices|api|step|rows|measured|worked): (?P<name>[^\n]+?) -->\n"
    r"(?P<body>.*?)^<!-- /(?P=kind) -->$",
    re.M | re.S,
)
FOLDED = re.compile(r"^<details>\n<summary>(?P<title>[^\n]+)</summary>\n\n(?P<body>.*?)\n\n</details>$", re.M | re.S)


@dataclass(frozen=True)
class Fence:
    kind: str  # python, console, output, source, text, ...
    words: tuple[str, ...]  # what else stands behind the kind: slow
    body: str
    line: int  # of its first line of text in the page, from 1
    folded: bool  # within an answer

    @property
    def slow(self) -> bool:
        return "slow" in self.words


@dataclass(frozen=True)
class Included:
    kind: str  # source, choices, api, step, rows, measured or worked
    name: str  # of what is included; several for api
    line: int  # of the first mark


def read(page: str) -> list[Fence]:
    """The blocks that the page's writer wrote: those within marks are another's, but for the steps of the build."""
    blanked = MARKED.sub(lambda found: found[0] if found["kind"] == "step" else blank(found), page)
    answers = [found.span() for found in FOLDED.finditer(page)]
    return [_fence(found, page, answers) for found in FENCE.finditer(blanked)]


def included(page: str) -> list[Included]:
    return [_included(found, page) for found in MARKED.finditer(page)]


def refill(page: str, write: Callable[[Included], str]) -> str:
    """The page with what stands between each pair of marks written anew."""

    def one(found: re.Match[str]) -> str:
        what = _included(found, page)
        return f"<!-- {what.kind}: {what.name} -->\n\n{write(what).strip()}\n\n<!-- /{what.kind} -->"

    return MARKED.sub(one, page)


def replace(page: str, rewrite: Callable[[Fence], str | None]) -> str:
    """The page with each block as `rewrite` gives it; `None` leaves it as it stands."""

    def one(found: re.Match[str]) -> str:
        written = rewrite(_fence(found, page, []))
        return found[0] if written is None else written

    return FENCE.sub(one, page)


def without(page: str) -> str:
    """The page's prose: blocks and what is included left out, the lines kept, so that line numbers still hold."""
    return FENCE.sub(blank, MARKED.sub(blank, page))


def blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _fence(found: re.Match[str], page: str, answers: list[tuple[int, int]]) -> Fence:
    kind, *words = found["info"].split() or ["text"]
    line = page.count("\n", 0, found.start("body")) + 1
    folded = any(start < found.start() < end for start, end in answers)
    return Fence(kind, tuple(words), found["body"], line, folded)


def _included(found: re.Match[str], page: str) -> Included:
    return Included(found["kind"], found["name"], page.count("\n", 0, found.start()) + 1)
