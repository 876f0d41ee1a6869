"""The same sentences by the model and by what was written of it: tokens must be equal, scores near.

Two programs add the same numbers in another order, so two targets that are as likely as each other, to the last digits,
may change places. Such a tie is no difference: it is told apart by the gaps in our own search, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from glassformer.decode import Hypothesis, Search, generate
from glassformer.decode.beam import Selection
from glassformer.decode.engine import batches
from glassformer.decode.hypothesis import Marks
from glassformer.decode.precision import ready
from glassformer.export.format import CheckFailed, Progress
from glassformer.export.sample import Sample
from glassformer.model import DecoderOnly, EncoderDecoder

Ids = list[int]
# Of the sources, beams, the most tokens of a target, and what we have found: what the other system finds.
Write = Callable[[Sequence[Ids], int, int, Sequence[Hypothesis]], list[Hypothesis]]

BEAMS = {"greedy": 1, "beam 4": 4}
BATCH_TOKENS = 2048
SLACK = 8  # tokens that a target may have beyond half as many again as its source
TIE = 2e-5  # of log-probability: what the order of a sum may change


@dataclass
class Compared:
    """What one way of searching gave."""

    sentences: int = 0
    tokens: int = 0
    equal: int = 0
    tied: int = 0
    score_difference: float = 0.0  # the largest, of equal targets

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def same_targets(
    model: EncoderDecoder | DecoderOnly,
    write: Write,
    sample: Sample,
    tolerance: float,
    progress: Progress,
    said: Callable[[Ids], str] = str,
    tie: float = TIE,
) -> dict[str, Any]:
    """Compare what `write`, the other system, makes of each source with what the model makes of it.

    Raises CheckFailed at the first target that is another, and not by a tie, and at a score that is further away than
    `tolerance` (of the mean log-probability of a token). `said` spells ids for that message.
    """
    fast = ready(model, "fp32") if isinstance(model, EncoderDecoder) else model
    figures: dict[str, Any] = {}
    for name, beam in BEAMS.items():
        done = Compared()
        for rows in batches([len(ids) for ids in sample.ids], BATCH_TOKENS // beam):
            sources = [sample.ids[i] for i in rows]
            limit = most_tokens(model, max(map(len, sources)))
            ours = best(fast, sources, beam, limit)
            theirs = write(sources, beam, limit, ours)
            assert len(ours) == len(theirs) == len(sources)
            for i, we, they in zip(rows, ours, theirs, strict=True):
                compare(model, sample, i, beam, limit, (we, they), done, tolerance, said, tie)
            progress(f"{name}: {done.sentences:,} of {len(sample):,}")
        figures[name] = done.to_dict()
    return figures


def compare(
    model: EncoderDecoder | DecoderOnly,
    sample: Sample,
    i: int,
    beam: int,
    limit: int,
    pair: tuple[Hypothesis, Hypothesis],
    done: Compared,
    tolerance: float,
    said: Callable[[Ids], str],
    tie: float,
) -> None:
    """One sentence into `done`; raises CheckFailed where the two differ."""
    we, they = pair
    done.sentences += 1
    done.tokens += len(we.ids)
    text = sample.texts[i] if i < len(sample.texts) else f"the ids {sample.ids[i]}"
    if we.ids != they.ids:
        if closest(model, sample.ids[i], beam, limit) > tie:
            raise CheckFailed(
                f"the export does not do what the model does, and was taken away: with a beam of {beam}, {text!r:.200} "
                f"becomes {said(they.ids)!r:.200} there and {said(we.ids)!r:.200} here. This is a fault of the export; "
                f"please report it, with the model's config.json"
            )
        done.tied += 1
        return
    done.equal += 1
    apart = abs(we.score - they.score)
    if not apart <= tolerance:
        raise CheckFailed(
            f"the export does not do what the model does, and was taken away: with a beam of {beam}, the target of "
            f"{text!r:.200} has the score {they.score:.6f} there and {we.score:.6f} here, more than {tolerance:g} "
            f"apart. This is a fault of the export; please report it, with the model's config.json"
        )
    done.score_difference = max(done.score_difference, apart)


def most_tokens(model: EncoderDecoder | DecoderOnly, length: int) -> int:
    """A limit for targets; what it cuts is compared all the same."""
    room = model.config.max_length - (length if isinstance(model, DecoderOnly) else 1)
    return max(1, min(length + length // 2 + SLACK, room))


def best(model: EncoderDecoder | DecoderOnly, sources: Sequence[Ids], beam: int, limit: int) -> list[Hypothesis]:
    src, mask = tensors(model, sources)
    found = generate(model, src, mask, search=Search(beam=beam, max_new_tokens=limit))
    return [ranked[0] for ranked in found]


def tensors(model: EncoderDecoder | DecoderOnly, sources: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Sources as one table of ids (B, S), and which of them are real."""
    reader = model.encoder if isinstance(model, EncoderDecoder) else model.decoder
    pad, width = Marks.of(reader.embedding.config).pad, max(map(len, sources))
    src = torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in sources])
    return src, torch.arange(width) < torch.tensor([[len(ids)] for ids in sources])


def closest(model: EncoderDecoder | DecoderOnly, source: Ids, beam: int, limit: int) -> float:
    """The smallest difference on which our search of one target turned: of candidates that stood side by side at a
    step, or of two finished targets."""
    gaps = [math.inf]

    def watch(selection: Selection) -> None:
        total = selection.total[0]
        gaps.append(float((total[:-1] - total[1:]).min()))

    src, _ = tensors(model, [source])
    width = max(2, beam)  # the two likeliest of each step are seen by a search for two
    if beam == 1:
        (ours,) = best(model, [source], 1, limit)
        return narrow_steps(model, src, ours.ids)
    found = generate(model, src, search=Search(beam=width, nbest=width, max_new_tokens=limit), watch=watch)
    scores = [one.score for one in found[0]]
    gaps += [a - b for a, b in pairwise(scores)]
    return min(gaps)


@torch.inference_mode()
def narrow_steps(model: EncoderDecoder | DecoderOnly, src: Tensor, target: Ids) -> float:
    """The smallest lead that the likeliest token had over the next, at any step of a greedy search."""
    start = model.config.start_id
    if isinstance(model, EncoderDecoder):
        assert start is not None
        logits = model(src, torch.tensor([[start, *target]]))[0]
    else:
        logits = model(torch.cat((src, torch.tensor([target], dtype=torch.long)), dim=1))[0, src.shape[1] - 1 :]
    high = logits.topk(2).values
    return float((high[:, 0] - high[:, 1]).min())
