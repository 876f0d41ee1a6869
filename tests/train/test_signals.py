"""A signal while nothing is at stake stops at once, whatever is at work."""

from __future__ import annotations

import signal

import pytest

from glassformer.common.errors import DataError
from glassformer.train.loop import Interrupted, signal_handlers, stop_at_once


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_not_taken_for_an_error_of_what_is_at_work(number: signal.Signals) -> None:
    def reads_a_file() -> None:
        try:
            signal.raise_signal(number)
        except Exception as error:  # as around a library that raises all kinds
            raise DataError("damaged") from error

    before = signal.getsignal(number)
    with pytest.raises(Interrupted) as stopped, signal_handlers(stop_at_once):
        reads_a_file()
    assert stopped.value.number == number
    assert signal.getsignal(number) is before
