"""A small translator with tags and placeholders, and translators that do as they like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from glassformer.decode import Search
from glassformer.translation import Translation
from glassformer.translator import Translator

BUNDLE = Path(__file__).parent / "bundle"  # made by make_bundle.py


@pytest.fixture(scope="session")
def de() -> Translator:
    return Translator.load(BUNDLE, to="de")


@pytest.fixture(scope="session")
def en() -> Translator:
    return Translator.load(BUNDLE, to="en")


class StandIn(Translator):
    """A translator that makes of each text what `answer` says, whatever that is."""

    def __init__(self, like: Translator, answer: Callable[[str], str]) -> None:
        vars(self).update(vars(like))
        self.answer, self.calls = answer, []

    def translate(self, texts: Sequence[str], *, search: Search, **options: Any) -> list[list[Translation]]:  # type: ignore[override]
        self.calls.append((list(texts), search))
        answers = [self.answer(text) for text in texts]
        limit = search.max_new_tokens or 10**6
        return [[Translation(one, 0.0, one.split()[:limit], finished=len(one.split()) <= limit)] for one in answers]
