"""What is built of the source: complete enough to be tested, and readable where the repository is not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from glassformer.common.version import __version__

ROOT = Path(__file__).parent.parent
PARTS = ("src", "tests", "docs", "notebooks", "benchmarks")
FILES = (
    "Makefile",
    "constraints.txt",
    "pyproject.toml",
    "setup.py",
    "LICENSE",
    *(file.name for file in ROOT.glob("*.md")),
)
MADE = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.egg-info", "*.py[cod]")
BUILD = "from setuptools.build_meta import build_sdist; print(build_sdist('dist'))"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str], str]:
    """The files of a clone, those of its source distribution, and what a package index is told."""
    source = tmp_path_factory.mktemp("sdist") / "source"
    for part in PARTS:
        shutil.copytree(ROOT / part, source / part, ignore=MADE)
    for file in (*FILES, "MANIFEST.in"):
        shutil.copy(ROOT / file, source)
    cloned = {str(file.relative_to(source)) for file in source.rglob("*") if file.is_file()}
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with tarfile.open(source / "dist" / done.stdout.splitlines()[-1]) as archive:
        names = {name.partition("/")[2]: name for name in archive.getnames()}
        told = archive.extractfile(names["PKG-INFO"])
        assert told is not None
        return cloned, set(names), told.read().decode()


def test_the_source_distribution_lacks_nothing(built: tuple[set[str], set[str], str]) -> None:
    cloned, packed, _ = built
    assert cloned - packed == set()


def test_a_package_index_shows_no_broken_picture_and_no_broken_link(built: tuple[set[str], set[str], str]) -> None:
    told = built[2]
    assert f"\nVersion: {__version__}\n" in told
    assert "A Transformer you can see through, and ship." in told
    assert "the handbook, from tokens" in told
    assert re.findall(r"\]\((?!https?:).*?\)", told) == []
