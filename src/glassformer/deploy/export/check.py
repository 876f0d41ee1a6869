"""The same sentences by the model and by what was written of it: tokens must be equal, scores near.

Two programs add the same numbers in another order, so two targets that are as likely as each other, to the last digits,
may change places. Such a tie is no difference: it is told apart by the gaps in our own search, and counted.
"""

from __future__ import annotations

import copy
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
from glassformer.decode.precision import prepare
from glassformer.decode.search import SpecialTokens
from glassformer.deploy.export.formats import CheckFailed, Progress
from glassformer.deploy.export.inputs import Sample
from glassformer.model import DecoderOnly, EncoderDecoder, Model

Ids = list[int]
# Of the sources, beams, the most tokens of a target, and what we have found: what the other system finds.
Write = Callable[[Sequence[Ids], int, int, Sequence[Hypothesis]], list[Hypothesis]]

BEAMS = {"greedy": 1, "beam 4": 4}
BATCH_TOKENS = 2048
SLACK = 8  # tokens that a target may have beyond half as many again as its source
OWN = 8  # times what our own sums lose, that another may lose
ROWS = 16  # sources whose logits are compared
TARGET = 12  # random tokens after which they are
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
) -> dict[str, Any]:
    """Compare what `write`, the other system, makes of each source with what the model makes of it.

    Raises CheckFailed at the first target that is another, and not by a tie, and at a score that is further away than
    `tolerance` (of the mean log-probability of a token). `said` spells ids for that message.
    """
    fast = prepare(model, "fp32") if isinstance(model, EncoderDecoder) else model
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
                compare(model, sample, i, beam, limit, (we, they), done, tolerance, said)
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
) -> None:
    """One sentence into `done`; raises CheckFailed where the two differ."""
    we, they = pair
    done.sentences += 1
    done.tokens += len(we.ids)
    text = sample.texts[i] if i < len(sample.texts) else f"the ids {sample.ids[i]}"
    if we.ids != they.ids:
        if closest(model, sample.ids[i], beam, limit) > TIE:
            raise fault(
                f"with a beam of {beam}, {text!r:.200} becomes {said(they.ids)!r:.200} there and "
                f"{said(we.ids)!r:.200} here"
            )
        done.tied += 1
        return
    done.equal += 1
    apart = abs(we.score - they.score)
    if not apart <= tolerance:
        raise fault(
            f"with a beam of {beam}, the target of {text!r:.200} has the score {they.score:.6f} there and "
            f"{we.score:.6f} here, more than {tolerance:g} apart"
        )
    done.score_difference = max(done.score_difference, apart)


def fault(what: str) -> CheckFailed:
    return CheckFailed(
        f"the export does not do what the model does, and was taken away: {what}. This is a fault of the export; "
        f"please report it, with the model's config.json"
    )


def most_tokens(model: EncoderDecoder | DecoderOnly, length: int) -> int:
    """A limit for targets; what it cuts is compared all the same."""
    room = model.config.max_length - (length if isinstance(model, DecoderOnly) else 1)
    return max(1, min(length + length // 2 + SLACK, room))


def best(model: EncoderDecoder | DecoderOnly, sources: Sequence[Ids], beam: int, limit: int) -> list[Hypothesis]:
    src, mask = tensors(model, sources)
    found = generate(model, src, mask, search=Search(beam=beam, max_new_tokens=limit))
    return [ranked[0] for ranked in found]


def tensors(model: Model, sources: Sequence[Ids], left: bool = False) -> tuple[Tensor, Tensor]:
    """Sources as one table of ids (B, S), padded at the right, or at the `left`, and which of them are real."""
    reader = model.decoder if isinstance(model, DecoderOnly) else model.encoder
    pad, width = SpecialTokens.of(reader.embedding.config).pad, max(map(len, sources))
    rows, real = [], []
    for ids in sources:
        padding = [pad] * (width - len(ids))
        rows.append([*padding, *ids] if left else [*ids, *padding])
        real.append([False] * len(padding) + [True] * len(ids) if left else [True] * len(ids) + [False] * len(padding))
    return torch.tensor(rows), torch.tensor(real)


@torch.inference_mode()
def same_logits(
    model: Model,
    peer: Callable[[Tensor, Tensor, Tensor | None], Tensor],
    sample: Sample,
    tolerance: float,
    progress: Progress,
) -> dict[str, Any]:
    """Compare all logits of some of the sources, in one padded batch; of a model with a decoder, after random targets.

    `tolerance` is for each unit of the largest logit, and at least for one unit. A model that magnifies what its own
    sums lose, which is measured in 64 bits, is given as many times that.
    """
    progress("logits")
    sources = sorted(sample.ids, key=len)[:: max(1, len(sample) // ROWS)][:ROWS]
    src, mask = tensors(model, sources)
    tgt = None
    if isinstance(model, EncoderDecoder):
        shape = (len(src), min(TARGET, model.config.max_length))
        pieces = torch.tensor([id for id in range(model.config.vocab_size) if id != model.config.pad_id])
        tgt = pieces[torch.randint(len(pieces), shape, generator=torch.Generator().manual_seed(0))]
    given = (src, mask) if tgt is None else (src, tgt, mask)
    ours, theirs = model(*given), peer(src, mask, tgt)
    lost = float((ours - copy.deepcopy(model).double()(*given)).abs().max())
    return near(ours, theirs, lost, tolerance, mask if tgt is None else torch.ones_like(tgt, dtype=torch.bool))


@torch.inference_mode()
def same_labels(model: Model, peer: Callable[[Tensor], Tensor], tolerance: float) -> dict[str, Any]:
    """The same of a model that reads images, for random ones: its logits are those of labels, at the first place."""
    config = model.config
    shape = (ROWS, config.channels, config.image_size, config.image_size)
    images = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    ours, exact = model(images)[:, 0], copy.deepcopy(model).double()(images.double())[:, 0]
    lost = float((ours - exact).abs().max())
    return near(ours, peer(images), lost, tolerance, torch.ones(ROWS, dtype=torch.bool))


def near(ours: Tensor, theirs: Tensor, lost: float, tolerance: float, real: Tensor) -> dict[str, Any]:
    """The figures of logits, at the places that are `real`; raises CheckFailed where they are too far apart."""
    if ours.shape != theirs.shape:
        raise CheckFailed(f"the export gives logits of shape {tuple(theirs.shape)}, the model {tuple(ours.shape)}")
    size, worst = max(1.0, float(ours.abs().max())), float((ours - theirs).abs()[real].max())
    allowed = max(tolerance * size, OWN * lost)
    if not worst <= allowed:
        raise fault(f"its logits differ by up to {worst:.2g}, with a tolerance of {allowed:.2g}")
    return {"logits": {"compared": ours.numel(), "difference": worst, "largest": size, "own rounding": lost}}


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
