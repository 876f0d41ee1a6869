"""What a model learns: one small table of objectives over the same stores, batches and steps.

    objective   what it reads                   what it says of it                        the model
    translate   a source, and a target so far   the target's next token                   EncoderDecoder
    language    a text so far                   its next token                            DecoderOnly

The loss of each is the cross-entropy of its labels, a mean over all that are not left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from glassformer.model import DecoderOnly, EncoderDecoder, Model
from glassformer.text import PAD, Batch

Name = Literal["translate", "language"]
Rows = dict[str, NDArray[Any]]


def loss_alone(loss: float, right: float) -> dict[str, float]:
    return {}


def with_perplexity(loss: float, right: float) -> dict[str, float]:
    return {"valid_perplexity": math.exp(min(loss, 700.0))}


@dataclass(frozen=True)
class Objective:
    """`rows` makes of a batch the labels, and by their names the things that the model's forward takes, each with a
    row for every row of the batch."""

    model: type[Model]
    rows: Callable[[Batch], Rows]
    lone: bool = True  # made of plain texts, not of pairs
    ignored: int = PAD  # the label of what is not asked
    report: Callable[[float, float], dict[str, float]] = loss_alone  # of validation's loss and share of right labels


def translated(batch: Batch) -> Rows:
    found = {"labels": batch.labels, "src": batch.src, "tgt": batch.tgt_in, "src_mask": batch.src_mask}
    if batch.src_places is None or batch.tgt_places is None:
        return found
    return found | {"src_places": batch.src_places, "tgt_places": batch.tgt_places}


def continued(batch: Batch) -> Rows:
    """Padding follows a text, where no token of it looks: nothing has to be masked."""
    found = {"labels": batch.labels, "ids": batch.tgt_in}
    return found if batch.tgt_places is None else found | {"places": batch.tgt_places}


OBJECTIVES: Mapping[str, Objective] = {
    "translate": Objective(EncoderDecoder, translated, lone=False),
    "language": Objective(DecoderOnly, continued, report=with_perplexity),
}
