"""The fenced blocks of a page: what is run, what it prints, which source it names. Site and tests read these."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)(?P=ticks) *$", re.M | re.S
)


@dataclass(frozen=True)
class Fence:
    kind: str  # python, console, output, source, text, ...
    words: tuple[str, ...]  # what else stands behind the kind: slow
    body: str
    line: int  # of its first line of text in the page, from 1
    indented: bool  # inside an admonition: an answer

    @property
    def slow(self) -> bool:
        return "slow" in self.words


def read(page: str) -> list[Fence]:
    return [_fence(found, page) for found in FENCE.finditer(page)]


def replace(page: str, rewrite: Callable[[Fence], str | None]) -> str:
    """The page with each block as `rewrite` gives it; `None` leaves it as it stands."""

    def one(found: re.Match[str]) -> str:
        written = rewrite(_fence(found, page))
        return found[0] if written is None else indent(written, found["indent"])

    return FENCE.sub(one, page)


def without(page: str) -> str:
    """The page's prose: blocks left out, the lines kept, so that line numbers still hold."""
    return FENCE.sub(lambda found: "\n" * found[0].count("\n"), page)


def _fence(found: re.Match[str], page: str) -> Fence:
    kind, *words = found["info"].split() or ["text"]
    line = page.count("\n", 0, found.start("body")) + 1
    # Only the fence's own indent goes: what a block prints may be indented itself.
    body = re.sub(f"^{found['indent']}", "", found["body"], flags=re.M)
    return Fence(kind, tuple(words), body, line, bool(found["indent"]))
