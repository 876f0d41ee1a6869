"""A translator as a folder holds it, and a translation, put together from those of its text's parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from glassformer.common.errors import ConfigError, InputError
from glassformer.data import About, Directed, PairTokenizer, Tokenizer
from glassformer.decode import Hypothesis
from glassformer.decode.constraints import Placeholders
from glassformer.decode.scoring import Alignment
from glassformer.model import EncoderDecoder
from glassformer.pipelines.language.cutting import Part, joined
from glassformer.weights import bundle
from glassformer.weights.lora import load_adapter


class Speller(Protocol):
    """What makes text of ids."""

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]: ...


class TooLong(InputError):
    """A text that cannot be split: the `index`-th of those given as `name`."""

    def __init__(self, name: str, index: int, reason: str) -> None:
        super().__init__(name, index, reason)  # all three, so that it can be pickled
        self.name, self.index, self.reason = name, index, reason

    def __str__(self) -> str:
        return f"{self.name}[{self.index}] {self.reason}"


@dataclass(frozen=True)
class Translation:
    """A target, its score (the log-probability over the length rule's divisor) and its tokens.

    A text too long for the model is translated in `parts`. Its score is then the mean of theirs, each counted by the
    tokens of its source: the total log-probability cannot be told from scores that are divided by length.

    On request, `alignment` pairs the place of each of `tokens` with that of the one in `source_tokens` it came from.

    One that is not `finished` was stopped, it or a part of it, by the limit of length before it came to an end.
    """

    text: str
    score: float
    tokens: list[str]
    parts: int = 1
    source_tokens: list[str] | None = None
    alignment: Alignment | None = None
    finished: bool = True


@dataclass(frozen=True)
class Alternative:
    """A token that may come next, its log-probability, and the likeliest translation that goes on from it."""

    token: str
    log_probability: float
    translation: Translation


def assemble(
    tokenizer: PairTokenizer,
    parts: list[Part],
    written: list[list[Hypothesis]],
    nbest: int = 1,
    aligned: list[list[Alignment]] | None = None,
) -> list[Translation]:
    """A text's translations from those of its parts, the best with the best, the second with the second."""
    if not parts:
        empty = Translation("", 0.0, []) if aligned is None else Translation("", 0.0, [], 1, [], [])
        return [empty] * nbest
    lengths = [len(part.ids) for part in parts]
    translations = []
    for rank, ranked in enumerate(zip(*written, strict=False)):  # as many as the part with the fewest has
        score = sum(h.score * length for h, length in zip(ranked, lengths, strict=True)) / sum(lengths)
        source_tokens: list[str] | None = None
        alignment: Alignment | None = None
        if aligned is not None:
            source_tokens, alignment, target_tokens = [], [], 0
            for part, h, pairs in zip(parts, ranked, aligned, strict=True):
                alignment += [(target_tokens + t, len(source_tokens) + s) for t, s in pairs[rank]]
                source_tokens += tokenizer.source_pieces(part.ids)
                target_tokens += len(h.ids)
        translations.append(
            Translation(
                joined(parts, tokenizer.decode_target([h.ids for h in ranked])),
                ranked[0].score if len(parts) == 1 else score,
                [piece for h in ranked for piece in tokenizer.target_pieces(h.ids)],
                len(parts),
                source_tokens,
                alignment,
                all(h.finished for h in ranked),
            )
        )
    return translations


def placeholders_of(tokenizer: PairTokenizer, texts: Sequence[str]) -> Placeholders | None:
    """Those that the target of each text must hold; None where the model has not learnt to copy any."""
    marks = tokenizer.placeholders if isinstance(tokenizer, Tokenizer) else ""
    known = [(mark, ids[-1]) for mark, ids in zip(marks, tokenizer.encode_target(list(marks)), strict=True)]
    wanted = tuple(tuple(id for mark, id in known if mark in text) for text in texts)
    return Placeholders(tuple(id for _, id in known), wanted) if known else None


def spelt(tokenizer: Speller, tokens: Iterable[int]) -> Iterator[str]:
    """The text of a growing target, each letter as soon as no later token can change it."""
    ids: list[int] = []
    text = shown = ""
    for token in tokens:
        ids.append(token)
        (text,) = tokenizer.decode_target([ids])
        # A letter whose bytes have not all come yet reads as the replacement character.
        if len(text) > len(shown) and not text.endswith("\ufffd"):
            yield text[len(shown) :]
            shown = text
    if len(text) > len(shown):
        yield text[len(shown) :]


class Opened(NamedTuple):
    """A translator in a folder, and how its model is loaded once more."""

    model: EncoderDecoder
    tokenizer: PairTokenizer
    about: About | None
    again: Callable[[], EncoderDecoder] | None


def opened(folder: Path, source: str | None, to: str | None, rounded: bool, adapter: str | Path | None) -> Opened:
    """What a folder holds, ours or a published one, told its languages, and with what an `adapter` has learnt."""
    tokenizer: PairTokenizer
    about: About | None = None
    if not bundle.is_bundle(folder) and os.path.isfile(folder / "config.json"):
        from glassformer.weights.pretrained.loader import load_published

        model, tokenizer = load_published(folder, source, to)
        if adapter is not None:
            load_adapter(model, adapter)
        tokenizer = tokenizer if to is None else toward(tokenizer, to)
        about = tokenizer.card(About()) if isinstance(tokenizer, Directed) else None
        again = bundle.reloader(folder, lambda place: load_published(place, source, to)[0])
    else:
        loaded = bundle.load(folder, rounded, adapter)
        model = loaded.of_kind(EncoderDecoder)
        if to is None and (tags := loaded.tokenizer.tags):
            raise InputError(f"{folder} translates into {' and '.join(tags)}; say into which: to={tags[0]!r}")
        tokenizer = own = loaded.tokenizer if to is None else loaded.tokenizer.toward(to)
        about = own.card(About.of_recipe(loaded.recipe))
        if source is not None and source != about.source:  # it reads the language that it does not write
            what = f"translates from {about.source}" if about.source else "has one source"
            raise InputError(f"{folder} {what}; source={source!r} cannot be chosen")
        again = bundle.reloader(folder, lambda place: bundle.load(place).of_kind(EncoderDecoder))
    return Opened(model, tokenizer, about, again if adapter is None else None)


def toward(tokenizer: PairTokenizer, language: str) -> PairTokenizer:
    """The same, translating into another of the languages that it knows."""
    if not isinstance(tokenizer, Directed):
        raise InputError(f"this model translates into one language only; to={language!r} cannot be chosen")
    return tokenizer.toward(language)


def check_batch_tokens(batch_tokens: int | None) -> None:
    if batch_tokens is not None and batch_tokens < 1:
        raise ConfigError(f"batch_tokens={batch_tokens} must be at least 1")
