"""Which words of a text and of its translation belong together, by the attention of the models that translate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from glassformer.data import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.decode.scoring import Alignment
from glassformer.pipelines.translator import Translation, Translator

BATCH = 16  # sentences aligned together
JOINERS = "'’-_"  # within a word
FIRST_CJK = "\u2e80"  # from this character on, scripts have no spaces between words

Span = tuple[int, int]


class PlacedSentence(NamedTuple):
    """A sentence and its translation, their places in both texts, and what is known of it if the model wrote it."""

    text: str
    translation: str
    source: Span
    target: Span
    known: Translation | None


class AlignedText(NamedTuple):
    """A text and its translation by one model: sentences, words of both sides, and links between words."""

    direction: str
    sentences: list[PlacedSentence]
    source: list[Span]
    target: list[Span]
    links: list[tuple[Span, Span]]


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
        known = one if made == one.text else None
        placed.append(PlacedSentence(one.source, made, (start, at), (len(whole), len(whole) + len(made)), known))
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
        source_words, source_index = join_tokens(sentence.text, source_tokens)
        target_words, target_index = join_tokens(sentence.translation, target_tokens)
        source = [(start + sentence.source[0], end + sentence.source[0]) for start, end in source_words]
        target = [(start + sentence.target[0], end + sentence.target[0]) for start, end in target_words]
        found.source.extend(source)
        found.target.extend(target)
        for t, s in alignments.get(i, []):
            a, b = source_index.get(s), target_index.get(t)
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


def join_tokens(text: str, tokens: Sequence[Span]) -> tuple[list[Span], dict[int, int]]:
    """Words, and the index of each token's word. Adjacent tokens within one run of letters make a word."""
    words: list[Span] = []
    index: dict[int, int] = {}
    for i, (start, end) in enumerate(tokens):
        if start >= end:
            continue
        if words and words[-1][1] == start and continues_word(text[start - 1]) and continues_word(text[start]):
            words[-1] = (words[-1][0], end)
        else:
            words.append((start, end))
        index[i] = len(words) - 1
    return words, index


def continues_word(letter: str) -> bool:
    """In scripts without spaces between words, every letter may be a word."""
    return letter in JOINERS or (letter.isalnum() and letter < FIRST_CJK)


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
