"""What a text asks of a model on its way, apart from who waits for the answers, and how."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeVar

from glassformer.decode import Search
from glassformer.pipelines.translation import Translation
from glassformer.pipelines.translator import Translator

T = TypeVar("T")


class Ask(NamedTuple):
    """Texts for a translator, as they are given to its `translate`."""

    translator: Translator
    texts: Sequence[str]
    search: Search
    placeholders: bool = False
    progress: Callable[[int], None] | None = None


Asking = Generator[Ask, list[list[Translation]], T]  # asks, is sent the answer, and returns what it makes of all


def answered(asking: Asking[T]) -> T:
    """What is made of it where each translator answers at once."""
    try:
        one = next(asking)
        while True:
            made = one.translator.translate(
                one.texts, search=one.search, placeholders=one.placeholders, progress=one.progress
            )
            one = asking.send(made)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
