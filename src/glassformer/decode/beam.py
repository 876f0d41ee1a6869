"""Several targets at once, the best kept at every step.

Shapes: B sentences, K beams, C candidates (at most 2 K), L the longest target, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.decode.kernels import address, kernels_for
from glassformer.decode.kernels import structures as kernels
from glassformer.decode.search import NEVER, NO_TOKEN, Constraints, Hypothesis, Search, SpecialTokens, TopTokens


class Selection(NamedTuple):
    """The candidates of one step, best first, and what became of them. All but `step` have a row for each sentence."""

    step: int
    sentence: Tensor  # (B)
    parent: Tensor  # (B, C) the beam each continues
    token: Tensor  # (B, C)
    total: Tensor  # (B, C) its log-probability
    score: Tensor  # (B, C) the same over the length rule's divisor
    finished: Tensor  # (B, C) whether it ended here, among the best K
    kept: Tensor  # (B, C) the beam it becomes, -1 if none


class Beam:
    """K targets for each sentence; its state is tensors of fixed shape, so that a step can be recorded."""

    def __init__(
        self,
        search: Search,
        marks: SpecialTokens,
        sentences: int,
        limit: int,
        device: torch.device,
        watch: Callable[[Selection], None] | None = None,
        limits: Sequence[int] | None = None,
    ) -> None:
        B, K = sentences, search.beam
        self.rule, self.stopping, self.marks, self.watch = search.rule, search.stopping, marks, watch
        self.beams, self.limit = K, limit
        self.limits = torch.tensor(limits or [limit] * B, device=device)  # of each sentence
        # Those that are returned must be beaten to go on: nobody sees the others. Hugging Face's rule asks for all K.
        self.worst = search.nbest - 1 if search.stopping == "exact" else K - 1
        self.sentence = torch.arange(B, device=device)
        self.rows = self.sentence.unsqueeze(1)
        self.step = torch.zeros(1, dtype=torch.long, device=device)
        self.running = torch.full((B, K), NEVER, device=device)
        self.running[:, 0] = 0.0  # all beams start alike; let only one of them speak
        self.written = torch.full((B, K, limit), NO_TOKEN, device=device)
        self.done = self.written.clone()
        self.sums, self.done_sums = torch.zeros((2, B, K, limit), device=device)  # of log-probabilities up to each
        self.done_scores = torch.full((B, K), NEVER, device=device)
        self.going = torch.ones(B, dtype=torch.bool, device=device)
        self.tokens = torch.zeros((B * K, 1), dtype=torch.long, device=device)  # to be read next
        self.origin = torch.zeros((B, K), dtype=torch.long, device=device)  # the beam that each continues
        self.rank = torch.arange(2 * K, device=device)
        self.divisors: Tensor | None = None  # of all lengths
        self.reach: Tensor | None = None  # of each sentence, where that does not follow from its length

    @property
    def state(self) -> tuple[Tensor, ...]:
        """All that a step reads or writes."""
        return (
            self.step, self.running, self.written, self.done, self.done_scores, self.going, self.tokens, self.origin,
            self.sums, self.done_sums,
        )  # fmt: skip

    @property
    def top_count(self) -> int:
        """The best 2 K of all are among the best 2 K of each beam: no need to rank the whole vocabulary of all."""
        return 2 * self.beams

    def advance(self, output: Tensor | TopTokens, constraints: Constraints) -> None:
        """Choose the best continuations from the logits of what comes next: (B K, V), or (B, V) after the prompt; or
        from those that are `top_count`."""
        B, K = self.running.shape
        rows = len(output[0]) if isinstance(output, TopTokens) else len(output)
        history = self.written.flatten(0, 1) if rows == B * K else self.written[:, 0]
        likely, ids, normaliser = constraints.top_tokens(output, history, self.step, self.top_count)
        own = None if self.watch is not None else kernels_for(likely)
        if own is not None:
            own.choose_beams(self.kernel_arguments(likely, normaliser, ids))
            return
        totals = self.running.unsqueeze(2) + (likely - normaliser).view(B, -1, likely.shape[1])  # (B, K, 2K)
        ids = ids.view(B, -1, ids.shape[1]).expand(totals.shape).flatten(1)
        total, flat = totals.flatten(1).topk(min(2 * K, totals[0].numel()))  # (B, C): enough even if K of them end here
        parent, token = flat // likely.shape[1], ids.gather(1, flat)
        self.choose(parent, token, total)

    def kernel_arguments(self, likely: Tensor, normaliser: Tensor, ids: Tensor) -> kernels.Beams:
        """This step as the kernels read it; they do what `choose` does."""
        if self.divisors is None:
            self.divisors = self.rule.divisor(torch.arange(self.limit + 1)).float()
            if self.stopping == "exact" and self.rule.power > 0:
                self.reach = self.divisors[self.limits]
        B, K = self.running.shape
        parts = (likely, normaliser, ids, self.divisors, self.reach, self.limits)
        state = (self.step, self.written, self.done, self.tokens, self.origin)
        scores = (self.running, self.done_scores, self.going, self.sums, self.done_sums)
        return kernels.Beams(
            B, K, self.limit, likely.shape[0] // B, likely.shape[1], self.worst, self.marks.end,
            *map(address, (*parts, *state, *scores)),
        )  # fmt: skip

    def choose(self, parent: Tensor, token: Tensor, total: Tensor) -> None:
        K, length = self.beams, self.step + 1
        ends = (token == self.marks.end) | (length == self.limits.unsqueeze(1))
        # A hypothesis may finish only if it is among the K best: a worse one would not have been kept either.
        finishing = ends & self.going.unsqueeze(1) & (self.rank[: token.shape[1]] < K)
        candidates = self.written[self.rows, parent].index_copy(2, self.step, token.unsqueeze(2))  # (B, C, L)
        sums = self.sums[self.rows, parent].index_copy(2, self.step, total.unsqueeze(2))
        score = total / self.rule.divisor(length)
        pool = torch.cat((self.done_scores, torch.where(finishing, score, NEVER)), dim=1)
        done_scores, best = pool.topk(K)
        self.done.copy_(torch.cat((self.done, candidates), dim=1)[self.rows, best])
        self.done_sums.copy_(torch.cat((self.done_sums, sums), dim=1)[self.rows, best])
        self.done_scores.copy_(done_scores)
        running, chosen = total.masked_fill(ends, NEVER).topk(K)
        if self.watch is not None:
            kept = torch.full_like(token, -1).scatter(1, chosen, self.rank[:K].expand_as(chosen)).masked_fill(ends, -1)
            self.watch(Selection(int(self.step), self.sentence, parent, token, total, score, finishing, kept))
        self.running.copy_(running)
        self.written.copy_(candidates[self.rows, chosen])
        self.sums.copy_(sums[self.rows, chosen])
        self.origin.copy_(parent.gather(1, chosen))
        self.tokens.copy_(token.gather(1, chosen).view(-1, 1))
        hope = running[:, 0] / (
            self.rule.reach(length, self.limits) if self.stopping == "exact" else self.rule.divisor(length)
        )
        self.going &= (hope > done_scores[:, self.worst]) & (length < self.limits)
        self.step += 1

    def keep(self, stay: Tensor) -> None:
        self.sentence, self.running, self.written = self.sentence[stay], self.running[stay], self.written[stay]
        self.done, self.done_scores, self.going = self.done[stay], self.done_scores[stay], self.going[stay]
        self.sums, self.done_sums = self.sums[stay], self.done_sums[stay]
        self.origin, self.limits = self.origin[stay], self.limits[stay]
        self.reach = None if self.reach is None else self.reach[stay]
        self.tokens = self.tokens.view(-1, self.beams)[stay].view(-1, 1)
        self.rows = self.rows[: len(stay)]

    def hypotheses(self, nbest: int = 1) -> list[list[Hypothesis]]:
        """The best for each sentence that is still here, as many as there are."""
        found = zip(self.done.tolist(), self.done_sums.tolist(), self.done_scores.tolist(), strict=True)
        return [[h for row in list(zip(*one, strict=True))[:nbest] for h in self.marks.read(*row)] for one in found]
