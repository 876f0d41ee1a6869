"""What an encoder alone makes of what it read: the pieces that would fill its gaps, or a label for the whole.

Shapes: T positions, V vocabulary or labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from glassformer.explain.subject import Subject
from glassformer.explain.writing import TOP, candidates

MOST_LABELS = 20  # all are told where there are no more


def answer(subject: Subject, source: Sequence[int], real: Sequence[bool], log_probs: Tensor) -> dict[str, Any] | None:
    """By the log-probabilities (T, V) of every position, or (1, V) of the whole; nothing where a model writes instead.

    `kind` is "label" or "fill". Each of its `places` is a position with the likeliest candidates, the best first: that
    of the whole, or those that are masked; where none is, those of all real tokens. `text` says it in words: the label,
    or what was read with its gaps filled.
    """
    if subject.writes:
        return None
    if subject.tells_labels:
        most = log_probs.shape[-1] if log_probs.shape[-1] <= MOST_LABELS else TOP
        place = {"position": 0, "piece": subject.source_pieces(source)[0]}
        top = candidates(subject, log_probs[0], most)
        return {"kind": "label", "masked": False, "text": top[0]["piece"], "places": [place | {"top": top}]}
    shown = [i for i, id in enumerate(source) if real[i] and id == subject.mask_id]
    masked = bool(shown)
    shown = shown or [i for i, one in enumerate(real) if one]
    pieces = subject.pieces(source, source=True)
    places: list[dict[str, Any]] = [
        {"position": i, "piece": pieces[i], "top": candidates(subject, log_probs[i], TOP)} for i in shown
    ]
    best = {place["position"]: place["top"][0]["id"] for place in places}
    text = subject.filled([best.get(i, id) for i, id in enumerate(source)], list(best.values())) if masked else ""
    return {"kind": "fill", "masked": masked, "text": text, "places": places}


def best_log_probabilities(found: dict[str, Any], log_probs: Tensor) -> list[float]:
    """Of what an answer puts first, by the log-probabilities (T, V) of this or of another run."""
    rows = [0 if found["kind"] == "label" else place["position"] for place in found["places"]]
    return [float(log_probs[row, place["top"][0]["id"]]) for row, place in zip(rows, found["places"], strict=True)]
