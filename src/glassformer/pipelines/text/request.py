"""What the translation of a text asks of a model, and the loops that answer it, in a thread that waits or without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from glassformer.decode import Search
from glassformer.pipelines.translator import Translation, Translator

T = TypeVar("T")


@dataclass(frozen=True)
class TranslateRequest:
    """Sentences for a translator, as its `translate` takes them."""

    translator: Translator
    texts: Sequence[str]
    search: Search
    placeholders: bool = False
    progress: Callable[[int], None] | None = None


Answer = list[list[Translation]]  # of a request: as `Translator.translate` gives it
Steps = Generator[TranslateRequest, Answer, T]  # yields requests, is sent their answers, returns what it makes of them


def translate_now(request: TranslateRequest) -> Answer:
    """The answer of the request's translator, in this thread."""
    return request.translator.translate(
        request.texts, search=request.search, placeholders=request.placeholders, progress=request.progress
    )


def run(steps: Steps[T], answer: Callable[[TranslateRequest], Answer] = translate_now) -> T:
    """What `steps` returns, with its requests answered one after the other."""
    try:
        request = next(steps)
        while True:
            request = steps.send(answer(request))
    except StopIteration as end:
        result: T = end.value
        return result


async def run_async(steps: Steps[T], answer: Callable[[TranslateRequest], Awaitable[Answer]]) -> T:
    """As `run`, where answers are awaited."""
    try:
        request = next(steps)
        while True:
            request = steps.send(await answer(request))
    except StopIteration as end:
        result: T = end.value
        return result
