"""A translator that does as it likes."""

from collections.abc import Callable, Sequence
from typing import Any

from glassformer.decode import Search
from glassformer.pipelines.translator import Translation, Translator


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
