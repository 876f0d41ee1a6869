"""The trained demo that the handbook's code looks into: what `make demo` made, kept in half the bytes."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("docs", "docs/build", "docs/before", "tests/docs")]

import keep_demo  # noqa: E402


@pytest.fixture(scope="session")
def task():
    """The numbers that the models of the first chapters learn; few are held out."""
    from transformer import Task

    task = Task()
    task.held_out = task.held_out[:12]
    return task


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """A folder as `runs/demo` is. DOCS_DEMO names one that is already there, which a writer of pages will want."""
    if ready := os.environ.get("DOCS_DEMO"):
        return Path(ready).resolve()
    folder = tmp_path_factory.mktemp("handbook") / "demo"
    shutil.copytree(keep_demo.KEPT, folder)
    keep_demo.cast(folder / keep_demo.WEIGHTS, keep_demo.WHOLE)
    return folder
