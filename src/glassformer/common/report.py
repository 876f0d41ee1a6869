"""What a command tells while it goes on: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from rich.cells import cell_len

_imported = time.monotonic()


def process_age() -> float:
    """Seconds since this process began; where the system does not tell, since it could first count them."""
    try:
        ticks = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):  # not Linux
        return time.monotonic() - _imported


class Report:
    """Speaks on `stream` (stderr, so that a command's own output stays clean)."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self.live = not quiet and self.stream.isatty()
        self.drawn = 0  # the width of the live line on the screen
        self.last = 0.0

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self.quiet:
            self.clear()
            print(text, file=self.stream, flush=True)

    def show(self, text: str, every: float = 0.1) -> None:
        """The live line; it is only drawn on a terminal, and not too often."""
        if self.live and time.monotonic() - self.last >= every:
            self.last = time.monotonic()
            text = cut_to(text, self.columns())
            rest = " " * (min(self.drawn, self.columns()) - cell_len(text))
            print(f"\r{text}{rest}", end="", file=self.stream, flush=True)
            self.drawn = cell_len(text)

    def clear(self) -> None:
        if self.live and self.drawn:
            print("\r" + " " * min(self.drawn, self.columns()) + "\r", end="", file=self.stream, flush=True)
            self.drawn = 0

    def columns(self) -> int:
        """Letters that fit into a line of the terminal now; one in its last column could start the next line."""
        try:
            columns = os.get_terminal_size(self.stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return (columns or 80) - 1

    def counting(self, what: str) -> Callable[[int], None]:
        """A callback that shows a growing number."""
        return lambda count: self.show(f"{what}: {count:,}")


def cut_to(text: str, width: int) -> str:
    """As many of the text's parts, two spaces apart, as fit: half a number would be another number."""
    while cell_len(text) > width and "  " in text:
        text = text.rpartition("  ")[0].rstrip()
    while cell_len(text) > width:
        text = text[:-1]
    return text


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
