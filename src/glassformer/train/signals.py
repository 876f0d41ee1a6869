"""Ctrl-C and SIGTERM: obeyed at once while nothing is at stake, and between two steps while training."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


class Interrupted(BaseException):
    """A signal asked the run to stop. No error: whoever was at work, and looks out for errors, lets it pass."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def listening(hear: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main thread may listen
        yield
        return
    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def at_once(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)


@contextlib.contextmanager
def between_steps(alone: bool) -> Iterator[Callable[[], int]]:
    """Gives a function that tells the signal heard so far, 0 for none.

    A second signal is obeyed at once, but not among several processes: `torchrun` passes on what the terminal has
    sent them already.
    """
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if heard and alone:
            raise Interrupted(number)
        heard.append(number)

    with listening(hear):
        yield lambda: heard[0] if heard else 0
