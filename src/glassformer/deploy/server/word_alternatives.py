"""A paragraph and its translation in words: which came from which, and what else could stand in a word's place.

POST /api/words          the words of a paragraph and of its translation, and which belongs to which
POST /api/alternatives   what else the translation of a sentence could go on with, after its first words
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Request, Response
from pydantic import BaseModel, Field

from glassformer.common.errors import InputError
from glassformer.deploy.server.admission import Turns, Wanted
from glassformer.deploy.server.errors import Refused
from glassformer.deploy.server.keys import Gate
from glassformer.deploy.server.libre import ALIASES, client_of
from glassformer.deploy.server.links import Hopped, Span, between, cut, hopped, meet, placed
from glassformer.deploy.server.request_state import Ticket
from glassformer.deploy.server.requests import STRICT
from glassformer.deploy.server.responses import as_json
from glassformer.deploy.server.routes import Routes
from glassformer.pipelines.language.invariants import Keeping
from glassformer.pipelines.language.language import name_of
from glassformer.pipelines.translator import Translator

MOST_CHARACTERS = 5_000  # of a paragraph
MOST_CHOSEN = 1_000  # sentences
FREE = 3  # other translations of a sentence
OTHERS = 6  # ways to go on that are looked at
UNLIKELY = -6.6  # log-probability; what is less likely is no help

Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Name = Annotated[str, Field(max_length=60)]


class WordsAsked(BaseModel):
    """`chosen` are translations that the reader likes better, by the place of their sentence; none for the others."""

    model_config = STRICT

    q: Text
    source: Name
    target: Name
    chosen: list[Text | None] = Field([], max_length=MOST_CHOSEN)
    api_key: str = ""


class Step(BaseModel):
    """What one model read."""

    direction: str
    text: str


class SentenceTold(BaseModel):
    """From which word to which, in the text and in its translation; what each model on the way read of it."""

    source: Span
    target: Span
    steps: list[Step]


class WordsAnswer(BaseModel):
    """Both texts cut at their words, and the pairs of words, by their places, that belong together."""

    source: list[str]
    target: list[str]
    links: list[Span]
    sentences: list[SentenceTold]


class AlternativesAsked(BaseModel):
    model_config = STRICT

    direction: Name
    text: Text
    prefix: Text = ""
    api_key: str = ""


class AlternativesAnswer(BaseModel):
    """Other translations, the likeliest first: those that begin with the prefix, and those that need not."""

    texts: list[str]
    free: list[str]


class Words:
    """What the addresses do, without the web."""

    def __init__(self, routes: Routes) -> None:
        self.routes = routes

    def words(self, asked: WordsAsked, ticket: Ticket) -> WordsAnswer:
        source, target = self.language(asked.source), self.language(asked.target)
        way = self.routes.way(source, target)
        if source == target or not way:
            message = f"nothing here translates from {name_of(source)} into {name_of(target)}"
            raise Refused(422, "no_way", message, "GET /languages lists what there is")
        made = self.routes.translator(source, target, ticket).details([asked.q])[0]
        read = asked.q if made.via is None else made.via
        whole, told = placed(read, made.text, made.sentences, asked.chosen)
        hops = [hopped(way[-1], self.by(way[-1]), told, ticket.check)]
        if made.via is not None:
            pivot = self.routes.directions.known[way[0]].target
            before = self.routes.translator(source, pivot, ticket).details([asked.q])[0]
            _, told = placed(asked.q, before.text, before.sentences)
            hops.insert(0, hopped(way[0], self.by(way[0]), told, ticket.check))
        return answer(asked.q, whole, hops, read)

    def by(self, direction: str) -> Translator:
        return self.routes.directions.shown(direction).translator

    def language(self, name: str) -> str:
        code = ALIASES.get(name, name)
        if code not in self.routes.languages:
            raise Refused(422, "language", f"the language {name!r:.60} is not here", "GET /languages lists those here")
        return code

    def alternatives(self, asked: AlternativesAsked, ticket: Ticket) -> AlternativesAnswer:
        shown = self.routes.directions.shown(asked.direction)
        source, target = shown.direction.source, shown.direction.target
        keeping = Keeping(asked.text, (source, target))
        free = self.routes.translator(source, target, ticket).alternatives([asked.text], FREE)[0]
        ticket.check()
        try:
            found = shown.translator.alternatives(asked.text, asked.prefix, OTHERS)
        except InputError as error:
            raise Refused(422, "alternatives", str(error)) from None
        likely = [one.translation for one in found if one.log_probability > UNLIKELY]
        texts = dict.fromkeys(one.text.strip() for one in likely if one.finished)
        return AlternativesAnswer(texts=[text for text in texts if text and not keeping.faults(text)], free=free)


def answer(source: str, target: str, hops: list[Hopped], via: str) -> WordsAnswer:
    """What one hop, or two with the text `via` between them, tell of both texts."""
    first, last = hops[0], hops[-1]
    links = first.links
    if len(hops) > 1:
        links = [(a, d) for a, b in first.links for c, d in last.links if meet(b, c)]
    words, home = cut(source, [*first.read, *(one.read for one in first.told)])
    others, away = cut(target, [*last.written, *(one.written for one in last.told)])
    sentences = []
    for one in last.told:
        own = [one.read] if len(hops) == 1 else [before.read for before in first.told if meet(before.written, one.read)]
        reach = (min(start for start, _ in own), max(end for _, end in own)) if own else (0, 0)
        steps = [Step(direction=first.direction, text=source[slice(*reach)])]
        if len(hops) > 1:
            steps.append(Step(direction=last.direction, text=via[slice(*one.read)]))
        sentences.append(SentenceTold(source=between(home, reach), target=between(away, one.written), steps=steps))
    pairs = dict.fromkeys((home[a[0]], away[b[0]]) for a, b in links)
    return WordsAnswer(source=words, target=others, links=list(pairs), sentences=sentences)


def install(
    app: FastAPI, words: Words, turns: Turns, gate: Gate | None, errors: dict[int | str, dict[str, Any]]
) -> None:
    router = APIRouter(responses=errors)

    async def answered(request: Request, api_key: str, find: Callable[[Ticket], BaseModel]) -> Response:
        client = client_of(request, {"api_key": api_key}, gate)

        def run(wanted: Wanted) -> Response:
            return as_json(request, find(Ticket(client, wanted)).model_dump())

        return await turns.take(request, run)

    @router.post("/api/words", response_model=WordsAnswer)
    async def told(request: Request, asked: WordsAsked) -> Response:
        return await answered(request, asked.api_key, partial(words.words, asked))

    @router.post("/api/alternatives", response_model=AlternativesAnswer)
    async def others(request: Request, asked: AlternativesAsked) -> Response:
        return await answered(request, asked.api_key, partial(words.alternatives, asked))

    app.include_router(router)
