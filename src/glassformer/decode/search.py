"""Writing targets token by token: one loop, with the parts that choose, forbid and remember around it.

A hypothesis is scored by the sum of its log-probabilities over a power of its length (`LengthRule`). Beam search for a
sentence goes on until no unfinished hypothesis could still beat its finished ones:

    exact         however long it grew: log-probabilities only fall, so now's best over the longest length is a bound
    huggingface   if it ended now: the default of transformers, faster where longer is better, but it can miss the best
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import get_args

import torch
from torch import Tensor

from glassformer.decode.beam import Beam, Selection, Stopping
from glassformer.decode.constraints import Constraints, Repetition, prefix_table
from glassformer.decode.greedy import Greedy
from glassformer.decode.hypothesis import Hypothesis, LengthRule, Rule
from glassformer.decode.recorded import fit, recorder
from glassformer.decode.sampling import Sampling, Streams
from glassformer.decode.writer import Writer, few, push_right
from glassformer.errors import ConfigError, InputError, one_of
from glassformer.model import DecoderOnly, EncoderDecoder
from glassformer.model.mask import check_mask
from glassformer.model.transformer import Stack

USUAL = 128  # new tokens, where nothing else is said and there is room for them


class NoTarget(InputError):
    """Every target has the probability zero, or one that is not a number."""


@torch.inference_mode()
def generate(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    src_mask: Tensor | None = None,
    beam: int = 1,
    length_penalty: float = 1.0,
    nbest: int = 1,
    max_new_tokens: int | None = None,
    *,
    length_rule: Rule = "average",
    stopping: Stopping = "exact",
    sampling: Sampling | None = None,
    prefix: Sequence[Sequence[int]] | None = None,
    repetition_penalty: float = 1.0,
    no_repeat_ngram: int = 0,
    watch: Callable[[Selection], None] | None = None,
    between_steps: Callable[[], None] | None = None,
) -> list[list[Hypothesis]]:
    """The `nbest` best targets of each source, best first; a decoder-only model continues its prompts.

    Only what has some probability counts, so there may be fewer than `nbest`: a beam of 8 finds 5 targets of one token
    in a vocabulary of 5. They have at most `max_new_tokens`, the end counted: 128, or what the model has positions for.

    With `sampling`, one target of each is drawn instead. `prefix` gives ids that each target must begin with, even
    where `no_repeat_ngram` would forbid them. `watch` is told the candidates of every step of a beam search.
    `between_steps` is called after each step that is not recorded; what it raises ends the search.
    """
    if sampling is not None and beam > 1:
        raise ConfigError(f"sampling draws one target at a time; use beam=1, not {beam}")
    if stopping not in get_args(Stopping):
        raise ConfigError(f"stopping={stopping!r} is not one of {one_of(get_args(Stopping))}")
    if not 1 <= nbest <= beam:
        raise ConfigError(f"nbest={nbest} must lie between 1 and beam={beam}")
    rule, repetition = LengthRule(length_penalty, length_rule), Repetition(repetition_penalty, no_repeat_ngram)
    limit, forced = room(model, src, src_mask, max_new_tokens), model.config.force_end

    def start(src: Tensor, src_mask: Tensor | None) -> tuple[Writer, Constraints, Greedy | Beam]:
        writer, constraints, end = prepare(model, src, src_mask, beam, limit, prefix, repetition)
        if beam > 1:
            B = src.shape[0]
            return writer, constraints, Beam(B, beam, limit, end, src.device, rule, stopping, watch, forced)
        streams = None if sampling is None else Streams(sampling, src, src_mask)
        greedy = Greedy(src.shape[0], limit, end, padding(model), src.device, streams, forced)
        return writer, constraints, greedy

    if src.is_cuda and sampling is None and prefix is None and watch is None and repetition == Repetition():
        most = positions(model.encoder) if isinstance(model, EncoderDecoder) else positions(model.decoder) - limit + 1
        fitted, mask = fit(src, src_mask, padding(model), most)
        key = (fitted.shape, mask is None, beam, limit, rule, stopping)
        recordings = recorder(model)
        with recordings.lock:
            done = recordings.run(key, limit, lambda: start(fitted, mask), src.shape[0])
            return possible(done.hypotheses(nbest, rule)[: src.shape[0]], prefix)
    writer, constraints, search = start(src, src_mask)
    found: list[list[Hypothesis]] = [[] for _ in range(src.shape[0])]

    def leave() -> None:
        for sentence, best in zip(search.sentence.tolist(), search.hypotheses(nbest, rule), strict=True):
            found[sentence] = best

    for _ in steps(writer, constraints, search, limit, leave):
        if between_steps is not None:
            between_steps()
    leave()
    return possible(found, prefix)


def stream(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    max_new_tokens: int | None = None,
    *,
    sampling: Sampling | None = None,
    prefix: Sequence[int] = (),
    repetition_penalty: float = 1.0,
    no_repeat_ngram: int = 0,
) -> Generator[int, None, Hypothesis]:
    """The tokens of one source's target, each as soon as it is chosen: the likeliest, or drawn by `sampling`.

    The generator returns the whole of it: `hypothesis = yield from stream(...)`.
    """
    limit = room(model, src, None, max_new_tokens)
    if src.shape[0] != 1:
        raise ConfigError(f"stream() writes one target at a time; {src.shape[0]} sources were given")
    repetition = Repetition(repetition_penalty, no_repeat_ngram)
    begun = [prefix] if prefix else None
    with torch.inference_mode():
        writer, constraints, end = prepare(model, src, None, 1, limit, begun, repetition)
    streams = None if sampling is None else Streams(sampling, src, None)
    search = Greedy(1, limit, end, padding(model), src.device, streams, model.config.force_end)
    return chosen(writer, constraints, search, limit, begun)


@torch.inference_mode()
def chosen(
    writer: Writer, constraints: Constraints, search: Greedy, limit: int, prefix: Sequence[Sequence[int]] | None
) -> Generator[int, None, Hypothesis]:
    for step, _ in enumerate(steps(writer, constraints, search, limit, lambda: None)):
        token = int(search.written[0, step])
        if token != search.end:
            yield token
    ((hypothesis,),) = possible(search.hypotheses(1, LengthRule()), prefix)
    return hypothesis


def room(model: EncoderDecoder | DecoderOnly, src: Tensor, src_mask: Tensor | None, asked: int | None) -> int:
    """The most tokens to write, once it is clear that the model can write, and from what."""
    if not isinstance(model, EncoderDecoder | DecoderOnly):
        raise InputError(f"{type(model).__name__} reads and cannot write; give an EncoderDecoder or a DecoderOnly")
    if isinstance(model, EncoderDecoder) and model.config.start_id is None:
        raise ConfigError("start_id=None: the model's config names no start token, so no target can begin; set it")
    (model.encoder if isinstance(model, EncoderDecoder) else model.decoder).embedding.check(src, 0, None)
    if src_mask is not None:
        check_mask(src_mask, src, "src_mask")
    if not len(src):
        raise InputError(f"src of shape {tuple(src.shape)} is an empty batch; give one source or more")
    empty = torch.nonzero(~(torch.ones_like(src, dtype=torch.bool) if src_mask is None else src_mask).any(1))
    if len(empty):
        raise InputError(f"source {int(empty[0])} has no tokens, so there is nothing to write from; leave it out")
    before = 1 if isinstance(model, EncoderDecoder) else src.shape[1]
    free = positions(model.decoder) - before + 1  # the last token is written and never read
    limit = min(USUAL, free) if asked is None else asked
    if limit < 1:
        raise ConfigError(f"max_new_tokens={limit} must be at least 1")
    if limit > free:
        raise ConfigError(
            f"max_new_tokens={limit} is too many: the position table of {positions(model.decoder)} has room for {free} "
            f"after a prompt of {before}; ask for fewer, or build the model with a larger max_length"
        )
    return int(limit)


def positions(stack: Stack) -> float:
    table = stack.embedding.positions
    return math.inf if table is None else len(table.table)


def possible(found: list[list[Hypothesis]], prefix: Sequence[Sequence[int]] | None) -> list[list[Hypothesis]]:
    for i, best in enumerate(found):
        if not best:
            after = f" after the prefix {list(prefix[i])}" if prefix and prefix[i] else ""
            raise NoTarget(
                f"source {i} has no possible target{after}: the model gives every token that may come a probability "
                f"of zero, or none at all; are the weights finite?"
            )
    return found


def prepare(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    src_mask: Tensor | None,
    beam: int,
    limit: int,
    prefix: Sequence[Sequence[int]] | None,
    repetition: Repetition,
) -> tuple[Writer, Constraints, int]:
    if isinstance(model, DecoderOnly) and src_mask is not None:
        src, src_mask = push_right(src, src_mask)
    config = model.config
    end, forced = -1 if config.end_id is None else config.end_id, config.force_end and config.end_id is not None
    table = None if prefix is None else prefix_table(prefix, src, config.vocab_size, limit, end, forced)
    writer = Writer(model, src, src_mask, limit, beam)
    return writer, Constraints(table, repetition, end, forced, writer.said), end


def padding(model: EncoderDecoder | DecoderOnly) -> int:
    """What a finished sentence reads while others go on."""
    return model.config.pad_id if model.config.pad_id is not None else max(model.config.end_id or 0, 0)


def steps(
    writer: Writer, constraints: Constraints, search: Greedy | Beam, limit: int, leave: Callable[[], None]
) -> Iterator[None]:
    """Write until all sentences are done, a step at a time; `leave` is called before some of them leave the batch."""
    logits = writer.begin()
    for step in range(limit):
        search.advance(logits, constraints)
        yield
        stay = few(search.going)
        if step == limit - 1 or (stay is not None and not len(stay)):
            return
        if search.origin is not None:
            writer.cache.follow(search.origin)
        if stay is not None:
            leave()
            writer.keep(stay)
            constraints.keep(stay)
            search.keep(stay)
        logits = writer.next(search.tokens)
