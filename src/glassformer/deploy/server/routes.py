"""From which language into which the served models translate, directly or by way of a third."""

from __future__ import annotations

from collections.abc import Sequence

from glassformer.common.errors import DataError
from glassformer.deploy.server.directions import Directions
from glassformer.deploy.server.errors import Refused
from glassformer.deploy.server.queue import Queue
from glassformer.deploy.server.queued import Bell, Queued
from glassformer.deploy.server.request_state import Ticket
from glassformer.pipelines.documents.html import translate_fragments
from glassformer.pipelines.documents.sandbox import translate_in_sandbox
from glassformer.pipelines.language.language import clearly, name_of
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.text.request import Asking
from glassformer.pipelines.text.translator import translating

READ_HERE = 20_000  # characters of HTML
PIVOTS_FIRST = ("en",)  # where several languages lie between


class NoWay(Exception):
    """No models lead from one language to the other."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__(f"nothing here translates from {name_of(source)} into {name_of(target)}")
        self.source, self.target = source, target


class Routes:
    """The languages of all models together; each model is loaded when it is first needed."""

    def __init__(self, directions: Directions, queue: Queue) -> None:
        self.directions, self.queue, self.bell = directions, queue, Bell()
        self.loaded = False  # all of them
        self._direct = {(one.source, one.target): one.name for one in reversed(directions.known.values())}
        self.languages = tuple(dict.fromkeys(code for pair in sorted(self._direct) for code in pair if code))

    def load(self) -> None:
        """Make every model ready, which else happens when it is first needed."""
        for name in self.directions.known:
            _ = self.directions.shown(name).translator.engine.ready
        self.loaded = True

    def targets(self, source: str) -> list[str]:
        """The languages that this one can be translated into."""
        return [one for one in self.languages if one != source and self.way(source, one)]

    def way(self, source: str, target: str) -> list[str]:
        """The names of the directions from one language to another: one, two, or none."""
        if (source, target) in self._direct:
            return [self._direct[source, target]]
        between = [one for one in self.languages if (source, one) in self._direct and (one, target) in self._direct]
        for pivot in sorted(between, key=lambda one: one not in PIVOTS_FIRST):
            return [self._direct[source, pivot], self._direct[pivot, target]]
        return []

    def translator(self, source: str, target: str, ticket: Ticket) -> TextTranslator:
        """A translator of texts for one request."""
        way = self.way(source, target)
        if not way:
            raise NoWay(source, target)
        hops = [Queued.of(self.directions.shown(one).translator, self.queue, ticket) for one in way]
        return TextTranslator(*hops, source=source, target=target, detect=clearly)

    def translated(
        self,
        texts: Sequence[str],
        codes: Sequence[str | None],
        target: str,
        ticket: Ticket,
        *,
        html: bool = False,
        alternatives: int = 0,
    ) -> tuple[list[str], list[list[str]]]:
        """Texts, each in a language or in none, in another one, and so many other translations of each; what is in
        that language already, or in none, stays as it is."""
        made, others = list(texts), [list[str]() for _ in texts]
        for code in dict.fromkeys(code for code in codes if code is not None and code != target):
            rows = [i for i, one in enumerate(codes) if one == code]
            by, given = self.translator(code, target, ticket), [texts[i] for i in rows]
            told = pieces(given, by, ticket) if html else by.translate(given)
            more = by.alternatives(given, alternatives) if alternatives and not html else [[] for _ in rows]
            for i, text, ranked in zip(rows, told, more, strict=True):
                made[i], others[i] = text, ranked
        return made, others

    def translating(self, text: str, code: str, target: str, ticket: Ticket) -> Asking[str]:
        """One text, for whoever waits for the translators in another way."""
        if code == target:
            return text
        (made,) = yield from translating(self.translator(code, target, ticket), [text])
        return made


def pieces(texts: list[str], by: TextTranslator, ticket: Ticket) -> list[str]:
    """Pieces of HTML translated; many of them are read by a process of its own, which may take its time."""
    if sum(map(len, texts)) <= READ_HERE:
        return translate_fragments(texts, by)
    try:
        return list(map(str, translate_in_sandbox(texts, ".html", by, ticket.check)))
    except DataError as error:
        raise Refused(400, "html", f"the HTML cannot be read: {error}") from None
