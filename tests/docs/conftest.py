"""The trained demo that the handbook's code looks into, made once for all test processes."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tests" / "docs"), str(ROOT / "tests" / "serve")]

from glassformer.train import Report, read_recipe  # noqa: E402
from glassformer.train import train as run_training  # noqa: E402

# Fewer and smaller steps than `make demo` takes: the pages ask for what is learnt first. Measured over five seeds.
CHANGES = (
    "train.steps=300",
    "train.warmup_steps=40",
    "train.log_every=50",
    "train.valid_every=300",
    "train.save_every=300",
)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `runs/demo` is. DOCS_DEMO names one that is already there, which a writer of pages will want."""
    if ready := os.environ.get("DOCS_DEMO"):
        return Path(ready).resolve()
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "handbook-demo"
    with FileLock(str(folder) + ".lock"):
        if not (folder / "model.safetensors").exists():
            run_training(read_recipe("numerals", CHANGES), folder, device="cpu", report=Report(io.StringIO()))
    return folder
