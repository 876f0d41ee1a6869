"""What a target must or must not say, as changes to the logits of its next token.

Shapes: B sentences, K beams, R rows (B K), L the longest target, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.decode.ranking import normaliser
from glassformer.errors import ConfigError, InputError

NEVER = float("-inf")


@dataclass(frozen=True)
class Repetition:
    """Against saying things twice: logits of tokens already written are divided by `penalty` (multiplied, if negative),
    and no `ngram` tokens in a row may come twice (0: they may).

    A prefix that was asked for may repeat itself all the same. The end is no repetition, so a target can always end;
    for a model without one, a ban that would leave no token gives way.
    """

    penalty: float = 1.0
    ngram: int = 0

    def __post_init__(self) -> None:
        if not self.penalty > 0:
            raise ConfigError(f"repetition_penalty={self.penalty} must be above 0; 1 changes nothing, 1.2 is usual")
        if self.ngram < 0:
            raise ConfigError(f"no_repeat_ngram={self.ngram} cannot be negative; 0 allows every repetition")

    def scale(self, logits: Tensor, history: Tensor) -> Tensor:
        """The penalty, given what each row has said (R, L), -1 where nothing stands."""
        if self.penalty == 1.0:
            return logits
        said = history.clamp_min(0)
        seen = torch.zeros_like(logits).scatter_reduce(1, said, (history >= 0).type_as(logits), "amax") > 0
        return torch.where(seen, torch.where(logits < 0, logits * self.penalty, logits / self.penalty), logits)

    def ban(self, logits: Tensor, history: Tensor, length: Tensor, end: int) -> Tensor:
        """Forbid what would repeat an n-gram, `length` (1) being the number of tokens that `history` (R, L) holds."""
        n = self.ngram
        if n == 0 or history.shape[1] < n:
            return logits
        windows = history.unfold(1, n, 1)  # (R, L - n + 1, n): every n-gram, those not yet written among them
        last = (length - n + 1 + torch.arange(n - 1, device=length.device)).clamp_min(0)
        same = (windows[:, :, :-1] == history.index_select(1, last).unsqueeze(1)).all(2)
        repeats = same & (windows >= 0).all(2) & (length >= n - 1)
        hits = torch.zeros_like(logits).scatter_reduce(
            1, windows[:, :, -1].clamp_min(0), repeats.type_as(logits), "amax"
        )
        banned = (hits > 0) & (torch.arange(logits.shape[1], device=logits.device) != end)
        return logits.masked_fill(banned & ~banned.all(1, keepdim=True), NEVER)


class Constraints:
    """All that holds for one search: a prefix for each sentence, no repetitions, an end (-1: none) that is forced."""

    def __init__(self, prefix: Tensor | None, repetition: Repetition, end: int, forced: bool, prompt: Tensor) -> None:
        self.prefix, self.repetition, self.end, self.forced = prefix, repetition, end, forced
        self.prompt = prompt  # (B, P): what stands before each target, and counts as said; -1 where padding
        self.free = prefix is None and repetition == Repetition() and not forced

    def normaliser(self, logits: Tensor, history: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """The logits (R, V) as constrained, and the logarithm (R, 1) to subtract for log-probabilities.

        A penalty changes what is probable; a ban does not: the rest is no more probable than it was.
        """
        if self.free:
            return logits, normaliser(logits)
        beams = logits.shape[0] // self.prompt.shape[0]
        said = torch.cat((self.prompt.repeat_interleave(beams, 0), history), dim=1)
        logits = self.repetition.scale(logits, said)
        total, ids = normaliser(logits), torch.arange(logits.shape[1], device=logits.device)
        allowed = self.repetition.ban(logits, said, step + self.prompt.shape[1], self.end)
        if self.prefix is not None:  # what the prefix asks for keeps its probability, banned or not; the rest has none
            wanted = self.prefix.index_select(1, step).repeat_interleave(beams, 0)  # (R, 1), -1 where it has ended
            allowed = torch.where(wanted < 0, allowed, logits.masked_fill(ids != wanted, NEVER))
        if self.forced:
            last = step == history.shape[1] - 1
            allowed = torch.where(last, torch.where(ids == self.end, total, NEVER), allowed)
        return allowed, total

    def keep(self, sentences: Tensor) -> None:
        self.prompt = self.prompt[sentences]
        if self.prefix is not None:
            self.prefix = self.prefix[sentences]


def prefix_table(
    prefix: Sequence[Sequence[int]], src: Tensor, vocab_size: int, limit: int, end: int, forced: bool
) -> Tensor:
    """The prefixes as one table (B, limit), -1 where there is none; those that could not be kept are refused."""
    if len(prefix) != src.shape[0]:
        raise InputError(
            f"{len(prefix)} prefixes were given for {src.shape[0]} sources; give one each, empty where none"
        )
    for ids in prefix:
        if len(ids) > limit - (forced and ids[-1:] != [end]):
            why = ", of which the last is the end" if forced else ""
            raise InputError(f"a prefix of {len(ids)} tokens does not fit max_new_tokens={limit}{why}")
        if any(not 0 <= id < vocab_size for id in ids):
            raise InputError(f"the prefix {list(ids)} holds an id outside the vocabulary of {vocab_size}")
        if end in ids[:-1]:
            raise InputError(f"the prefix {list(ids)} goes on after the end token {end}; leave that out")
    rows = [[*ids, *[-1] * (limit - len(ids))] for ids in prefix]
    return torch.tensor(rows, dtype=torch.long, device=src.device).view(len(rows), limit)
