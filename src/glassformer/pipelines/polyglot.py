"""Any text into any language of the box: which translator, which way, and by way of which language."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple, Unpack, overload

import torch

from glassformer.common.arguments import check_texts, checked
from glassformer.common.errors import ConfigError
from glassformer.data.protect import spans
from glassformer.decode import Search
from glassformer.decode.precision import Precision
from glassformer.decode.search import SearchOptions
from glassformer.pipelines import box
from glassformer.pipelines.language.invariants import Glossary
from glassformer.pipelines.language.language import (
    Guess,
    confident_language,
    detect_languages,
    language_code,
    language_name,
)
from glassformer.pipelines.language.sentences import split_sentences
from glassformer.pipelines.text import Note, TextTranslator, TranslatedText
from glassformer.pipelines.text.translator import already_in, sentence_languages
from glassformer.pipelines.translator import Translator

LISTED = 10  # terms of a glossary


class TranslateOptions(SearchOptions, total=False):
    glossary: Glossary | None
    device: str
    precision: Precision
    search: Search | None


@overload
def translate(  # type: ignore[overload-overlap]  # a str is an iterable of str too, and the first that fits holds
    text: str,
    to: str | None = None,
    source: str | None = None,
    **options: Unpack[TranslateOptions],
) -> str: ...
@overload
def translate(
    text: Iterable[str],
    to: str | None = None,
    source: str | None = None,
    **options: Unpack[TranslateOptions],
) -> list[str]: ...
@checked
def translate(
    text: str | Iterable[str],
    to: str | None = None,
    source: str | None = None,
    *,
    glossary: Glossary | None = None,
    device: str = "cpu",
    precision: Precision = "auto",
    search: Search | None = None,
    **options: Unpack[SearchOptions],
) -> str | list[str]:
    """A text, or each of several, in another language, by the translators that come with glassformer.

        gf.translate("Where is the nearest station?", to="de")

    Without `source`, the language of each text is detected; without `to`, what is not English becomes English. Notes on
    a translation, such as that it went by way of English, are warnings. The translators stay loaded.
    """
    texts = [text] if isinstance(text, str) else check_texts(text, "text")
    pairs = language_pairs(texts, to, source)
    found = polyglot(device, precision).details(texts, pairs, glossary=glossary, search=search, **options)
    unused = [] if glossary is None else glossary.unused(one.text for one in found)
    for note in dict.fromkeys((*(note.text for one in found for note in one.notes), *unused_terms(unused))):
        warnings.warn(note, stacklevel=3)
    return found[0].text if isinstance(text, str) else [one.text for one in found]


def unused_terms(terms: Sequence[str]) -> list[str]:
    named = ", ".join(terms[:LISTED]) + (f" and {len(terms) - LISTED:,} more" if len(terms) > LISTED else "")
    return [f"terms of the glossary that no translation holds: {named}"] if terms else []


@cache
def polyglot(device: str, precision: Precision) -> Polyglot:
    return Polyglot(device, precision)


class Polyglot:
    """The translators of the box, each loaded when it is first needed."""

    def __init__(self, device: str | torch.device = "cpu", precision: Precision = "auto") -> None:
        self.device, self.precision = device, precision
        self._loaded: dict[str, Translator] = {}

    def translator(self, source: str, target: str, glossary: Glossary | None = None) -> TextTranslator:
        """From one language to another; two that no model joins, by way of English. The same twice is for a text with
        sentences of others."""
        first = source if source != target else next(one for one in box.LANGUAGES if one != target)
        translators = [self._load(one) for one in box.route(first, target)]
        other = partial(self.translator, target=target, glossary=glossary)
        return TextTranslator(
            *translators,
            source=first,
            target=target,
            glossary=glossary,
            detect=confident_language,
            main=source,
            other=other,
        )

    def _load(self, direction: box.Direction) -> Translator:
        if direction.model not in self._loaded:
            folder = box.folder(direction.model)
            self._loaded[direction.model] = Translator.load(folder, self.device, self.precision, to=direction.to)
        return self._loaded[direction.model].toward(direction.to)

    def details(
        self,
        texts: Sequence[str],
        pairs: Sequence[LanguagePair],
        *,
        glossary: Glossary | None = None,
        search: Search | None = None,
        **options: Unpack[SearchOptions],
    ) -> list[TranslatedText]:
        """The translation of each text with its notes; texts of one language go together."""
        found = [TranslatedText(text) for text in texts]
        for source, target in dict.fromkeys((one.source, one.target) for one in pairs if not one.stays):
            rows = [i for i, one in enumerate(pairs) if (one.source, one.target) == (source, target)]
            translator = self.translator(source, target, glossary)
            made = translator.details([texts[i] for i in rows], search=search, **options)
            for i, one in zip(rows, made, strict=True):
                found[i] = one
        return [replace(one, notes=(*pair.notes, *one.notes)) for one, pair in zip(found, pairs, strict=True)]


class LanguagePair(NamedTuple):
    """From which language into which a text goes; the same twice where it stays, as a note says, or a part of it."""

    source: str
    target: str
    notes: tuple[Note, ...] = ()

    @property
    def stays(self) -> bool:
        return self.source == self.target and (not self.source or self.notes != ())


def language_pairs(texts: Sequence[str], to: str | None, source: str | None) -> list[LanguagePair]:
    """From which language into which each text goes, detected where `source` is not given."""
    target = None if to is None else language_code(to, box.LANGUAGES)
    if source is None:
        guesses = detect_languages(texts, box.LANGUAGES, target)
        return [_pair(text, target, guess) for text, guess in zip(texts, guesses, strict=True)]
    code = language_code(source, box.LANGUAGES)
    target = target or default_target(code)
    if code == target:
        raise ConfigError(f"both from and to={to!r}: that is {language_name(code)} twice; name two languages")
    return [LanguagePair(code, target) for _ in texts]


def _pair(text: str, target: str | None, guess: Guess) -> LanguagePair:
    if guess.code is None:  # nothing in it could be translated
        return LanguagePair("", "")
    to, notes = target or default_target(guess.code), tuple[Note, ...]()
    if guess.code == to:
        pieces = split_sentences(text, to, spans(text))
        if set(sentence_languages(pieces, to, box.LANGUAGES.__contains__, confident_language)) <= {to, None}:
            notes = already_in(to, text)
    elif guess.other is not None:
        looks = f"this looks like `{guess.other}`, but is translated as {language_name(guess.code)}"
        notes = (Note("language", looks),)
    return LanguagePair(guess.code, to, notes)


def default_target(code: str) -> str:
    """What a language is translated into where no target is given."""
    if code != box.PIVOT:
        return box.PIVOT
    others = " or ".join(f"to={one!r} ({language_name(one)})" for one in box.LANGUAGES if one != code)
    raise ConfigError(f"from {language_name(code)} into which language? Say {others}")
