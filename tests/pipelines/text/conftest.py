"""A small translator with tags and placeholders."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassformer.pipelines.translator import Translator

BUNDLE = Path(__file__).parent / "bundle"  # made by make_bundle.py


@pytest.fixture(scope="session")
def de() -> Translator:
    return Translator.load(BUNDLE, to="de")


@pytest.fixture(scope="session")
def en() -> Translator:
    return Translator.load(BUNDLE, to="en")
