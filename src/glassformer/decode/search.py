"""A search: every option of decoding with its checks, what a target must or must not say, the likeliest tokens that
remain, and what is found, a hypothesis.

Shapes: B sentences, K beams, R rows (B K), L the longest target, P placeholders, V vocabulary, N blocks of W tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple, TypedDict, Unpack, get_args

import torch
from torch import Tensor

from glassformer.common.arguments import checked
from glassformer.common.errors import ConfigError, InputError, check_choice, check_finite, check_names, check_whole
from glassformer.decode.kernels import address, kernels_for
from glassformer.decode.kernels.structures import Bans
from glassformer.model import ModelConfig

Rule = Literal["average", "gnmt"]
NO_TOKEN = -1  # in a table of ids, where no token stands


@dataclass(frozen=True)
class Hypothesis:
    """A target: its ids without start, end or padding, its score, and whether it ended by itself.

    One that is not `finished` was cut off by the limit, or had its end forced in the last place (`force_end`).
    """

    ids: list[int]
    score: float
    finished: bool = True
    log_probabilities: list[float] = field(default_factory=list, compare=False, repr=False)  # of each of `ids`


@dataclass(frozen=True)
class LengthRule:
    """What a sum of log-probabilities is divided by, the end token counted.

    average   length ** power: the mean log-probability for power 1
    gnmt      ((5 + length) / 6) ** power, of Wu et al. 2016, gentler with short targets
    """

    power: float = 1.0
    kind: Rule = "average"

    def __post_init__(self) -> None:
        check_finite("length_penalty", self.power)
        check_choice("length_rule", self.kind, get_args(Rule))

    def divisor(self, length: Tensor) -> Tensor:
        return (length if self.kind == "average" else (5 + length) / 6) ** self.power

    def reach(self, length: Tensor, limit: Tensor) -> Tensor:
        """The divisor that is kindest to a hypothesis of this length, if it may still grow to `limit`."""
        return self.divisor(length.clamp_min(limit) if self.power > 0 else length)


class SpecialTokens(NamedTuple):
    """What ends a target, and what stands behind it."""

    end: int  # NO_TOKEN for a model that has none
    pad: int  # what a finished target's row reads while others go on
    forced: bool  # the last token that fits is the end, whatever the model would say

    @classmethod
    def of(cls, config: ModelConfig) -> SpecialTokens:
        end = NO_TOKEN if config.end_id is None else config.end_id
        pad = max(end, 0) if config.pad_id is None else config.pad_id
        return cls(end, pad, config.force_end and config.end_id is not None)

    def read(self, row: list[int], sums: list[float], score: float) -> list[Hypothesis]:
        """What a row of ids, as long as the limit, says, with the log-probability of all up to each; nothing if its
        probability is none."""
        ids = [token for token in row if token != NO_TOKEN]
        ended = ids[-1:] == [self.end]
        by_itself = ended and not (self.forced and len(ids) == len(row))
        ids = ids[:-1] if ended else ids
        each = [min(0.0, after - before) for before, after in pairwise([0.0, *sums[: len(ids)]])]
        return [Hypothesis(ids, score, by_itself, each)] if math.isfinite(score) else []


@checked
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


Stopping = Literal["exact", "huggingface"]


@checked
@dataclass(frozen=True, kw_only=True)
class Search:
    """How to look for a target. A wrong option is refused here, before any work is done.

        careful = gf.Search(beam=4, length_penalty=0.6)
        gf.generate(model, src, search=careful)
        t.translate(texts, search=careful, nbest=2)  # the same, but for one option

    beam                 targets followed at once; 1 is greedy search
    nbest                targets returned for each source, best first, at most `beam`
    length_penalty       a score is a log-probability over this power of the length: 0 a sum, 1 a mean
    length_rule          what counts as length: see `LengthRule`
    stopping             when a beam search ends: as soon as no unfinished target could still win,
                           exact         however long it grew: log-probabilities only fall, which gives a bound
                           huggingface   if it ended now: the default of transformers, which can miss the best
    sampling             draws one target at random instead: see `Sampling`
    repetition_penalty   divides the logits of tokens already written (multiplies negative ones); 1 changes nothing
    no_repeat_ngram      no so many tokens in a row come twice; 0 lets them
    max_new_tokens       tokens written at most, the end counted; None leaves it to the model

    A prefix that was asked for may repeat itself all the same. The end is no repetition, so a target can always end;
    for a model without one, a ban that would leave no token gives way.
    """

    beam: int = 1
    nbest: int = 1
    length_penalty: float = 1.0
    length_rule: Rule = "average"
    stopping: Stopping = "exact"
    sampling: Sampling | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram: int = 0
    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        check_whole("beam", self.beam, 1, "1 is greedy search")
        check_whole("nbest", self.nbest, 1, "1 gives the best alone")
        if self.nbest > self.beam:
            raise ConfigError(
                f"nbest={self.nbest} must lie between 1 and beam={self.beam}; beam={self.nbest} is wide enough"
            )
        LengthRule(self.length_penalty, self.length_rule)
        check_choice("stopping", self.stopping, get_args(Stopping))
        if self.sampling is not None and self.beam > 1:
            raise ConfigError(f"sampling draws one target at a time; use beam=1, not {self.beam}")
        check_finite("repetition_penalty", self.repetition_penalty)
        if not self.repetition_penalty > 0:
            raise ConfigError(
                f"repetition_penalty={self.repetition_penalty} must be above 0; 1 changes nothing, 1.2 is usual"
            )
        check_whole("no_repeat_ngram", self.no_repeat_ngram, 0, "0 allows every repetition")
        if self.max_new_tokens is not None:
            check_whole("max_new_tokens", self.max_new_tokens, 1, "leave it out for as many as usual")

    @property
    def rule(self) -> LengthRule:
        """What scores are divided by."""
        return LengthRule(self.length_penalty, self.length_rule)

    @property
    def allows_repetition(self) -> bool:
        """Whether a token costs no more when it comes again."""
        return self.repetition_penalty == 1 and self.no_repeat_ngram == 0


class MoreOptions(TypedDict, total=False):
    """The options of a `Search` that `generate` takes by name only."""

    length_rule: Rule | None
    stopping: Stopping | None
    sampling: Sampling | None
    repetition_penalty: float | None
    no_repeat_ngram: int | None


class SearchOptions(MoreOptions, total=False):
    """The options of a `Search`, as they are given by name where none is given whole."""

    beam: int | None
    nbest: int | None
    length_penalty: float | None
    max_new_tokens: int | None


def search_of(search: Search | None, **options: Unpack[SearchOptions]) -> Search:
    """`search`, or else `Search()`, with the options given by name; None leaves one as it is."""
    check_names(options, SearchOptions.__annotations__)
    given = {name: value for name, value in options.items() if value is not None}
    whole = search or Search()
    return replace(whole, **given) if given else whole  # type: ignore[arg-type]  # the names were checked


def check_stream(search: Search) -> Search:
    """A search that is told token by token: it never goes back on one."""
    if search.beam > 1:
        raise ConfigError(f"a stream goes back on no token, as beam={search.beam} would; use beam=1")
    return search


NEVER = float("-inf")


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
        allowed: Tensor | None = None,
    ) -> None:
        self.allowed = allowed  # (B, V): the others have no probability
        self.given = given  # tokens at the beginning of every prefix that cost nothing
        self.search, self.marks, self.prefix, self.placeholders = search, marks, prefix, placeholders
        self.prompt = prompt  # (B, ...): what stands before each target, and counts as said
        bound = prefix is not None or placeholders is not None or allowed is not None
        self.free = not bound and search.allows_repetition and not marks.forced

    def normaliser(self, logits: Tensor, history: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """The logits (R, V) as constrained, and the logarithm (R, 1) to subtract for log-probabilities.

        A penalty changes what is probable; a ban does not: the rest is no more probable than it was.
        """
        if self.free:
            return logits, normaliser(logits)
        beams = logits.shape[0] // self.prompt.shape[0]
        if not self.search.allows_repetition:
            written = torch.cat((self.prompt.repeat_interleave(beams, 0), history), dim=1)
        if (penalty := self.search.repetition_penalty) != 1:
            real = (written != NO_TOKEN).type_as(logits)
            said = torch.zeros_like(logits).scatter_reduce(1, written.clamp_min(0), real, "amax") > 0
            logits = torch.where(said, torch.where(logits < 0, logits * penalty, logits / penalty), logits)
        allowed = logits
        if self.allowed is not None:
            allowed = logits.masked_fill(~self.allowed.repeat_interleave(beams, 0), NEVER)
        total = normaliser(allowed)
        if n := self.search.no_repeat_ngram:
            allowed = without_repeats(allowed, written, step + self.prompt.shape[1], n, self.marks.end)
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
        if (
            self.prefix is not None
            or self.allowed is not None
            or self.marks.forced
            or self.search.repetition_penalty != 1
            or all_said
        ):
            return None
        ids, wanted = self.placeholders or (None, None)
        return Bans(n, before, address(self.prompt), 0 if ids is None else len(ids), address(ids), address(wanted))

    def keep(self, sentences: Tensor) -> None:
        self.prompt = self.prompt[sentences]
        self.allowed = None if self.allowed is None else self.allowed[sentences]
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
