"""The likeliest token at every step, or one drawn at random.

Every sentence draws from a stream of its own, seeded by the seed and the sentence itself: what is drawn for it depends
on neither the sentences beside it nor their order.

Shapes: B sentences, L the longest target, V vocabulary.
"""

from __future__ import annotations

import hashlib
import random

import torch
from torch import Tensor

from glassformer.decode.kernels import kernels_for
from glassformer.decode.kernels import structures as kernels
from glassformer.decode.search import NO_TOKEN, Constraints, Hypothesis, Sampling, Search, SpecialTokens, TopTokens


class RandomStreams:
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


class Greedy:
    """One target for each sentence; its state is tensors of fixed shape, so that a step can be recorded."""

    origin: None = None  # no beams that could trade places

    def __init__(
        self,
        search: Search,
        marks: SpecialTokens,
        sentences: int,
        limit: int,
        device: torch.device,
        streams: RandomStreams | None = None,
    ) -> None:
        self.rule, self.marks, self.streams = search.rule, marks, streams
        self.sentence = torch.arange(sentences, device=device)
        self.step = torch.zeros(1, dtype=torch.long, device=device)
        self.written = torch.full((sentences, limit), NO_TOKEN, device=device)
        self.scores = torch.zeros(sentences, device=device)
        self.sums = torch.zeros((sentences, limit), device=device)  # the score up to each token
        self.going = torch.ones(sentences, dtype=torch.bool, device=device)
        self.tokens = torch.zeros((sentences, 1), dtype=torch.long, device=device)  # to be read next

    @property
    def state(self) -> tuple[Tensor, ...]:
        """All that a step reads or writes."""
        return self.step, self.written, self.scores, self.going, self.tokens, self.sums

    @property
    def top_count(self) -> int | None:
        """So many of the likeliest; to draw from, all."""
        return 1 if self.streams is None else None

    def advance(self, output: Tensor | TopTokens, constraints: Constraints) -> None:
        """Choose a token for every sentence from the logits (B, V) of what comes next, or from those `top_count`."""
        if self.streams is None:
            best, ids, normaliser = constraints.top_tokens(output, self.written, self.step, 1)
            own = kernels_for(best)
            if own is not None:
                own.choose_greedy(
                    kernels.Greedy(
                        len(best), self.written.shape[1], self.marks.end, self.marks.pad, best.data_ptr(),
                        normaliser.data_ptr(), ids.data_ptr(), self.step.data_ptr(), self.written.data_ptr(),
                        self.tokens.data_ptr(), self.scores.data_ptr(), self.sums.data_ptr(), self.going.data_ptr(),
                    )
                )  # fmt: skip
                return
            chosen, token = (best - normaliser).squeeze(1), ids.squeeze(1)
        else:
            assert isinstance(output, Tensor)
            logits, normaliser = constraints.normaliser(output, self.written, self.step)
            chosen, token = self.streams.choose(logits - normaliser, self.sentence)
        self.scores += torch.where(self.going, chosen, 0.0)
        self.sums.index_copy_(1, self.step, self.scores.unsqueeze(1))
        self.written.index_copy_(1, self.step, torch.where(self.going, token, NO_TOKEN).unsqueeze(1))
        self.going &= token != self.marks.end
        self.tokens.copy_(torch.where(self.going, token, self.marks.pad).unsqueeze(1))
        self.step += 1

    def keep(self, stay: Tensor) -> None:
        self.sentence, self.written, self.scores = self.sentence[stay], self.written[stay], self.scores[stay]
        self.going, self.tokens, self.sums = self.going[stay], self.tokens[stay], self.sums[stay]

    def hypotheses(self, nbest: int = 1) -> list[list[Hypothesis]]:
        """What has been written for each sentence that is still here."""
        scores = self.scores / self.rule.divisor((self.written != NO_TOKEN).sum(1).clamp_min(1))
        rows = zip(self.written.tolist(), self.sums.tolist(), scores.tolist(), strict=True)
        return [self.marks.read(*row) for row in rows]
