"""Texts and images with a label each, as pairs: the store holds the label's number as the source.

An image is a text of one character a pixel, so that stores and batches treat both alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from glassformer.common.errors import DataError, did_you_mean, one_of
from glassformer.common.files import read_json, write_text
from glassformer.data.corpus import Corpus, Pair
from glassformer.data.readers import BRIGHTEST, DARKEST, load_images, read_pairs
from glassformer.data.tokenizer import Flat, Tokenizer, Vocabulary
from glassformer.data.vocabulary import END, PAD, SPECIALS, START, UNK

FILE = "labels.json"
MOST_LABELS = 10_000


@dataclass(frozen=True)
class Labels:
    """The names of the labels that a corpus has, in order; of images also their channels and side."""

    names: tuple[str, ...]
    image: tuple[int, int] | None = None

    @classmethod
    def collect(cls, corpora: Sequence[Corpus], known: Sequence[str] = ()) -> Labels:
        """All that these corpora have; where they are among those `known` before, these."""
        names: set[str] = set()
        shapes = {load_images(corpus)[0].shape[1:3] for corpus in corpora if corpus.has_images}
        if len(shapes) > 1:
            raise DataError(f"images of different shapes, {' and '.join(map(str, shapes))}; bring them to one")
        for _, label in chain.from_iterable(map(read_pairs, corpora)):
            names.add(label)
            if len(names) > MOST_LABELS:
                raise DataError(
                    f"there are over {MOST_LABELS:,} different labels, such as {label!r:.60}; is the second column of "
                    f"the corpus a label?"
                )
        names.discard("")
        if known and names.issubset(known):
            return cls(tuple(known), shapes.pop() if shapes else None)
        if len(names) < 2:
            raise DataError(f"there is one label only, {one_of(names) or 'an empty one'}; give texts of two or more")
        return cls(tuple(sorted(names)), shapes.pop() if shapes else None)

    def save(self, folder: Path) -> None:
        write_text(folder / FILE, json.dumps({"labels": self.names, "image": self.image}, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Labels | None:
        found = read_json(folder / FILE)
        return None if found is None else cls(tuple(found["labels"]), found["image"] and tuple(found["image"]))


class LabelledTokenizer(Tokenizer):
    """A tokenizer of texts that have labels: a pair is a text and its label's name."""

    def __init__(self, tokenizer: Tokenizer, labels: Labels) -> None:
        self.texts, self.input_map = tokenizer, tokenizer.input_map
        self.joint, self.words, self.to = True, tokenizer.words, None
        self.labels, self.label_names = labels, labels.names
        self._numbers = {name: number for number, name in enumerate(labels.names, 1)}  # 0 is padding

    @property
    def src_size(self) -> int:
        return len(self.labels.names) + 1

    @property
    def tgt_size(self) -> int:
        return self.texts.tgt_size

    @property
    def placeholders(self) -> str:
        return self.texts.placeholders

    @property
    def pixels(self) -> int:
        """How many an image has; 0 where texts are read."""
        return 0 if self.labels.image is None else self.labels.image[0] * self.labels.image[1] ** 2

    def settings(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What a model of such pairs has to have, by what a recipe asks for."""
        marks = {"pad_id": PAD, "start_id": START, "end_id": END}
        return {"vocab_size": self.tgt_size, "labels": len(self.labels.names), **marks}

    def encode_flat(self, pairs: Sequence[Pair], dtype: np.dtype[np.unsignedinteger]) -> tuple[Flat, Flat]:
        numbers = np.array([self.number(label) for _, label in pairs], dtype=dtype)
        return (numbers, np.ones(len(pairs), dtype=np.int64)), self._texts([text for text, _ in pairs], dtype)

    def _texts(self, texts: list[str], dtype: np.dtype[np.unsignedinteger]) -> Flat:
        return self.texts.encode_flat([("", text) for text in texts], dtype)[1]

    def number(self, label: str) -> int:
        if label not in self._numbers:
            near = did_you_mean(label, self.labels.names)
            raise DataError(
                f"the label {label!r:.60} is not one of data.train's, {one_of(self.labels.names[:20])}{near}"
            )
        return self._numbers[label]

    def fingerprint(self) -> str:
        return hashlib.sha256(f"{self.texts.fingerprint()}{self.labels}".encode()).hexdigest()


class ImageTokenizer(LabelledTokenizer):
    """The same for images: the ids are the pixels."""

    tgt_size: int = BRIGHTEST + 1

    def __init__(self, labels: Labels) -> None:
        nothing = tokenizers.models.WordLevel({SPECIALS[UNK]: UNK}, unk_token=SPECIALS[UNK])
        super().__init__(Tokenizer(Vocabulary(tokenizers.Tokenizer(nothing))), labels)

    def settings(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self.labels.image is not None
        channels, side = self.labels.image
        none: dict[str, Any] = dict.fromkeys(("pad_id", "start_id", "end_id"))
        own = {"vocab_size": len(self.labels.names), "labels": len(self.labels.names)}
        squares = (side // asked["patch_size"]) ** 2
        return {**own, **none, "channels": channels, "image_size": side, "max_length": squares + 1}

    def _texts(self, texts: list[str], dtype: np.dtype[np.unsignedinteger]) -> Flat:
        for text in texts:
            if len(text) != self.pixels:
                raise DataError(f"an image has {len(text):,} pixels, where those of data.train have {self.pixels:,}")
        pixels = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4") - DARKEST
        return pixels.astype(dtype), np.array([len(text) for text in texts], dtype=np.int64)
