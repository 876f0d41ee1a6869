"""Measuring how sure a translator may be of what it writes, on pairs that it has not learnt from.

A translation counts as right if its chrF against a person's is high enough. How often that is so, given how likely and
how long a translation is, is learnt from every other pair and measured on the rest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer.common.errors import DataError
from glassformer.common.files import write_text
from glassformer.pipelines.confidence import NAME, Confidence, read_confidence
from glassformer.pipelines.translator import Translation

RIGHT = 50.0  # chrF of a translation that counts as right
RIGHT_UNSPACED = 25.0  # of one into Chinese or Japanese, whose words have one or two characters
BINS = 10
FEWEST = 100  # pairs
ROUNDS = 50  # of Newton's method; ten are enough

Array = NDArray[np.float64]


def calibrate(translations: Sequence[Translation], references: Sequence[str], unspaced: bool = False) -> Confidence:
    """What the translations' own probabilities say of how right they are; `unspaced`: Chinese or Japanese."""
    from sacrebleu.metrics.chrf import CHRF

    chrf, enough = CHRF(), RIGHT_UNSPACED if unspaced else RIGHT
    pairs = [pair for pair in zip(translations, references, strict=True) if pair[0].log_probabilities]
    if len(pairs) < FEWEST:
        raise DataError(f"{len(pairs):,} translated pairs are too few to learn from; give {FEWEST} or more")
    right = np.array([chrf.sentence_score(one.text, [reference]).score >= enough for one, reference in pairs], float)
    each = [one.log_probabilities for one, _ in pairs]
    features = np.array([(1.0, np.mean(one), np.log(len(one))) for one in each])
    constant, likelihood, length = logistic_regression(features[::2], right[::2]).tolist()
    found = Confidence(constant, likelihood, length, enough, len(right[::2]), 0.0, ())
    probabilities = np.array([found.probability(one) for one in each[1::2]], float)
    bins = reliability(probabilities, right[1::2])
    error = sum(count * abs(told - seen) for told, seen, count in bins) / len(probabilities)
    return replace(found, error=round(error, 4), bins=bins)


def logistic_regression(features: Array, right: Array) -> Array:
    """The weights that make what was seen the likeliest, a little drawn to zero so that they are finite."""
    weights = np.zeros(features.shape[1])
    for _ in range(ROUNDS):
        told = 1 / (1 + np.exp(-features @ weights))
        slope = features.T @ (told - right) + 0.01 * weights
        bend = (features.T * (told * (1 - told))) @ features + 0.01 * np.eye(len(weights))
        weights -= np.linalg.solve(bend, slope)
    return weights


def reliability(told: Array, right: Array) -> tuple[tuple[float, float, int], ...]:
    """Of translations whose probabilities are alike: what was told, how many were right, and how many there are."""
    place = np.minimum((told * BINS).astype(int), BINS - 1)
    groups = (place == number for number in range(BINS))
    return tuple(
        (round(float(told[group].mean()), 4), round(float(right[group].mean()), 4), int(group.sum()))
        for group in groups
        if group.any()
    )


def keep_confidence(folder: Path, to: str, found: Confidence) -> None:
    """Write it beside the weights, which nothing else of the folder needs to know."""
    known = read_confidence(folder) | {to: found}
    text = json.dumps({name: one.to_dict() for name, one in sorted(known.items())}, indent=1)
    write_text(folder / NAME, f"{text}\n")


def table(found: Confidence) -> str:
    """How what is told compares with what is seen, as a picture of text."""
    rows = [f"{told:6.0%}  {seen:6.0%}  {count:5,}  {'█' * round(30 * seen)}" for told, seen, count in found.bins]
    return "\n".join(["  told   right  pairs", *rows, f"calibration error {found.error:.1%}, on pairs not learnt from"])
