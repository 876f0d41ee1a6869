"""A translated text, and what there is to say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# How a sentence came about:
#   same           there was nothing to translate
#   plain          as the model wrote it
#   clauses        a long sentence clause by clause, which the model found likelier
#   digits         with digits for numbers in words that the model said wrongly
#   placeholders   with placeholders for what must not change, filled in afterwards
#   pieces         what stands between that, piece by piece
#   source         untranslated, for nothing else kept it
#   unread         untranslated, for the model knows too few of its characters
Way = Literal["same", "plain", "clauses", "digits", "placeholders", "pieces", "source", "unread"]
Kind = Literal["pivot", "splitter", "language", "unfamiliar", "characters", "cut", "kept"]


@dataclass(frozen=True)
class Note:
    """What a reader should know of a translation: `kind` for programs, `text` for people."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence of a text and its translation. One that is not `finished` was stopped by the limit of length."""

    source: str
    text: str
    finished: bool = True
    way: Way = "plain"


@dataclass(frozen=True)
class TranslatedText:
    """The translation of a text: `finished` if every sentence is, `via` the text in between where there was one."""

    text: str
    sentences: tuple[TranslatedSentence, ...] = ()
    notes: tuple[Note, ...] = ()
    via: str | None = None

    @property
    def finished(self) -> bool:
        return all(sentence.finished for sentence in self.sentences)
