"""Words of a paragraph and of its translation: which belong together, and what else could replace a word.

POST /api/words          the words of a paragraph and of its translation, and which belong together
POST /api/alternatives   other ways for the translation of a sentence to go on after its first words
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from glassformer.common.errors import InputError
from glassformer.deploy.server.admission import AdmissionControl, RequestState
from glassformer.deploy.server.errors import RequestError
from glassformer.deploy.server.keys import ApiKeys
from glassformer.deploy.server.libre import ALIASES
from glassformer.deploy.server.requests import STRICT, client_of
from glassformer.deploy.server.responses import json_response
from glassformer.deploy.server.translation_service import TranslationService, UnsupportedPair
from glassformer.explain.word_links import AlignedText, Span, align, overlap, piece_range, place_sentences, split_at
from glassformer.pipelines.language.invariants import Invariants

MAX_CHARACTERS = 5_000  # of a paragraph
MAX_SENTENCES = 1_000  # with a chosen translation
FREE_ALTERNATIVES = 3  # other translations of the whole sentence
CONTINUATIONS = 6  # candidates for the next word
MIN_LOG_PROBABILITY = -6.6  # of a continuation that is worth showing

Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Name = Annotated[str, Field(max_length=60)]


class WordsRequest(BaseModel):
    """`chosen`: for each sentence, the translation that the reader prefers, or null."""

    model_config = STRICT

    q: Text
    source: Name
    target: Name
    chosen: list[Text | None] = Field([], max_length=MAX_SENTENCES)
    api_key: str = ""


class Step(BaseModel):
    """The input of one model."""

    direction: str
    text: str


class SentenceWords(BaseModel):
    """The range of words in the text and in its translation, the input of each model on the route, how probably the
    translation is right, where that is known, and the words that the last model doubts."""

    source: Span
    target: Span
    steps: list[Step]
    probability: float | None
    doubts: list[int]


class WordsResponse(BaseModel):
    """Both texts split into words, and the pairs of indices of words that belong together."""

    source: list[str]
    target: list[str]
    links: list[Span]
    sentences: list[SentenceWords]


class AlternativesRequest(BaseModel):
    model_config = STRICT

    direction: Name
    text: Text
    prefix: Text = ""
    api_key: str = ""


class AlternativesResponse(BaseModel):
    """Other translations, the likeliest first: those that begin with the prefix, and free ones."""

    texts: list[str]
    free: list[str]


class WordsApi:
    def __init__(self, service: TranslationService) -> None:
        self.service = service

    def words(self, body: WordsRequest, state: RequestState) -> WordsResponse:
        source, target = self.language(body.source), self.language(body.target)
        route = self.service.route(source, target)
        if source == target or not route:
            hint = "GET /languages lists what there is"
            raise RequestError(422, "no_way", str(UnsupportedPair(source, target)), hint)
        made = self.service.translator(source, target, state).details([body.q])[0]
        text = body.q if made.via is None else made.via
        translation, sentences = place_sentences(text, made.text, made.sentences, body.chosen)
        translators = [self.service.directions.get(name).translator for name in route]
        aligned = [align(route[-1], translators[-1], sentences, state.check)]
        if made.via is not None:
            pivot = self.service.directions.by_name[route[0]].target
            before = self.service.translator(source, pivot, state).details([body.q])[0]
            _, sentences = place_sentences(body.q, before.text, before.sentences)
            aligned.insert(0, align(route[0], translators[0], sentences, state.check))
        return words_response(body.q, translation, aligned, text)

    def language(self, name: str) -> str:
        code = ALIASES.get(name, name)
        if code not in self.service.languages:
            hint = "GET /languages lists those here"
            raise RequestError(422, "language", f"the language {name!r:.60} is not here", hint)
        return code

    def alternatives(self, body: AlternativesRequest, state: RequestState) -> AlternativesResponse:
        served = self.service.directions.get(body.direction)
        source, target = served.direction.source, served.direction.target
        keeping = Invariants(body.text, (source, target))
        free = self.service.translator(source, target, state).alternatives([body.text], FREE_ALTERNATIVES)[0]
        state.check()
        try:
            found = served.translator.alternatives(body.text, body.prefix, CONTINUATIONS)
        except InputError as error:
            raise RequestError(422, "alternatives", str(error)) from None
        likely = [one.translation for one in found if one.log_probability > MIN_LOG_PROBABILITY]
        texts = dict.fromkeys(one.text.strip() for one in likely if one.finished)
        return AlternativesResponse(texts=[text for text in texts if text and not keeping.faults(text)], free=free)


def words_response(source: str, target: str, aligned: list[AlignedText], via: str) -> WordsResponse:
    """The alignment of one model, or of two with the text `via` between them, as indices of words."""
    first, last = aligned[0], aligned[-1]
    links = first.links
    if len(aligned) > 1:
        links = [(a, d) for a, b in first.links for c, d in last.links if overlap(b, c)]
    source_words, source_at = split_at(source, [*first.source, *(one.source for one in first.sentences)])
    target_words, target_at = split_at(target, [*last.target, *(one.target for one in last.sentences)])
    sentences = []
    for one in last.sentences:
        inputs = [one.source]
        if len(aligned) > 1:
            inputs = [before.source for before in first.sentences if overlap(before.target, one.source)]
        reach = (min(start for start, _ in inputs), max(end for _, end in inputs)) if inputs else (0, 0)
        steps = [Step(direction=first.direction, text=source[slice(*reach)])]
        if len(aligned) > 1:
            steps.append(Step(direction=last.direction, text=via[slice(*one.source)]))
        places = piece_range(source_at, reach), piece_range(target_at, one.target)
        probability = one.known.probability if one.known is not None and len(aligned) == 1 else None
        words = [] if one.known is None else [word.casefold() for word in one.known.doubts]
        doubts = [i for i in range(*places[1]) if target_words[i].strip().casefold() in words]
        found = SentenceWords(source=places[0], target=places[1], steps=steps, probability=probability, doubts=doubts)
        sentences.append(found)
    pairs = dict.fromkeys((source_at[a[0]], target_at[b[0]]) for a, b in links)
    return WordsResponse(source=source_words, target=target_words, links=list(pairs), sentences=sentences)


def add_word_routes(router: APIRouter, api: WordsApi, admission: AdmissionControl, api_keys: ApiKeys | None) -> None:
    async def answer(request: Request, api_key: str, find: Callable[[RequestState], BaseModel]) -> Response:
        client = client_of(request, {"api_key": api_key}, api_keys)
        return await admission.run(request, lambda state: json_response(request, find(state).model_dump()), client)

    @router.post("/api/words", response_model=WordsResponse)
    async def words(request: Request, body: WordsRequest) -> Response:
        return await answer(request, body.api_key, partial(api.words, body))

    @router.post("/api/alternatives", response_model=AlternativesResponse)
    async def alternatives(request: Request, body: AlternativesRequest) -> Response:
        return await answer(request, body.api_key, partial(api.alternatives, body))
