"""One corpus and one uninterrupted run per test process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from small_run import train_here, write_recipe


@pytest.fixture(autouse=True)
def no_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where matplotlib is not installed: tests/cli/test_train.py looks at the curve, whose drawing takes a while."""
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def whole(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that others, interrupted ones, must equal."""
    out = tmp_path_factory.mktemp("whole") / "run"
    train_here(recipe, out)
    return out
