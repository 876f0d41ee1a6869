"""Drawing the next token instead of taking the likeliest.

Every sentence draws from a stream of its own, seeded by the seed and the sentence itself: what is drawn for it depends
on neither the sentences beside it nor their order.

Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.common.errors import ConfigError


@dataclass(frozen=True)
class Sampling:
    """How to draw: from the `top_k` likeliest (0: all), from the fewest that hold `top_p` of the probability, or both;
    a `temperature` below 1 sharpens the distribution first, above 1 flattens it."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ConfigError(
                f"temperature={self.temperature} must be above 0; to always take the likeliest, do not sample"
            )
        if self.top_k < 0:
            raise ConfigError(f"top_k={self.top_k} cannot be negative; 0 draws from the whole vocabulary")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p={self.top_p} must lie above 0 and at most at 1")


class Streams:
    """One stream of random numbers per sentence."""

    def __init__(self, sampling: Sampling, src: Tensor, mask: Tensor | None) -> None:
        self.sampling = sampling
        self.streams = []
        for i, row in enumerate(src.tolist()):
            real = row if mask is None else [id for id, seen in zip(row, mask[i].tolist(), strict=True) if seen]
            digest = hashlib.sha256(repr((sampling.seed, real)).encode()).digest()
            self.streams.append(random.Random(digest))

    def choose(self, log_probabilities: Tensor, sentence: Tensor) -> tuple[Tensor, Tensor]:
        """A token for each row and its log-probability under the model, before any filter."""
        ranked, order = (log_probabilities / self.sampling.temperature).softmax(-1).sort(dim=-1, descending=True)
        before = ranked.cumsum(-1) - ranked  # the share of all that are likelier
        kept = ranked.masked_fill(before >= self.sampling.top_p, 0.0)
        if self.sampling.top_k:
            kept[:, self.sampling.top_k :] = 0.0
        drawn = torch.tensor([self.streams[i].random() for i in sentence.tolist()], device=kept.device)  # (B)
        reached = kept.cumsum(-1) > (drawn * kept.sum(-1)).unsqueeze(1)
        token = order.gather(1, reached.int().argmax(-1, keepdim=True))  # (B, 1): the first that the draw falls into
        return log_probabilities.gather(1, token).squeeze(1), token.squeeze(1)
