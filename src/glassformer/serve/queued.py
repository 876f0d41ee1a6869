"""A translator whose texts wait in a queue with those of others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glassformer.decode.search import search_of
from glassformer.serve.queue import Queue, Ranked, Ticket
from glassformer.translator import Translator


class Queued(Translator):
    """A translator whose texts go through a queue, for one request."""

    plain: Translator
    queue: Queue
    ticket: Ticket

    @classmethod
    def of(cls, translator: Translator, queue: Queue, ticket: Ticket) -> Queued:
        made = object.__new__(cls)
        vars(made).update(vars(translator), plain=translator, queue=queue, ticket=ticket)
        return made

    def translate(self, texts: Iterable[str], **options: Any) -> list[Ranked]:
        """As `Translator.translate`, of which a queue knows what it needs: `search` and `placeholders`."""
        search, placeholders = options.pop("search", None), options.pop("placeholders", False)
        progress = options.pop("progress", None)
        texts = list(texts)
        made = self.queue.translate(self.plain, texts, search_of(search, **options), placeholders, self.ticket)
        if progress is not None:
            progress(len(texts))
        return made
