"""Which words of a text and of its translation belong together, as the models on the way between them attend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from glassformer.data import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.decode.scoring import Alignment
from glassformer.pipelines.text import TranslatedSentence
from glassformer.pipelines.translator import Translator

AT_ONCE = 16  # sentences through the model
HOLDS = "'’-_"  # between letters, they make one word of two
UNSPACED = "\u2e80"  # from this character on, letters stand without spaces between words

Span = tuple[int, int]


class Told(NamedTuple):
    """A sentence and its translation, and their places in both texts."""

    text: str
    translation: str
    read: Span
    written: Span


class Hopped(NamedTuple):
    """A text through one model: its sentences, the words of both sides, and which belong together."""

    direction: str
    told: list[Told]
    read: list[Span]
    written: list[Span]
    links: list[tuple[Span, Span]]


def placed(
    read: str, written: str, sentences: Sequence[TranslatedSentence], chosen: Sequence[str | None] = ()
) -> tuple[str, list[Told]]:
    """A translation with what was `chosen` in it, by the place of its sentence; and its sentences."""
    whole, told = "", list[Told]()
    at = after = 0
    for i, one in enumerate(sentences):
        start, begin = read.index(one.source, at), written.index(one.text, after)
        text = (chosen[i] if i < len(chosen) else None) or one.text
        whole += written[after:begin]
        told.append(Told(one.source, text, (start, start + len(one.source)), (len(whole), len(whole) + len(text))))
        whole += text
        at, after = start + len(one.source), begin + len(one.text)
    return whole + written[after:], told


def hopped(direction: str, translator: Translator, told: list[Told], check: Callable[[], None]) -> Hopped:
    """What a model's attention tells of sentences and their translations; `check` is called now and then."""
    found = Hopped(direction, told, [], [], [])
    tokenizer = translator.tokenizer
    if not isinstance(tokenizer, Tokenizer):  # of which nobody knows where its tokens stand
        return found
    sources = tokenizer.encode_source([one.text for one in told])
    targets = tokenizer.encode_target([one.translation for one in told])
    longest = translator.max_source_length()
    rows = [i for i, ids in enumerate(sources) if ids and targets[i] and max(len(ids), len(targets[i])) < longest]
    attended: dict[int, Alignment] = {}
    for start in range(0, len(rows), AT_ONCE):
        check()
        some = rows[start : start + AT_ONCE]
        made = translator.engine.align([sources[i] for i in some], [[Hypothesis(targets[i], 0.0)] for i in some])
        attended |= {i: one for i, (one,) in zip(some, made, strict=True)}
    for i, sentence in enumerate(told):
        text, translation = sentence.text, sentence.translation
        read = tokens_at(lambda ids: tokenizer.decode_source([ids])[0], sources[i], text)
        written = tokens_at(lambda ids: tokenizer.decode_target([ids])[0], targets[i], translation)
        words, others = words_of(text, read), words_of(translation, written)
        home, away = word_at(words, read), word_at(others, written)
        a, b = moved(words, sentence.read[0]), moved(others, sentence.written[0])
        found.read.extend(a)
        found.written.extend(b)
        for t, s in attended.get(i, []):
            one, other = home.get(s), away.get(t)
            if one is None or other is None:  # the tag that says into which language, or a space
                continue
            if has_letters(text, words[one]) == has_letters(translation, others[other]):
                found.links.append((a[one], b[other]))
    return found


def tokens_at(decode: Callable[[Sequence[int]], str], ids: Sequence[int], text: str) -> list[Span]:
    """Where each token stands, without the white space around it; nowhere, if they do not give the text back."""
    if decode(ids) != text:
        return []
    ends = [0, *(len(decode(ids[: i + 1]).rstrip("\ufffd")) for i in range(len(ids)))]
    found = []
    for start, end in pairwise(ends):
        piece = text[start:end]
        lead = len(piece) - len(piece.lstrip())
        found.append((start + lead, max(start + lead, start + len(piece.rstrip()))))
    return found


def words_of(text: str, tokens: Sequence[Span]) -> list[Span]:
    """Tokens put together to words: those of one run of letters, where a language has such runs."""
    found: list[Span] = []
    for start, end in tokens:
        if start >= end:
            continue
        if found and found[-1][1] == start and holds(text[start - 1]) and holds(text[start]):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def holds(letter: str) -> bool:
    """Whether a letter is part of a word that goes on; every Chinese one may be a word."""
    return letter in HOLDS or (letter.isalnum() and letter < UNSPACED)


def word_at(words: Sequence[Span], tokens: Sequence[Span]) -> dict[int, int]:
    """The word that each token is in."""
    return {
        k: i
        for k, (start, end) in enumerate(tokens)
        for i, word in enumerate(words)
        if start < end and word[0] <= start < word[1]
    }


def has_letters(text: str, span: Span) -> bool:
    return any(map(str.isalnum, text[slice(*span)]))


def moved(spans: Sequence[Span], by: int) -> list[Span]:
    return [(start + by, end + by) for start, end in spans]


def meet(a: Span, b: Span) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def cut(text: str, stretches: Sequence[Span]) -> tuple[list[str], dict[int, int]]:
    """A text in pieces, cut where a stretch begins or ends; and which piece begins where."""
    edges = sorted({0, len(text), *(edge for one in stretches for edge in one)})
    return [text[a:b] for a, b in pairwise(edges)], {start: i for i, start in enumerate(edges[:-1])}


def between(pieces: dict[int, int], span: Span) -> Span:
    """From which piece to which a span reaches."""
    inside = [i for start, i in pieces.items() if span[0] <= start < span[1]]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)
