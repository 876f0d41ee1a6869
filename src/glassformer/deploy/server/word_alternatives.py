"""Words of a paragraph and of its translation: which belong together, and what else could replace a word.

POST /api/words          the words of a paragraph and of its translation, and which belong together
POST /api/alternatives   other ways for the translation of a sentence to go on after its first words

Word links come from the attention of the models that translate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from glassformer.common.errors import InputError
from glassformer.data import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.decode.scoring import Alignment
from glassformer.deploy.server.admission import AdmissionControl, RequestState
from glassformer.deploy.server.errors import RequestError
from glassformer.deploy.server.keys import ApiKeys
from glassformer.deploy.server.libre import ALIASES
from glassformer.deploy.server.requests import STRICT, client_of
from glassformer.deploy.server.responses import json_response
from glassformer.deploy.server.translation_service import TranslationService, UnsupportedPair
from glassformer.pipelines.language.invariants import Invariants
from glassformer.pipelines.translator import Translation, Translator

MAX_CHARACTERS = 5_000  # of a paragraph
MAX_SENTENCES = 1_000  # with a chosen translation
FREE_ALTERNATIVES = 3  # other translations of the whole sentence
CONTINUATIONS = 6  # candidates for the next word
MIN_LOG_PROBABILITY = -6.6  # of a continuation that is worth showing
BATCH = 16  # sentences aligned together
JOINERS = "'’-_"  # within a word
FIRST_CJK = "\u2e80"  # from this character on, scripts have no spaces between words

Span = tuple[int, int]
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
    """The range of words in the text and in its translation, and the input of each model on the route."""

    source: Span
    target: Span
    steps: list[Step]


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


class PlacedSentence(NamedTuple):
    """A sentence and its translation, and their places in both texts."""

    text: str
    translation: str
    source: Span
    target: Span


class AlignedText(NamedTuple):
    """A text and its translation by one model: sentences, words of both sides, and links between words."""

    direction: str
    sentences: list[PlacedSentence]
    source: list[Span]
    target: list[Span]
    links: list[tuple[Span, Span]]


class WordsApi:
    def __init__(self, service: TranslationService) -> None:
        self.service = service

    def words(self, asked: WordsRequest, state: RequestState) -> WordsResponse:
        source, target = self.language(asked.source), self.language(asked.target)
        route = self.service.route(source, target)
        if source == target or not route:
            hint = "GET /languages lists what there is"
            raise RequestError(422, "no_way", str(UnsupportedPair(source, target)), hint)
        made = self.service.translator(source, target, state).details([asked.q])[0]
        text = asked.q if made.via is None else made.via
        translation, sentences = place_sentences(text, made.text, made.sentences, asked.chosen)
        aligned = [align(route[-1], self.translator(route[-1]), sentences, state.check)]
        if made.via is not None:
            pivot = self.service.directions.by_name[route[0]].target
            before = self.service.translator(source, pivot, state).details([asked.q])[0]
            _, sentences = place_sentences(asked.q, before.text, before.sentences)
            aligned.insert(0, align(route[0], self.translator(route[0]), sentences, state.check))
        return words_response(asked.q, translation, aligned, text)

    def translator(self, direction: str) -> Translator:
        return self.service.directions.get(direction).translator

    def language(self, name: str) -> str:
        code = ALIASES.get(name, name)
        if code not in self.service.languages:
            hint = "GET /languages lists those here"
            raise RequestError(422, "language", f"the language {name!r:.60} is not here", hint)
        return code

    def alternatives(self, asked: AlternativesRequest, state: RequestState) -> AlternativesResponse:
        served = self.service.directions.get(asked.direction)
        source, target = served.direction.source, served.direction.target
        keeping = Invariants(asked.text, (source, target))
        free = self.service.translator(source, target, state).alternatives([asked.text], FREE_ALTERNATIVES)[0]
        state.check()
        try:
            found = served.translator.alternatives(asked.text, asked.prefix, CONTINUATIONS)
        except InputError as error:
            raise RequestError(422, "alternatives", str(error)) from None
        likely = [one.translation for one in found if one.log_probability > MIN_LOG_PROBABILITY]
        texts = dict.fromkeys(one.text.strip() for one in likely if one.finished)
        return AlternativesResponse(texts=[text for text in texts if text and not keeping.faults(text)], free=free)


def place_sentences(
    text: str, translation: str, sentences: Sequence[Translation], chosen: Sequence[str | None] = ()
) -> tuple[str, list[PlacedSentence]]:
    """The translation with the `chosen` translations of sentences in it, and the place of each sentence."""
    whole, placed = "", list[PlacedSentence]()
    at = after = 0
    for i, one in enumerate(sentences):
        start, begin = text.index(one.source, at), translation.index(one.text, after)
        made = (chosen[i] if i < len(chosen) else None) or one.text
        whole += translation[after:begin]
        at, after = start + len(one.source), begin + len(one.text)
        placed.append(PlacedSentence(one.source, made, (start, at), (len(whole), len(whole) + len(made))))
        whole += made
    return whole + translation[after:], placed


def align(
    direction: str, translator: Translator, sentences: list[PlacedSentence], check: Callable[[], None]
) -> AlignedText:
    """The words of sentences and of their translations, linked by the model's attention."""
    found = AlignedText(direction, sentences, [], [], [])
    tokenizer = translator.tokenizer
    if not isinstance(tokenizer, Tokenizer):  # the places of its tokens are unknown
        return found
    sources = tokenizer.encode_source([one.text for one in sentences])
    targets = tokenizer.encode_target([one.translation for one in sentences])
    limit = translator.max_source_length()
    rows = [i for i, ids in enumerate(sources) if ids and targets[i] and max(len(ids), len(targets[i])) < limit]
    alignments: dict[int, Alignment] = {}
    for start in range(0, len(rows), BATCH):
        check()
        some = rows[start : start + BATCH]
        made = translator.engine.align([sources[i] for i in some], [[Hypothesis(targets[i], 0.0)] for i in some])
        alignments |= {i: one for i, (one,) in zip(some, made, strict=True)}
    for i, sentence in enumerate(sentences):
        source_tokens = token_spans(lambda ids: tokenizer.decode_source([ids])[0], sources[i], sentence.text)
        target_tokens = token_spans(lambda ids: tokenizer.decode_target([ids])[0], targets[i], sentence.translation)
        source_words = join_tokens(sentence.text, source_tokens)
        target_words = join_tokens(sentence.translation, target_tokens)
        source_word = word_of_token(source_words, source_tokens)
        target_word = word_of_token(target_words, target_tokens)
        source = [(start + sentence.source[0], end + sentence.source[0]) for start, end in source_words]
        target = [(start + sentence.target[0], end + sentence.target[0]) for start, end in target_words]
        found.source.extend(source)
        found.target.extend(target)
        for t, s in alignments.get(i, []):
            a, b = source_word.get(s), target_word.get(t)
            if a is None or b is None:  # a language tag, or a space
                continue
            if has_letters(sentence.text, source_words[a]) == has_letters(sentence.translation, target_words[b]):
                found.links.append((source[a], target[b]))
    return found


def token_spans(decode: Callable[[Sequence[int]], str], ids: Sequence[int], text: str) -> list[Span]:
    """The place of each token, without spaces around it; none if the tokens do not decode to the text."""
    if decode(ids) != text:
        return []
    ends = [0, *(len(decode(ids[: i + 1]).rstrip("\ufffd")) for i in range(len(ids)))]
    found = []
    for start, end in pairwise(ends):
        piece = text[start:end]
        first = start + len(piece) - len(piece.lstrip())
        found.append((first, max(first, start + len(piece.rstrip()))))
    return found


def join_tokens(text: str, tokens: Sequence[Span]) -> list[Span]:
    """Words: adjacent tokens within one run of letters, in scripts that put spaces between words."""
    found: list[Span] = []
    for start, end in tokens:
        if start >= end:
            continue
        if found and found[-1][1] == start and continues_word(text[start - 1]) and continues_word(text[start]):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def continues_word(letter: str) -> bool:
    return letter in JOINERS or (letter.isalnum() and letter < FIRST_CJK)


def word_of_token(words: Sequence[Span], tokens: Sequence[Span]) -> dict[int, int]:
    """The index of the word that each token is in."""
    return {
        k: i
        for k, (start, end) in enumerate(tokens)
        for i, word in enumerate(words)
        if start < end and word[0] <= start < word[1]
    }


def has_letters(text: str, span: Span) -> bool:
    return any(map(str.isalnum, text[slice(*span)]))


def overlap(a: Span, b: Span) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def split_at(text: str, spans: Sequence[Span]) -> tuple[list[str], dict[int, int]]:
    """A text split at the ends of spans, and the index of the piece that begins at each place."""
    edges = sorted({0, len(text), *(edge for one in spans for edge in one)})
    return [text[a:b] for a, b in pairwise(edges)], {start: i for i, start in enumerate(edges[:-1])}


def piece_range(pieces: dict[int, int], span: Span) -> Span:
    """The range of pieces within a span."""
    inside = [i for start, i in pieces.items() if span[0] <= start < span[1]]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


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
        sentences.append(SentenceWords(source=places[0], target=places[1], steps=steps))
    pairs = dict.fromkeys((source_at[a[0]], target_at[b[0]]) for a, b in links)
    return WordsResponse(source=source_words, target=target_words, links=list(pairs), sentences=sentences)


def add_word_routes(router: APIRouter, api: WordsApi, admission: AdmissionControl, api_keys: ApiKeys | None) -> None:
    async def answer(request: Request, api_key: str, find: Callable[[RequestState], BaseModel]) -> Response:
        client = client_of(request, {"api_key": api_key}, api_keys)
        return await admission.run(request, lambda state: json_response(request, find(state).model_dump()), client)

    @router.post("/api/words", response_model=WordsResponse)
    async def words(request: Request, asked: WordsRequest) -> Response:
        return await answer(request, asked.api_key, partial(api.words, asked))

    @router.post("/api/alternatives", response_model=AlternativesResponse)
    async def alternatives(request: Request, asked: AlternativesRequest) -> Response:
        return await answer(request, asked.api_key, partial(api.alternatives, asked))
