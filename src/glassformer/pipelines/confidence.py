"""How sure a translation is.

A model's own probabilities say which translations are better than others, but not how often they are right. That is
learnt from translations of pairs that were kept out of its training (train/evaluation/calibration.py), and kept beside
the weights in confidence.json, by target language.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from glassformer.common.errors import WeightsError
from glassformer.common.files import read_json
from glassformer.common.strings import HAN

NAME = "confidence.json"
SPACE = "▁"  # as tokens show it
DOUBT = math.log(0.2)  # the log-probability of a token below which its word is doubted

_BYTE = re.compile("<0x[0-9A-F]{2}>")
_HAN = re.compile(f"[{HAN}]")


@dataclass(frozen=True)
class Confidence:
    """The share of right translations among those as likely and as long, by logistic regression."""

    constant: float
    likelihood: float  # the weight of the mean log-probability of its tokens
    length: float  # of the logarithm of their number
    chrf: float  # a translation counted as right had at least so much, against a person's
    pairs: int  # that it was learnt from
    error: float  # the expected calibration error, on as many other pairs
    bins: tuple[tuple[float, float, int], ...]  # of those pairs: the probability, the share that was right, how many

    def probability(self, log_probabilities: Sequence[float]) -> float | None:
        """Of a translation, by its tokens; none for no tokens."""
        if not log_probabilities:
            return None
        mean, count = math.fsum(log_probabilities) / len(log_probabilities), len(log_probabilities)
        return sigmoid(self.constant + self.likelihood * mean + self.length * math.log(count))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-min(max(x, -700.0), 700.0)))


def read_confidence(folder: Path) -> dict[str, Confidence]:
    """By target language; none where it was not measured."""
    path = folder / NAME
    try:
        found = read_json(path, "remove it, or make it again: glassformer evaluate --calibrate") or {}
        known = {to: Confidence(**one) for to, one in found.items()}
        for one in known.values():
            one.probability([-1.0])  # which is no TypeError where its numbers are numbers
        return known
    except (TypeError, AttributeError):
        raise WeightsError(f"{path} is not as `glassformer evaluate --calibrate` writes it; remove it") from None


def doubted_words(tokens: Sequence[str], log_probabilities: Sequence[float]) -> list[str]:
    """The words of a translation that hold a token which the model finds improbable, by its tokens as they are shown;
    of Chinese, the tokens."""
    words = list[tuple[list[str], float]]()
    for token, log_probability in zip(tokens, log_probabilities, strict=True):
        if (
            not words
            or token.startswith(SPACE)
            or not (_BYTE.fullmatch(token) or token.isalpha())
            or _HAN.search(token)
        ):
            words.append(([], 0.0))
        pieces, least = words[-1]
        words[-1] = ([*pieces, token], min(least, log_probability))
    texts = [b"".join(map(as_bytes, pieces)).decode("utf-8", "replace") for pieces, least in words if least < DOUBT]
    return [text.lstrip(SPACE) for text in texts if any(map(str.isalnum, text))]


def as_bytes(token: str) -> bytes:
    return bytes.fromhex(token[3:5]) if _BYTE.fullmatch(token) else token.encode()
