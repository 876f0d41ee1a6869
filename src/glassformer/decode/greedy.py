"""The likeliest token at every step, or one drawn at random.

Shapes: B sentences, L the longest target, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.decode.constraints import Constraints
from glassformer.decode.hypothesis import NO_TOKEN, Hypothesis, Marks
from glassformer.decode.kernels import ours
from glassformer.decode.kernels import structures as kernels
from glassformer.decode.ranking import Likeliest
from glassformer.decode.sampling import Streams
from glassformer.decode.search import Search


class Greedy:
    """One target for each sentence; its state is tensors of fixed shape, so that a step can be recorded."""

    origin: None = None  # no beams that could trade places

    def __init__(
        self,
        search: Search,
        marks: Marks,
        sentences: int,
        limit: int,
        device: torch.device,
        streams: Streams | None = None,
    ) -> None:
        self.rule, self.marks, self.streams = search.rule, marks, streams
        self.sentence = torch.arange(sentences, device=device)
        self.step = torch.zeros(1, dtype=torch.long, device=device)
        self.written = torch.full((sentences, limit), NO_TOKEN, device=device)
        self.scores = torch.zeros(sentences, device=device)
        self.going = torch.ones(sentences, dtype=torch.bool, device=device)
        self.tokens = torch.zeros((sentences, 1), dtype=torch.long, device=device)  # to be read next

    @property
    def state(self) -> tuple[Tensor, ...]:
        """All that a step reads or writes."""
        return self.step, self.written, self.scores, self.going, self.tokens

    @property
    def wanted(self) -> int | None:
        """So many of the likeliest; to draw from, all."""
        return 1 if self.streams is None else None

    def advance(self, said: Tensor | Likeliest, constraints: Constraints) -> None:
        """Choose a token for every sentence from the logits (B, V) of what comes next, or from those `wanted`."""
        if self.streams is None:
            best, ids, normaliser = constraints.likeliest(said, self.written, self.step, 1)
            own = ours(best)
            if own is not None:
                own.choose_greedy(
                    kernels.Greedy(
                        len(best), self.written.shape[1], self.marks.end, self.marks.pad, best.data_ptr(),
                        normaliser.data_ptr(), ids.data_ptr(), self.step.data_ptr(), self.written.data_ptr(),
                        self.tokens.data_ptr(), self.scores.data_ptr(), self.going.data_ptr(),
                    )
                )  # fmt: skip
                return
            chosen, token = (best - normaliser).squeeze(1), ids.squeeze(1)
        else:
            assert isinstance(said, Tensor)
            logits, normaliser = constraints.normaliser(said, self.written, self.step)
            chosen, token = self.streams.choose(logits - normaliser, self.sentence)
        self.scores += torch.where(self.going, chosen, 0.0)
        self.written.index_copy_(1, self.step, torch.where(self.going, token, NO_TOKEN).unsqueeze(1))
        self.going &= token != self.marks.end
        self.tokens.copy_(torch.where(self.going, token, self.marks.pad).unsqueeze(1))
        self.step += 1

    def keep(self, stay: Tensor) -> None:
        self.sentence, self.written, self.scores = self.sentence[stay], self.written[stay], self.scores[stay]
        self.going, self.tokens = self.going[stay], self.tokens[stay]

    def hypotheses(self, nbest: int = 1) -> list[list[Hypothesis]]:
        """What has been written for each sentence that is still here."""
        scores = self.scores / self.rule.divisor((self.written != NO_TOKEN).sum(1).clamp_min(1))
        return [self.marks.read(*row) for row in zip(self.written.tolist(), scores.tolist(), strict=True)]
