"""The measure of what is kept counts what it should."""

from pathlib import Path

import pytest

from benchmarks.kept import kept, noise
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.translator import Translator

BUNDLE = Path(__file__).parents[1] / "pipelines" / "text" / "bundle"
LINES = ["red 17 house.", "small tree `a 1` and.", "red `zzz` 1,234.5 tree.", "tree."]


@pytest.fixture(scope="module")
def de():
    return TextTranslator(Translator.load(BUNDLE, to="de"))


def test_all_is_kept(de):
    found = kept(de, LINES)
    assert (found.lines, found.numbers, found.numbers_kept) == (4, 3, 3)
    assert (found.stretches, found.stretches_kept) == (2, 2)
    assert sum(found.ways.values()) == 4
    assert found.lost == ()


def test_what_is_lost_is_counted(de, monkeypatch):
    details = de.details
    monkeypatch.setattr(de, "details", lambda lines: details(["tree."] * len(lines)))
    found = kept(de, LINES)
    assert (found.numbers_kept, found.stretches_kept) == (1, 0)  # the one digit within code is not a number
    assert len(found.lost) == 3


def test_noise_is_measured(de):
    found = noise(de, LINES, 20)
    assert (found.strings, found.returned, found.too_long) == (20, 20, 0)
