"""One corpus and one uninterrupted run per test process."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_run import train_here, write_recipe


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def whole(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that others, interrupted ones, must equal."""
    out = tmp_path_factory.mktemp("whole") / "run"
    train_here(recipe, out)
    return out
