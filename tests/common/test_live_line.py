"""The live line stays one line, on terminals of any width."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import pytest
from rich.cells import cell_len

from glassformer.common.report import Report, cut_to

LINE = "step 12345/20000  epoch 17  loss 1.234  lr 1.5e-03  123,456 tokens/s  1:23:45 left  best loss 1.111 at 12000"


class Terminal:
    """A real terminal: what is written arrives, and its cursor goes where a screen's would."""

    def __init__(self, columns: int) -> None:
        self.reader, writer = os.openpty()
        self.columns = columns
        self.resize(columns)
        self.stream: TextIO = os.fdopen(writer, "w", encoding="utf-8")

    def resize(self, columns: int) -> None:
        self.columns = columns
        fcntl.ioctl(self.reader, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def screen(self) -> list[str]:
        """The lines on the screen after all that was written."""
        print(end="\0", file=self.stream, flush=True)
        written = b""
        while not written.endswith(b"\0"):
            written += os.read(self.reader, 1 << 16)
        lines, place = [""], 0
        for sign in written[:-1].decode("utf-8"):
            if sign == "\r":
                place = 0
            elif sign == "\n":
                lines.append("")
            else:
                if place + cell_len(sign) > self.columns:
                    lines.append("")
                    place = 0
                lines[-1] = lines[-1].ljust(place)
                lines[-1] = lines[-1][:place] + sign + lines[-1][place + 1 :]
                place += cell_len(sign)
        return lines


@contextmanager
def terminal(columns: int) -> Iterator[Terminal]:
    made = Terminal(columns)
    try:
        yield made
    finally:
        made.stream.close()
        os.close(made.reader)


@pytest.mark.parametrize("columns", [200, 80, 40, 10, 1])
def test_the_live_line_does_not_flood_the_terminal(columns: int) -> None:
    with terminal(columns) as screen:
        report = Report(screen.stream)
        for step in range(3):
            report.show(LINE.replace("12345", str(step)), every=0)
        shown = screen.screen()
        assert len(shown) == 1
        assert cell_len(shown[0]) < max(2, columns)
        if columns >= 40:
            assert shown[0].startswith("step 2/20000  epoch 17")
        report.show("翻译" * 100, every=0)
        report.clear()
        assert len(screen.screen()) == 1


def test_what_stays_follows_a_cleared_line() -> None:
    with terminal(60) as screen:
        report = Report(screen.stream)
        report.show(LINE, every=0)
        report.say("done")
        assert [line.rstrip() for line in screen.screen()] == ["done", ""]


def test_a_terminal_made_narrower_is_noticed() -> None:
    with terminal(120) as screen:
        report = Report(screen.stream)
        report.show(LINE, every=0)
        screen.screen()
        screen.resize(40)
        report.show(LINE, every=0)
        report.clear()
        assert len(screen.screen()) == 1


def test_a_number_is_not_cut_in_half() -> None:
    assert cut_to(LINE, 49) == "step 12345/20000  epoch 17  loss 1.234"
    assert cut_to(LINE, 200) == LINE
    assert cut_to("一二三四", 5) == "一二"
    assert cell_len("é一e\u0301") == 4
