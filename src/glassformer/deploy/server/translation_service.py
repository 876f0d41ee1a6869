"""Translation between the languages of all served models, directly or through a third language, by one queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from glassformer.common.errors import DataError
from glassformer.deploy.server.admission import RequestState
from glassformer.deploy.server.directions import Directions
from glassformer.deploy.server.errors import RequestError
from glassformer.deploy.server.queue import Queue
from glassformer.pipelines.documents.html import translate_fragments
from glassformer.pipelines.documents.sandbox import translate_in_sandbox
from glassformer.pipelines.language.language import confident_language, language_name
from glassformer.pipelines.text import Note, TextTranslator, TranslatedText
from glassformer.pipelines.text.sentence_translator import run_async

MAX_HTML = 20_000  # characters parsed in this process
PREFERRED_PIVOTS = ("en",)


class UnsupportedPair(Exception):
    """No models lead from one language to the other."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__(f"nothing here translates from {language_name(source)} into {language_name(target)}")


class TranslationService:
    """Each model is loaded when it is first needed, or by `load`."""

    def __init__(self, directions: Directions, queue: Queue) -> None:
        self.directions, self.queue = directions, queue
        self.loaded = False  # all models
        self._direct = {(one.source, one.target): one.name for one in reversed(directions.by_name.values())}
        self.languages = tuple(dict.fromkeys(code for pair in sorted(self._direct) for code in pair if code))

    def load(self) -> None:
        for name in self.directions.by_name:
            _ = self.directions.get(name).translator.engine.ready
        self.loaded = True

    def targets(self, source: str) -> list[str]:
        """The languages that this one can be translated into, and itself."""
        return [one for one in self.languages if one == source or self.route(source, one)]

    def route(self, source: str, target: str) -> list[str]:
        """The names of the directions from one language to another: one, two, or none."""
        if (source, target) in self._direct:
            return [self._direct[source, target]]
        pivots = [one for one in self.languages if (source, one) in self._direct and (one, target) in self._direct]
        for pivot in sorted(pivots, key=lambda one: one not in PREFERRED_PIVOTS):
            return [self._direct[source, pivot], self._direct[pivot, target]]
        return []

    def stays(self, code: str, target: str) -> bool:
        """Whether a text in this language stays as it is: it is the target, and nothing is translated into it."""
        return code == target and not any(self.route(one, target) for one in self.languages)

    def translator(self, source: str, target: str, state: RequestState) -> TextTranslator:
        """A translator of texts for one request; the same language twice is for a text with sentences of others."""
        others = [one for one in self.languages if one != target and self.route(one, target)]
        first = (
            source if source != target else min(others, key=lambda one: len(self.route(one, target)), default=source)
        )
        route = self.route(first, target)
        if not route:
            raise UnsupportedPair(source, target)
        translators = [self.directions.get(name).translator for name in route]
        return TextTranslator(
            *translators,
            source=first,
            target=target,
            detect=confident_language,
            main=source,
            other=lambda one: self.translator(one, target, state) if self.route(one, target) else None,
            answer=partial(self.queue.translate, state=state),
        )

    def translate(
        self,
        texts: Sequence[str],
        codes: Sequence[str | None],
        target: str,
        state: RequestState,
        *,
        html: bool = False,
        alternatives: int = 0,
    ) -> tuple[list[TranslatedText], list[list[str]]]:
        """The translations of texts, each in the language of its code, and `alternatives` other translations of each. A
        text in no language stays as it is, and so does what is in the target's."""
        made, others = list(map(TranslatedText, texts)), [list[str]() for _ in texts]
        for code in dict.fromkeys(code for code in codes if code is not None):
            if self.stays(code, target):
                continue
            rows = [i for i, one in enumerate(codes) if one == code]
            by, some = self.translator(code, target, state), [texts[i] for i in rows]
            translations = translate_html(some, by, state) if html else by.details(some)
            more = by.alternatives(some, alternatives) if alternatives and not html else [[] for _ in rows]
            for i, one, ranked in zip(rows, translations, more, strict=True):
                made[i], others[i] = one, ranked
        return made, others

    async def translate_async(self, text: str, code: str, target: str, state: RequestState) -> TranslatedText:
        """The translation of one text, without a thread that waits."""
        if self.stays(code, target):
            return TranslatedText(text)
        steps = self.translator(code, target, state).steps([text])
        (made,) = await run_async(steps, partial(self.queue.translate_async, state=state))
        return made


class NotingTranslator:
    """A text translator that keeps the notes on each text."""

    def __init__(self, by: TextTranslator) -> None:
        self.by, self.notes = by, dict[str, tuple[Note, ...]]()

    def translate(self, texts: list[str], *, progress: Callable[[int], None] | None = None) -> list[str]:
        made = self.by.details(texts, progress=progress)
        self.notes |= {text: one.notes for text, one in zip(texts, made, strict=True)}
        return [one.text for one in made]


def translate_html(texts: list[str], by: TextTranslator, state: RequestState) -> list[TranslatedText]:
    """Pieces of HTML; long ones are parsed in a process of their own, which can be stopped."""
    noting, requested = NotingTranslator(by), [list[str]() for _ in texts]
    try:
        if sum(map(len, texts)) <= MAX_HTML:
            made = translate_fragments(texts, noting, requested)
        else:
            made = list(map(str, translate_in_sandbox(texts, ".html", noting, state.check, requested=requested)))
    except DataError as error:
        raise RequestError(400, "html", f"the HTML cannot be read: {error}") from None
    notes = [dict.fromkeys(note for one in some for note in noting.notes[one]) for some in requested]
    return [TranslatedText(text, notes=tuple(some)) for text, some in zip(made, notes, strict=True)]
