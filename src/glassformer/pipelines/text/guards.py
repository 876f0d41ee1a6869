"""What to do with an input that a model was not made for: noise must not become more noise, and is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from glassformer.data import PairTokenizer
from glassformer.data.coverage import split_words
from glassformer.pipelines.text.translated import Note
from glassformer.pipelines.translator import Translator

GROWTH, SLACK = 3, 10  # a translation has at most so many times the tokens of its source, and so many more
UNIT = 12  # tokens, the longest stretch whose repetition is looked for
RUN = 8  # tokens of repetition that no source has to explain
FEWEST = 3  # words that must be unknown before a text counts as foreign
TIMES = 30  # more are not counted: where all says one thing, they would be counted again from each token
_RUN = re.compile(rf"(?=((.{{1,{UNIT}}})\2{{2,{TIMES}}}))", re.DOTALL)
_BYTE = re.compile(r"<0x[0-9A-F]{2}>|<unk>")

Detect = Callable[[str], str | None]


def most_tokens(length: int) -> int:
    """The most tokens of the translation of `length` tokens."""
    return GROWTH * length + SLACK


def repetition(tokens: Sequence[str]) -> int:
    """The tokens of the longest stretch that says one thing, of at most UNIT tokens, three times or more in a row."""
    letters = {token: chr(number) for number, token in enumerate(dict.fromkeys(tokens), 0x10000)}
    text = "".join(map(letters.__getitem__, tokens))
    return max((len(match[1]) for match in _RUN.finditer(text)), default=0)


def loops(tokenizer: PairTokenizer, source: Sequence[int], target: Sequence[str]) -> bool:
    """Whether a translation repeats itself, and its source does not."""
    run = repetition(target)
    return run > RUN and run > 2 * repetition(tokenizer.source_pieces(source)) + RUN


def warnings(translator: Translator, text: str, source: str, detect: Detect | None) -> list[Note]:
    """What to say of a text before it is translated."""
    notes = []
    found = detect(text) if detect is not None and source else None
    if found is not None and found != source:
        notes.append(Note("language", f"this looks like `{found}`, but is translated as if it were `{source}`"))
    words = {word.casefold() for word in split_words(text)}
    unmet = translator.unfamiliar([text])
    if len(unmet) >= FEWEST and 2 * len(unmet) > len(words):
        notes.append(Note("unfamiliar", translator.about.warning(unmet)))
    return notes


def unreadable(tokenizer: PairTokenizer, text: str) -> bool:
    """Whether most characters of a text are none that the model has learnt: it would be made up from nothing."""
    pieces = [] if text.isascii() else tokenizer.source_pieces(tokenizer.encode_source([text])[0])
    strange = sum(1 for piece in pieces if _BYTE.fullmatch(piece))
    return strange >= FEWEST and 2 * strange > len(pieces)
