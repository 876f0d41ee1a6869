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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from glassformer.common.errors import ConfigError
from glassformer.data import END, PAD, Batch, Tokenizer
from glassformer.data.labelled import labelled_rows, picture_rows
from glassformer.data.noise import MASK, Gaps, Infilling, Noise, Spans, closing, ordinary, sentinel
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, Model

if TYPE_CHECKING:
    from glassformer.train.recipe import Recipe

Name = Literal["translate", "language", "masked", "denoise", "classify", "image"]
Made = Literal["pairs", "plain texts", "labelled texts", "images"]
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
    made_of: Made = "plain texts"
    ignored: int = PAD  # what the batch's labels say where nothing is asked
    noise: Callable[[Recipe, Tokenizer], Noise] | None = None  # what makes a pair of a text, anew in every epoch
    pieces: Callable[[Recipe], list[str]] = lambda recipe: []  # of the vocabulary, that no text yields
    margin: int = 1  # tokens that stand around a text
    report: Callable[[float, float], dict[str, float]] = lambda loss, right: {}  # of loss and share right

    @property
    def lone(self) -> bool:
        return self.made_of == "plain texts"

    @property
    def labelled(self) -> bool:
        """Whether each text, or image, has a label."""
        return self.made_of in ("labelled texts", "images")


def translated(batch: Batch) -> Rows:
    found = {"labels": batch.labels, "src": batch.src, "tgt": batch.tgt_in, "src_mask": batch.src_mask}
    if batch.src_places is None or batch.tgt_places is None:
        return found
    return found | {"src_places": batch.src_places, "tgt_places": batch.tgt_places}


def continued(batch: Batch) -> Rows:
    """Padding follows a text, where no token of it looks: nothing has to be masked."""
    found = {"labels": batch.labels, "ids": batch.tgt_in}
    return found if batch.tgt_places is None else found | {"places": batch.tgt_places}


def filled(batch: Batch) -> Rows:
    """Labels stand in the places of the tokens that they name; nothing is asked of the end."""
    labels = np.full_like(batch.src, PAD)  # sides that are planned apart may differ in their padding
    width = min(labels.shape[1], batch.labels.shape[1])
    labels[:, :width] = np.where(batch.labels == END, PAD, batch.labels)[:, :width]
    found = {"labels": labels, "ids": batch.src}
    return found | ({"mask": batch.src_mask} if batch.src_places is None else {"places": batch.src_places})


def one_mask(recipe: Recipe) -> list[str]:
    return [MASK]


def gaps(recipe: Recipe, tokenizer: Tokenizer) -> Noise:
    pieces = tokenizer.pieces[1]
    others = np.array(sorted(ordinary(pieces)), dtype=np.int64)
    return Gaps(ids_of([MASK], pieces)[0], others, recipe.train.noise_share)


def denoising_pieces(recipe: Recipe) -> list[str]:
    """The gap's, or as many sentinels as the longest text has hidden runs."""
    train = recipe.train
    if train.noise == "infill":
        return [MASK]
    spans = Spans(np.empty(0, np.int64), train.noise_share, train.noise_span)
    return [sentinel(number) for number in range(int(spans.sizes(np.arange(1, recipe.data.max_tokens + 1))[1].max()))]


def runs(recipe: Recipe, tokenizer: Tokenizer) -> Noise:
    train, pieces = recipe.train, tokenizer.pieces[1]
    marks = ids_of(denoising_pieces(recipe), pieces)
    if train.noise == "infill":
        return Infilling(marks[0], closing(pieces), train.noise_share, train.noise_span)
    return Spans(np.array(marks), train.noise_share, train.noise_span)


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
    "translate": Objective(EncoderDecoder, translated, "pairs"),
    "language": Objective(DecoderOnly, continued, report=with_perplexity),
    "masked": Objective(EncoderOnly, filled, noise=gaps, pieces=one_mask, margin=2, report=with_accuracy),
    "denoise": Objective(EncoderDecoder, translated, noise=runs, pieces=denoising_pieces, report=with_perplexity),
    "classify": Objective(EncoderOnly, labelled_rows, "labelled texts", ignored=-1, margin=2, report=with_accuracy),
    "image": Objective(EncoderOnly, picture_rows, "images", ignored=-1, report=with_accuracy),
}
