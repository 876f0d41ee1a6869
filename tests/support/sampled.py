"""Grids of cases: `make test` tries those that differ most, `make test-long` the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], quick: Iterable[Any]) -> list[Any]:
    """All `cases`, those that are not among the `quick` marked as long."""
    chosen = list(quick)
    found = [case if case in chosen else pytest.param(case, marks=pytest.mark.long) for case in cases]
    assert sum(case in chosen for case in found) == len(chosen), "one of the quick cases is none"
    return found
