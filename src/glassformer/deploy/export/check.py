"""The same sentences through the model and its export: tokens must be equal, scores close.

Two programs add the same numbers in another order, so two targets that are equally likely, up to the last digits, may
change places. Such a tie is no difference: the gaps in our own search reveal it, and it is counted.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from glassformer.decode import Hypothesis, Search, generate
from glassformer.decode.beam import Selection
from glassformer.decode.engine import batches
from glassformer.decode.precision import prepare
from glassformer.decode.search import SpecialTokens
from glassformer.deploy.export.formats import CheckFailed, Progress
from glassformer.deploy.export.inputs import Ids, Sample
from glassformer.model import DecoderOnly, EncoderDecoder, Model

GenerativeModel: TypeAlias = EncoderDecoder | DecoderOnly
# From sources, beams, the most tokens of a target and our own targets: the targets of the other system.
GeneratePeer = Callable[[Sequence[Ids], int, int, Sequence[Hypothesis]], list[Hypothesis]]

BEAMS = {"greedy": 1, "beam 4": 4}
BATCH_TOKENS = 2048
TOLERANCE = 1e-4  # of a score, which is the mean log-probability of a token
EXTRA_TOKENS = 8  # of a target, beyond one and a half times its source
LOGIT_TOLERANCE = 1e-5  # for each unit of the largest logit
ROUNDING_FACTOR = 8  # the other system may lose as many times what our own sums lose
LOGIT_ROWS = 16  # sources whose logits are compared
LOGIT_TOKENS = 12  # random target tokens before those logits
TIE = 2e-5  # of log-probability: what the order of a sum may change


@dataclass
class TargetFigures:
    """The targets of one way of searching."""

    sentences: int = 0
    tokens: int = 0
    equal: int = 0
    tied: int = 0
    score_difference: float = 0.0  # the largest, of equal targets


def same_targets(
    model: GenerativeModel, peer: GeneratePeer, sample: Sample, progress: Progress, decode: Callable[[Ids], str] = str
) -> dict[str, Any]:
    """Compare the targets of `peer`, the other system, with those of the model.

    Raises CheckFailed at the first target that differs, and not by a tie, and at a score that is further away than
    TOLERANCE. `decode` makes text of ids for that message.
    """
    fast = prepare(model, "fp32") if isinstance(model, EncoderDecoder) else model
    results: dict[str, Any] = {}
    for name, beam in BEAMS.items():
        figures = TargetFigures()
        for rows in batches([len(ids) for ids in sample.ids], BATCH_TOKENS // beam):
            sources = [sample.ids[i] for i in rows]
            limit = max_tokens(model, max(map(len, sources)))
            ours = best(fast, sources, beam, limit)
            theirs = peer(sources, beam, limit, ours)
            for i, our, their in zip(rows, ours, theirs, strict=True):
                text = sample.texts[i] if i < len(sample.texts) else f"the ids {sample.ids[i]}"
                gap = partial(smallest_gap, model, sample.ids[i], beam, limit)
                compare(figures, our, their, f"with a beam of {beam}, {text!r:.200}", gap, decode)
            progress(f"{name}: {figures.sentences:,} of {len(sample):,}")
        results[name] = asdict(figures)
    return results


def compare(
    figures: TargetFigures,
    ours: Hypothesis,
    theirs: Hypothesis,
    label: str,
    gap: Callable[[], float],
    decode: Callable[[Ids], str],
) -> None:
    """Count one sentence; raises CheckFailed if the two targets differ and are not tied."""
    figures.sentences += 1
    figures.tokens += len(ours.ids)
    if ours.ids != theirs.ids:
        if gap() > TIE:
            raise fault(f"{label} becomes {decode(theirs.ids)!r:.200} there and {decode(ours.ids)!r:.200} here")
        figures.tied += 1
        return
    figures.equal += 1
    difference = abs(ours.score - theirs.score)
    if not difference <= TOLERANCE:
        raise fault(
            f"{label}: the target has the score {theirs.score:.6f} there and {ours.score:.6f} here, more than "
            f"{TOLERANCE:g} apart"
        )
    figures.score_difference = max(figures.score_difference, difference)


def fault(what: str) -> CheckFailed:
    return CheckFailed(
        f"the export does not do what the model does, and was taken away: {what}. This is a fault of the export; "
        f"please report it, with the model's config.json"
    )


def max_tokens(model: GenerativeModel, length: int) -> int:
    """A limit for targets; targets that it cuts are compared too."""
    room = model.config.max_length - (length if isinstance(model, DecoderOnly) else 1)
    return max(1, min(length + length // 2 + EXTRA_TOKENS, room))


def best(model: GenerativeModel, sources: Sequence[Ids], beam: int, limit: int) -> list[Hypothesis]:
    src, mask = tensors(model, sources)
    found = generate(model, src, mask, search=Search(beam=beam, max_new_tokens=limit))
    return [ranked[0] for ranked in found]


def tensors(model: Model, sources: Sequence[Ids], side: str = "right") -> tuple[Tensor, Tensor]:
    """Sources as one table of ids (B, S), padded at one side, and the mask of real ones."""
    reader = model.decoder if isinstance(model, DecoderOnly) else model.encoder
    pad = SpecialTokens.of(reader.embedding.config).pad
    rows = [torch.tensor(ids) for ids in sources]
    real = [torch.ones(len(ids), dtype=torch.bool) for ids in sources]
    return pad_sequence(rows, True, pad, side), pad_sequence(real, True, False, side)


@torch.inference_mode()
def same_logits(
    model: Model, peer: Callable[[Tensor, Tensor, Tensor | None], Tensor], sample: Sample, progress: Progress
) -> dict[str, Any]:
    """Compare all logits of some of the sources, in one padded batch; of a model with a decoder, after random targets.

    The tolerance grows with the largest logit, and with what the model's own sums lose compared with 64 bits.
    """
    progress("logits")
    sources = sorted(sample.ids, key=len)[:: max(1, len(sample) // LOGIT_ROWS)][:LOGIT_ROWS]
    src, mask = tensors(model, sources)
    tgt = None
    if isinstance(model, EncoderDecoder):
        shape = (len(src), min(LOGIT_TOKENS, model.config.max_length))
        pieces = torch.tensor([id for id in range(model.config.vocab_size) if id != model.config.pad_id])
        tgt = pieces[torch.randint(len(pieces), shape, generator=torch.Generator().manual_seed(0))]
    given = (src, mask) if tgt is None else (src, tgt, mask)
    ours, theirs = model(*given), peer(src, mask, tgt)
    exact = copy.deepcopy(model).double()(*given)
    return close_logits(ours, theirs, exact, mask if tgt is None else torch.ones_like(tgt, dtype=torch.bool))


@torch.inference_mode()
def same_labels(model: Model, peer: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """The same for a model of images, on random ones; the logits of its labels are at the first place."""
    config = model.config
    shape = (LOGIT_ROWS, config.channels, config.image_size, config.image_size)
    images = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    ours, exact = model(images)[:, 0], copy.deepcopy(model).double()(images.double())[:, 0]
    return close_logits(ours, peer(images), exact, torch.ones(LOGIT_ROWS, dtype=torch.bool))


def close_logits(ours: Tensor, theirs: Tensor, exact: Tensor, real: Tensor) -> dict[str, Any]:
    """The figures of logits, at the places that are `real`; raises CheckFailed if they are too far apart."""
    if ours.shape != theirs.shape:
        raise CheckFailed(f"the export gives logits of shape {tuple(theirs.shape)}, the model {tuple(ours.shape)}")
    lost = float((ours - exact).abs().max())
    size, worst = max(1.0, float(ours.abs().max())), float((ours - theirs).abs()[real].max())
    allowed = max(LOGIT_TOLERANCE * size, ROUNDING_FACTOR * lost)
    if not worst <= allowed:
        raise fault(f"its logits differ by up to {worst:.2g}, with a tolerance of {allowed:.2g}")
    return {"logits": {"compared": ours.numel(), "difference": worst, "largest": size, "own rounding": lost}}


def smallest_gap(model: GenerativeModel, source: Ids, beam: int, limit: int) -> float:
    """The smallest difference that decided our search: between neighbouring candidates of a step, or between finished
    targets."""
    gaps = [math.inf]

    def watch(selection: Selection) -> None:
        total = selection.total[0]
        gaps.append(float((total[:-1] - total[1:]).min()))

    src, _ = tensors(model, [source])
    if beam == 1:
        (ours,) = best(model, [source], 1, limit)
        return smallest_lead(model, src, ours.ids)
    found = generate(model, src, search=Search(beam=beam, nbest=beam, max_new_tokens=limit), watch=watch)
    scores = [one.score for one in found[0]]
    gaps += [a - b for a, b in pairwise(scores)]
    return min(gaps)


@torch.inference_mode()
def smallest_lead(model: GenerativeModel, src: Tensor, target: Ids) -> float:
    """The smallest lead of the likeliest token over the second, at any step of a greedy search."""
    start = model.config.start_id
    if isinstance(model, EncoderDecoder):
        assert start is not None
        logits = model(src, torch.tensor([[start, *target]]))[0]
    else:
        logits = model(torch.cat((src, torch.tensor([target], dtype=torch.long)), dim=1))[0, src.shape[1] - 1 :]
    high = logits.topk(2).values
    return float((high[:, 0] - high[:, 1]).min())
