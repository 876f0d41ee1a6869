"""How to look for a target: every option of decoding, and every check of one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypedDict, Unpack, get_args

from glassformer.common.errors import ConfigError, check_choice, check_finite, check_names, check_whole
from glassformer.decode.hypothesis import LengthRule, Rule
from glassformer.decode.sampling import Sampling

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
