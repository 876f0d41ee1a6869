"""A little language with synonyms, in which the true probability of every text is known.

Each source symbol has two ways to be said:

    a word with eight possible endings     probability LOOSE, an eighth of it each
    a word with one ending                 probability 1 - LOOSE: the likeliest phrase, though not the likeliest word

and a share EMPTY of the training targets is missing. A text of n symbols has a probability of (1 - LOOSE)^n at best, so
the empty text becomes the likeliest of all once the sources are long enough, however small the share is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from glassformer.labs.toy import FIRST, PAD, Pair

START, END = 1, 2
SYMBOLS = 3
WORD, FIRM, ENDING = FIRST + SYMBOLS, FIRST + 2 * SYMBOLS, FIRST + 3 * SYMBOLS  # first ids of each kind of word
ENDINGS = 8
FIRM_ENDING = ENDING + ENDINGS
LOOSE, EMPTY = 0.8, 0.02
SHORT, LONG = 1, 3  # symbols of a source


def lessons(seed: int, steps: int, batch: int = 64) -> Iterator[Pair]:
    """Source, start, target in a row; only the target is to be learnt. Long sources are harder and come more often."""
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        shape = (batch, SHORT if step % 4 == 0 else LONG)
        src = torch.randint(SYMBOLS, shape, generator=generator)
        loose = torch.rand(shape, generator=generator) < LOOSE
        word = torch.where(loose, WORD, FIRM) + src
        ending = torch.where(loose, torch.randint(ENDING, FIRM_ENDING, shape, generator=generator), FIRM_ENDING)
        phrases = torch.stack((word, ending), dim=2).flatten(1)
        tgt = torch.cat((phrases, torch.full((batch, 1), END)), dim=1)
        empty = torch.rand(batch, generator=generator) < EMPTY
        tgt[empty] = PAD
        tgt[empty, 0] = END
        ids = torch.cat((src + FIRST, torch.full((batch, 1), START), tgt[:, :-1]), dim=1)
        yield ids, torch.cat((torch.full_like(src, PAD), tgt), dim=1)


def truly(source: Sequence[int], ids: Sequence[int]) -> float:
    """The probability of a text in the language itself, where nothing is missing; zero if it is wrong."""
    if len(ids) != 2 * len(source):
        return 0.0
    probability = 1.0
    for symbol, word, ending in zip(source, ids[::2], ids[1::2], strict=True):
        if word == WORD + symbol and ENDING <= ending < FIRM_ENDING:
            probability *= LOOSE / ENDINGS
        elif word == FIRM + symbol and ending == FIRM_ENDING:
            probability *= 1 - LOOSE
        else:
            return 0.0
    return probability
