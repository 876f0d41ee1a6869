"""What a model learns: one small table of objectives over the same stores, batches and steps.

    objective   what it reads                   what it says of it                        the model
    translate   a source, and a target so far   the target's next token                   EncoderDecoder
    language    a text so far                   its next token                            DecoderOnly
    masked      a text, some tokens hidden      the hidden tokens                         EncoderOnly
    denoise     a text, some runs hidden        the runs, or the whole text               EncoderDecoder
    classify    a text                          its label                                 EncoderOnly
    image       an image, cut into squares      its label                                 EncoderOnly

The loss of each is the cross-entropy of its labels, a mean over all that are not left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from glassformer.common.errors import ConfigError
from glassformer.data import END, PAD, Batch, Tokenizer
from glassformer.data.noise import (
    Noise,
    SpanCorruption,
    TextInfilling,
    TokenMasking,
    sentence_ends,
    sentinel,
    text_pieces,
)
from glassformer.data.readers import BRIGHTEST
from glassformer.data.vocabulary import MASK
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from glassformer.train.options import Train

Content = Literal["pairs", "plain texts", "labelled texts", "images"]
Rows = dict[str, NDArray[Any]]


def with_perplexity(loss: float, right: float) -> dict[str, float]:
    return {"valid_perplexity": math.exp(min(loss, 700.0))}


def with_accuracy(loss: float, right: float) -> dict[str, float]:
    return {"valid_accuracy": right}


@dataclass(frozen=True)
class Objective:
    """`rows` makes of a batch the labels, and by their names the things that the model's forward takes, each with a
    row for every row of the batch."""

    model: type[Model]
    rows: Callable[[Batch], Rows]
    content: Content = "plain texts"
    ignored: int = PAD  # the label of positions that do not count
    pieces: Callable[[Train, int], list[str]] = lambda train, max_tokens: []  # special ones, that no text yields
    noise: Callable[[Train, Tokenizer, list[str]], Noise] | None = None  # makes a pair of a text, given these pieces
    margin: int = 1  # special tokens around a text
    report: Callable[[float, float], dict[str, float]] = lambda loss, right: {}  # of loss and share right

    @property
    def monolingual(self) -> bool:
        return self.content == "plain texts"

    @property
    def labelled(self) -> bool:
        """Whether each text, or image, has a label."""
        return self.content in ("labelled texts", "images")


def translation_rows(batch: Batch) -> Rows:
    """Packed rows have places in place of a mask."""
    found = {"labels": batch.labels, "src": batch.src, "tgt": batch.tgt_in}
    if batch.src_places is None or batch.tgt_places is None:
        return found | {"src_mask": batch.src_mask}
    return found | {"src_places": batch.src_places, "tgt_places": batch.tgt_places}


def language_rows(batch: Batch) -> Rows:
    """Padding follows a text, where no token of it looks: nothing has to be masked."""
    found = {"labels": batch.labels, "ids": batch.tgt_in}
    return found if batch.tgt_places is None else found | {"places": batch.tgt_places}


def masked_rows(batch: Batch) -> Rows:
    """Labels stand in the places of the tokens that they name; nothing is asked of the end."""
    labels = np.full_like(batch.src, PAD)  # sides that are planned apart may differ in their padding
    width = min(labels.shape[1], batch.labels.shape[1])
    labels[:, :width] = np.where(batch.labels == END, PAD, batch.labels)[:, :width]
    found = {"labels": labels, "ids": batch.src}
    return found | ({"mask": batch.src_mask} if batch.src_places is None else {"places": batch.src_places})


def label_rows(batch: Batch) -> dict[str, NDArray[Any]]:
    """What a model learns from of a batch: the label of each, from 0 on, none being -1, and a text with its start and
    its end."""
    ids = np.concatenate((batch.tgt_in[:, :1], batch.labels), axis=1)
    return {"labels": batch.src[:, 0] - 1, "ids": ids, "mask": ids != PAD}


def image_rows(batch: Batch) -> dict[str, NDArray[Any]]:
    """The same of images: what stands before the end are their pixels, of one channel or of three."""
    count = batch.tokens // batch.pairs - 1
    channels = 1 if math.isqrt(count) ** 2 == count else 3
    pixels = batch.labels[:, :count].astype(np.float32) / BRIGHTEST
    images = pixels.reshape(len(pixels), channels, math.isqrt(count // channels), -1)
    return {"labels": batch.src[:, 0] - 1, "ids": images}


def masked_tokens(train: Train, tokenizer: Tokenizer, special: list[str]) -> Noise:
    pieces = tokenizer.pieces[1]
    others = np.array(sorted(text_pieces(pieces)), dtype=np.int64)
    return TokenMasking(ids_of(special, pieces)[0], others, train.noise_share)


def hidden_run_pieces(train: Train, max_tokens: int) -> list[str]:
    """The gap's piece, or as many sentinels as the longest text has hidden runs."""
    if train.noise == "infill":
        return [MASK]
    spans = SpanCorruption(np.empty(0, np.int64), train.noise_share, train.noise_span)
    return [sentinel(number) for number in range(int(spans.sizes(np.arange(1, max_tokens + 1))[1].max()))]


def hidden_runs(train: Train, tokenizer: Tokenizer, special: list[str]) -> Noise:
    pieces = tokenizer.pieces[1]
    ids = ids_of(special, pieces)
    if train.noise == "infill":
        return TextInfilling(ids[0], sentence_ends(pieces), train.noise_share, train.noise_span)
    return SpanCorruption(np.array(ids), train.noise_share, train.noise_span)


def ids_of(wanted: list[str], pieces: Mapping[int, str]) -> list[int]:
    """The ids of pieces that the vocabulary must have."""
    known = {piece: id for id, piece in pieces.items()}
    for piece in wanted:
        if piece not in known:
            raise ConfigError(
                f"the vocabulary has no piece `{piece}`, which stands for what is hidden; learn one anew, without "
                f"train.start, or lower data.max_tokens if only some sentinels are missing"
            )
    return [known[piece] for piece in wanted]


OBJECTIVES: Mapping[str, Objective] = {
    "translate": Objective(EncoderDecoder, translation_rows, "pairs"),
    "language": Objective(DecoderOnly, language_rows, report=with_perplexity),
    "masked": Objective(
        EncoderOnly,
        masked_rows,
        pieces=lambda train, limit: [MASK],
        noise=masked_tokens,
        margin=2,
        report=with_accuracy,
    ),
    "denoise": Objective(
        EncoderDecoder, translation_rows, pieces=hidden_run_pieces, noise=hidden_runs, report=with_perplexity
    ),
    "classify": Objective(EncoderOnly, label_rows, "labelled texts", ignored=-1, margin=2, report=with_accuracy),
    "image": Objective(EncoderOnly, image_rows, "images", ignored=-1, report=with_accuracy),
}
