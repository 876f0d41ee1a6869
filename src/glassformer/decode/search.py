"""What a search looks for, and what it finds: every option of decoding with every check of one, and a hypothesis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypedDict, Unpack, get_args

from torch import Tensor

from glassformer.common.errors import ConfigError, check_choice, check_finite, check_names, check_whole
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

    def read(self, row: list[int], score: float) -> list[Hypothesis]:
        """What a row of ids, as long as the limit, says; nothing if its probability is none."""
        ids = [token for token in row if token != NO_TOKEN]
        ended = ids[-1:] == [self.end]
        by_itself = ended and not (self.forced and len(ids) == len(row))
        return [Hypothesis(ids[:-1] if ended else ids, score, by_itself)] if math.isfinite(score) else []


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
