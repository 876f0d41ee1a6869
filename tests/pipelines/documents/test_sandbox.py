"""Documents are parsed in a process of their own, with limits."""

from __future__ import annotations

import pytest
import standins

from glassformer.common.errors import DataError
from glassformer.pipelines.documents.sandbox import Limits, translate_in_sandbox

LONG = b"[a](b) *c* " * 100_000  # minutes


def test_time_is_limited():
    with pytest.raises(DataError, match="takes too long to read, or too much memory"):
        translate_in_sandbox(LONG, ".md", standins.StandIn(str), lambda: None, Limits(seconds=1))


def test_memory_is_limited():
    with pytest.raises(DataError, match="too much memory"):
        translate_in_sandbox(b"one\n" * 100_000, ".txt", standins.StandIn(str), lambda: None, Limits(bytes=40_000_000))


def test_the_check_of_the_caller_ends_it():
    class Gone(Exception):
        pass

    def check():
        raise Gone

    with pytest.raises(Gone):
        translate_in_sandbox(LONG, ".md", standins.StandIn(str), check)
