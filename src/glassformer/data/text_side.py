"""One vocabulary at work: text to ids and back, word by word."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain

import numpy as np
import tokenizers
from numpy.typing import NDArray

from glassformer.common.errors import InputError
from glassformer.data.vocabulary import BYTES, END, PAD, SPECIALS, START, TAG

Flat = tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]  # ids of texts end to end, and how many each has

CACHED_WORDS = 1 << 18
CACHED_LENGTH = 24
SHARED_WORDS = 16  # from which on Rust's threads share them: to call these costs more than a few words
_SURROGATE = re.compile("[\ud800-\udfff]")
_VISIBLE = str.maketrans({" ": "▁", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


class Side:
    """One vocabulary: the Rust tokenizer and what its pieces stand for."""

    def __init__(self, rust: tokenizers.Tokenizer) -> None:
        self.rust = rust
        form = json.loads(rust.to_str())
        self.words = form["model"]["type"] == "WordLevel"
        self.join = _join_marker(form) if self.words else ""
        vocabulary: dict[str, int] = rust.get_vocab()
        self.size = max(vocabulary.values()) + 1
        self.alphabet = frozenset(piece for piece in vocabulary if len(piece) == 1)
        self.pieces = [*SPECIALS, *[""] * (self.size - len(SPECIALS))]
        for piece, id in vocabulary.items():
            self.pieces[id] = piece
        spelt = {piece: bytes([byte]) for byte, piece in enumerate(BYTES)}
        found = {match[1]: id for id, piece in enumerate(self.pieces) if (match := TAG.fullmatch(piece))}
        self.tags = dict(sorted(found.items()))
        silent = {PAD, START, END, *self.tags.values()}
        self.bytes = [b"" if id in silent else spelt.get(p, p.encode()) for id, p in enumerate(self.pieces)]
        self.silent = silent
        # No piece crosses from a character to a following space, so a text is the chain of its space-separated words,
        # and remembering the frequent ones spares most of the work. An empty word is a lone space.
        space = [] if self.words else self._encode_words([" "])[0][:1]
        self.known: dict[str, list[int]] = {"": space}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        split = [text.split(" ") if text else [] for text in texts]
        table = self._table(set().union(*split))
        return [list(chain.from_iterable(map(table.__getitem__, words))) for words in split]

    def encode_flat(self, texts: Sequence[str], dtype: np.dtype[np.unsignedinteger]) -> Flat:
        """The same end to end, for many texts, none of them empty: no list is made for any of them."""
        words = " ".join(texts).split(" ")
        table = self._table(set(words))
        pieces = list(map(table.__getitem__, words))
        sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
        counts = np.fromiter((text.count(" ") for text in texts), np.int64, len(texts)) + 1
        lengths = np.add.reduceat(sizes, np.cumsum(counts) - counts) if len(counts) else counts
        return np.fromiter(chain.from_iterable(pieces), dtype, int(lengths.sum())), lengths

    def _table(self, met: set[str]) -> dict[str, list[int]]:
        """The ids of these words."""
        known = self.known
        unseen = [word for word in met if word not in known]
        fresh = dict(zip(unseen, self._encode_words(unseen), strict=True))
        table = fresh | {word: known[word] for word in met if word not in fresh}
        if len(known) < CACHED_WORDS:
            known.update((word, ids) for word, ids in fresh.items() if len(word) <= CACHED_LENGTH)
        return table

    def _encode_words(self, words: list[str]) -> list[list[int]]:
        try:
            return self._encode_clean(words)
        except (TypeError, UnicodeEncodeError):  # half of a surrogate pair: no text, and unknown to Rust
            return self._encode_clean([_SURROGATE.sub("\ufffd", word) for word in words])

    def _encode_clean(self, words: list[str]) -> list[list[int]]:
        if len(words) < SHARED_WORDS:
            return [self.rust.encode(word, add_special_tokens=False).ids for word in words]
        return [encoding.ids for encoding in self.rust.encode_batch_fast(words, add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        self._check(ids)
        if self.words:
            text = " ".join(self.pieces[id] for id in ids if id not in self.silent)
            return (text + " ").replace(self.join, "").removesuffix(" ") if self.join else text
        return b"".join(self.bytes[id] for id in ids).decode("utf-8", "replace").removeprefix(" ")

    def readable(self, ids: Sequence[int]) -> list[str]:
        self._check(ids)
        return [self.pieces[id].translate(_VISIBLE) for id in ids]

    def _check(self, ids: Sequence[int]) -> None:
        if len(ids) and not 0 <= min(ids) <= max(ids) < self.size:
            raise InputError(
                f"ids must lie in 0..{self.size - 1}, the size of this vocabulary; got {min(ids)}..{max(ids)}"
            )


def _join_marker(form: dict[str, object]) -> str:
    decoder = form.get("decoder")
    for step in decoder.get("decoders", []) if isinstance(decoder, dict) else []:
        if step["type"] == "Replace" and "String" in step["pattern"]:
            return str(step["pattern"]["String"])
    return ""
