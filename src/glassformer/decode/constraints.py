"""The logits of a target's next token: what a target must or must not say, and the likeliest tokens that remain.

Shapes: B sentences, K beams, R rows (B K), L the longest target, P placeholders, V vocabulary, N blocks of W tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.common.errors import InputError
from glassformer.decode.kernels import address, kernels_for
from glassformer.decode.kernels.structures import Bans
from glassformer.decode.search import NO_TOKEN, Search, SpecialTokens

NEVER = float("-inf")


def penalised(logits: Tensor, history: Tensor, penalty: float) -> Tensor:
    """Tokens that a row has written (R, L) made less likely, by `penalty`."""
    if penalty == 1:
        return logits
    written = torch.zeros_like(logits).scatter_reduce(
        1, history.clamp_min(0), (history != NO_TOKEN).type_as(logits), "amax"
    )
    return torch.where(written > 0, torch.where(logits < 0, logits * penalty, logits / penalty), logits)


def without_repeats(logits: Tensor, history: Tensor, length: Tensor, n: int, end: int) -> Tensor:
    """Forbid what would repeat an n-gram, `length` (1) being the number of tokens that `history` (R, L) holds."""
    if n == 0 or history.shape[1] < n:
        return logits
    windows = history.unfold(1, n, 1)  # (R, L - n + 1, n): every n-gram, those not yet written among them
    last = (length - n + 1 + torch.arange(n - 1, device=length.device)).clamp_min(0)
    same = (windows[:, :, :-1] == history.index_select(1, last).unsqueeze(1)).all(2)
    rows, places = torch.nonzero(same & (windows != NO_TOKEN).all(2) & (length >= n - 1), as_tuple=True)
    tokens = windows[rows, places, -1]
    rows, tokens = rows[tokens != end], tokens[tokens != end]
    if not len(rows):  # as nearly always: nothing of the vocabulary's size is touched
        return logits
    allowed = logits.index_put((rows, tokens), logits.new_tensor(NEVER))
    if windows.shape[1] < logits.shape[1]:
        return allowed
    banned = torch.zeros_like(logits, dtype=torch.bool).index_put((rows, tokens), rows.new_ones(()).bool())
    return torch.where(banned.all(1, keepdim=True), logits, allowed)  # where all would be, none is


@dataclass(frozen=True)
class Placeholders:
    """Tokens that stand for what is put in later: the i-th target writes each of `wanted[i]` exactly once, and no other
    of `ids`, the placeholders of the vocabulary.

    No target ends before it has written its own; where the limit of length is near, they come first.
    """

    ids: tuple[int, ...]
    wanted: tuple[tuple[int, ...], ...]

    def of(self, rows: Sequence[int]) -> Placeholders:
        """Those of some of the targets."""
        return Placeholders(self.ids, tuple(self.wanted[i] for i in rows))


class PlaceholderTable(NamedTuple):
    ids: Tensor  # (P)
    wanted: Tensor  # (B, P)

    def hold(self, allowed: Tensor, logits: Tensor, history: Tensor, left: Tensor, end: int) -> Tensor:
        """Of the logits (R, V), let what is wanted and missing keep its own, banned or not, and ban the other
        placeholders and the end while any is missing; `left` (1) tokens may still be written."""
        wanted = self.wanted.repeat_interleave(len(logits) // len(self.wanted), 0)
        missing = wanted & ~(history.unsqueeze(2) == self.ids).any(1)  # (R, P)
        waiting = missing.sum(1, keepdim=True)
        own = torch.where(missing, logits.index_select(1, self.ids), NEVER)
        now = (waiting > 0) & (waiting >= left - 1)  # with room for no more than these and the end, they must come now
        if now.is_cuda or now.any():  # a GPU that records a step cannot ask
            allowed = allowed.masked_fill(now, NEVER)
        held = allowed.index_copy(1, self.ids, own)
        if end != NO_TOKEN:
            held[:, end].masked_fill_(waiting[:, 0] > 0, NEVER)
        return held


class Constraints:
    """All that holds for one search: a prefix and placeholders for each sentence, no repetitions, an end that is
    forced."""

    def __init__(
        self,
        search: Search,
        marks: SpecialTokens,
        prompt: Tensor,
        prefix: Tensor | None = None,
        placeholders: PlaceholderTable | None = None,
        given: int = 0,
    ) -> None:
        self.given = given  # tokens at the beginning of every prefix that cost nothing
        self.search, self.marks, self.prefix, self.placeholders = search, marks, prefix, placeholders
        self.prompt = prompt  # (B, ...): what stands before each target, and counts as said
        self.free = prefix is None and placeholders is None and search.allows_repetition and not marks.forced

    def normaliser(self, logits: Tensor, history: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """The logits (R, V) as constrained, and the logarithm (R, 1) to subtract for log-probabilities.

        A penalty changes what is probable; a ban does not: the rest is no more probable than it was.
        """
        if self.free:
            return logits, normaliser(logits)
        beams = logits.shape[0] // self.prompt.shape[0]
        if not self.search.allows_repetition:
            written = torch.cat((self.prompt.repeat_interleave(beams, 0), history), dim=1)
            logits = penalised(logits, written, self.search.repetition_penalty)
        allowed, total = logits, normaliser(logits)
        if n := self.search.no_repeat_ngram:
            allowed = without_repeats(logits, written, step + self.prompt.shape[1], n, self.marks.end)
        if self.placeholders is not None:
            allowed = self.placeholders.hold(allowed, logits, history, history.shape[1] - step, self.marks.end)
        if self.prefix is None and not self.marks.forced:
            return allowed, total
        ids = torch.arange(logits.shape[1], device=logits.device)
        if self.prefix is not None:  # what the prefix asks for keeps its probability, banned or not; the rest has none
            wanted = self.prefix.index_select(1, step).repeat_interleave(beams, 0)  # (R, 1)
            own = torch.where(step < self.given, total, logits) if self.given else logits
            allowed = torch.where(wanted == NO_TOKEN, allowed, own.masked_fill(ids != wanted, NEVER))
        if self.marks.forced:
            last = step == history.shape[1] - 1
            allowed = torch.where(last, torch.where(ids == self.marks.end, total, NEVER), allowed)
        return allowed, total

    def top_tokens(self, output: Tensor | TopTokens, history: Tensor, step: Tensor, count: int) -> TopTokens:
        """The `count` likeliest of each row, of logits (R, V); or what is known of them already."""
        if isinstance(output, TopTokens):
            assert self.free
            return output
        logits, total = self.normaliser(output, history, step)
        return TopTokens(*top_tokens(logits, count), total)

    def bans(self, limit: int, vocab_size: int) -> Bans | None:
        """What targets of at most `limit` tokens must not say, for the kernels; none if they do not know all of it."""
        n, before = self.search.no_repeat_ngram, self.prompt.shape[1]
        all_said = n and before + limit - n + 1 >= vocab_size  # then a ban may have to give way
        if self.prefix is not None or self.marks.forced or self.search.repetition_penalty != 1 or all_said:
            return None
        ids, wanted = self.placeholders or (None, None)
        return Bans(n, before, address(self.prompt), 0 if ids is None else len(ids), address(ids), address(wanted))

    def keep(self, sentences: Tensor) -> None:
        self.prompt = self.prompt[sentences]
        if self.prefix is not None:
            self.prefix = self.prefix[sentences]
        if self.placeholders is not None:
            self.placeholders = PlaceholderTable(self.placeholders.ids, self.placeholders.wanted[sentences])

    def copy_from(self, other: Constraints) -> None:
        """Hold for the sentences of `other`, a search of the same shape."""
        if self.placeholders is not None and other.placeholders is not None and self is not other:
            self.prompt.copy_(other.prompt)
            self.placeholders.wanted.copy_(other.placeholders.wanted)


def prefix_table(
    prefix: Sequence[Sequence[int]], src: Tensor, vocab_size: int, limit: int, marks: SpecialTokens
) -> Tensor:
    """The prefixes as one table (B, limit); those that could not be kept are refused."""
    if len(prefix) != src.shape[0]:
        raise InputError(
            f"{len(prefix)} prefixes were given for {src.shape[0]} sources; give one each, empty where none"
        )
    for ids in prefix:
        if len(ids) > limit - (marks.forced and ids[-1:] != [marks.end]):
            why = ", of which the last is the end" if marks.forced else ""
            raise InputError(f"a prefix of {len(ids)} tokens does not fit max_new_tokens={limit}{why}")
        if any(not 0 <= id < vocab_size for id in ids):
            raise InputError(f"the prefix {list(ids)} holds an id outside the vocabulary of {vocab_size}")
        if marks.end in ids[:-1]:
            raise InputError(f"the prefix {list(ids)} goes on after the end token {marks.end}; leave that out")
    rows = [[*ids, *[NO_TOKEN] * (limit - len(ids))] for ids in prefix]
    return torch.tensor(rows, dtype=torch.long, device=src.device).view(len(rows), limit)


def placeholder_table(
    placeholders: Placeholders, src: Tensor, vocab_size: int, limit: int, prefix: Sequence[Sequence[int]] | None
) -> PlaceholderTable:
    """The placeholders as tensors; those for which there is no room are refused."""
    ids, wanted = placeholders.ids, placeholders.wanted
    if len(wanted) != src.shape[0]:
        raise InputError(
            f"placeholders for {len(wanted)} targets, but {src.shape[0]} sources; give some or () for each"
        )
    for id in ids:
        if not 0 <= id < vocab_size:
            raise InputError(f"the placeholder {id} is outside the vocabulary of {vocab_size}")
    for i, own in enumerate(wanted):
        if unknown := [id for id in own if id not in ids]:
            raise InputError(
                f"target {i} should hold {unknown}, not among the placeholders {list(ids)}; add them there"
            )
        begun = prefix[i] if prefix is not None else ()
        needed = len(begun) + len(set(own) - set(begun))
        if own and needed > limit:
            raise InputError(
                f"target {i} needs {needed} tokens for prefix and placeholders, but max_new_tokens={limit}; allow more"
            )
    rows = [[id in own for id in ids] for own in wanted]
    table = torch.tensor(rows, dtype=torch.bool, device=src.device).view(len(wanted), len(ids))
    return PlaceholderTable(torch.tensor(ids, dtype=torch.long, device=src.device), table)


WIDTH = 128


class TopTokens(NamedTuple):
    """Of each row the highest logits, highest first, their ids, and what to subtract for log-probabilities."""

    logits: Tensor  # (R, C)
    ids: Tensor  # (R, C)
    normaliser: Tensor  # (R, 1)


def top_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` highest logits of each row (R, V) and their ids, highest first.

    Where our kernels are not, a CPU finds the highest of many blocks much faster than the `count` highest of all; and
    those can only lie in the `count` blocks whose own highest are highest, or in what the blocks leave over.
    """
    rows, size = logits.shape
    own = kernels_for(logits)
    if own is not None:
        return own.highest(logits.contiguous(), min(count, size))
    blocks = size // WIDTH
    if logits.device.type != "cpu" or blocks <= 2 * count:
        return logits.topk(min(count, size))
    table = logits[:, : blocks * WIDTH].view(rows, blocks, WIDTH)
    chosen = table.amax(-1).topk(count)[1].unsqueeze(-1)  # (R, count, 1)
    among = table.gather(1, chosen.expand(-1, -1, WIDTH)).flatten(1)
    ids = (chosen * WIDTH + torch.arange(WIDTH)).flatten(1)
    if blocks * WIDTH < size:
        among = torch.cat((among, logits[:, blocks * WIDTH :]), dim=1)
        ids = torch.cat((ids, torch.arange(blocks * WIDTH, size).expand(rows, -1)), dim=1)
    best, places = among.topk(count)
    return best, ids.gather(1, places)


def normaliser(logits: Tensor) -> Tensor:
    """The logarithm (R, 1) to subtract from logits (R, V) for log-probabilities."""
    own = kernels_for(logits)
    return logits.logsumexp(-1, keepdim=True) if own is None else own.normalise(logits.contiguous())
