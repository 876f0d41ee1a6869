"""Writing targets token by token: one loop, with the parts that choose, forbid and remember around it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

import torch
from torch import Tensor

from glassformer.common.arguments import checked
from glassformer.common.errors import ConfigError, InputError
from glassformer.decode.beam import Beam, Selection
from glassformer.decode.greedy import Greedy, RandomStreams
from glassformer.decode.program import writer_of
from glassformer.decode.recorded import Selector, pad_to_bucket, recorder
from glassformer.decode.search import (
    NO_TOKEN,
    Constraints,
    Hypothesis,
    MoreOptions,
    Placeholders,
    Search,
    SearchOptions,
    SpecialTokens,
    check_stream,
    placeholder_table,
    prefix_table,
    search_of,
)
from glassformer.decode.step import Writer, left_pad, start_of, still_running
from glassformer.model import DecoderOnly, EncoderDecoder
from glassformer.model.attention import check_mask
from glassformer.model.transformer import Stack

USUAL_LIMIT = 128  # new tokens, where nothing else is said and there are positions for them


class NoTarget(InputError):
    """Every target has the probability zero, or one that is not a number."""


@checked
def generate(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    src_mask: Tensor | None = None,
    beam: int | None = None,
    length_penalty: float | None = None,
    nbest: int | None = None,
    max_new_tokens: int | None = None,
    *,
    search: Search | None = None,
    prefix: Sequence[Sequence[int]] | None = None,
    given: int = 0,
    placeholders: Placeholders | None = None,
    watch: Callable[[Selection], None] | None = None,
    between_steps: Callable[[], None] | None = None,
    **options: Unpack[MoreOptions],
) -> list[list[Hypothesis]]:
    """The `nbest` best targets of each source, best first; a decoder-only model continues its prompts.

    What to look for is given whole as `search`, by name (`Search` lists the options), or both: a name wins.

    Only what has some probability counts, so there may be fewer than `nbest`: a beam of 8 finds 5 targets of one token
    in a vocabulary of 5. They have at most `max_new_tokens`, the end counted: 128, or what the model has positions for.

    `prefix` gives ids that each target must begin with, even where `no_repeat_ngram` would forbid them; the first
    `given` of each, such as the token of a language, count as certain. `placeholders` gives those that it must hold
    exactly once. `watch` is told the candidates of every step of a beam search. `between_steps`
    is called after every step or every few, unless a GPU has recorded them; what it raises ends the search.
    """
    if model.training and (model.config.dropout or model.config.attention_dropout):
        message = (
            "the model is in training mode, so dropout is on and each call may write another text; call model.eval()"
        )
        warnings.warn(message, stacklevel=3)
    search = search_of(
        search, beam=beam, length_penalty=length_penalty, nbest=nbest, max_new_tokens=max_new_tokens, **options
    )
    return run_search(model, src, src_mask, search, prefix, given, placeholders, watch, between_steps)


@torch.inference_mode()
def run_search(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    src_mask: Tensor | None,
    search: Search,
    prefix: Sequence[Sequence[int]] | None = None,
    given: int = 0,
    placeholders: Placeholders | None = None,
    watch: Callable[[Selection], None] | None = None,
    between_steps: Callable[[], None] | None = None,
    limits: Sequence[int] | None = None,
    allowed: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """What `generate` does. With `limits`, each target of a beam search has one of its own, at most that of all; for
    them nothing may be asked that depends on the last place: no prefix, no placeholders, no end that is forced.
    `allowed` (B, V) are the tokens that a target may hold."""
    limit = token_limit(model, src, src_mask, search)
    recordable = search.sampling is None and search.allows_repetition and model.config.autoregression == "attention"
    if src.is_cuda and recordable and prefix is None and watch is None and allowed is None:
        return check_possible(run_recorded(model, src, src_mask, search, limit, placeholders), prefix)
    writer, constraints, selector = prepare_search(
        model, src, src_mask, search, limit, prefix, placeholders, watch, given, limits, allowed
    )
    hypotheses: list[list[Hypothesis]] = [[] for _ in range(src.shape[0])]

    def leave() -> None:
        for sentence, best in zip(selector.sentence.tolist(), selector.hypotheses(search.nbest), strict=True):
            hypotheses[sentence] = best

    for _ in steps(writer, constraints, selector, limit, leave):
        if between_steps is not None:
            between_steps()
    leave()
    return check_possible(hypotheses, prefix)


def run_recorded(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    src_mask: Tensor | None,
    search: Search,
    limit: int,
    placeholders: Placeholders | None = None,
) -> list[list[Hypothesis]]:
    """The same by steps that a GPU has recorded."""
    reader = model.encoder if isinstance(model, EncoderDecoder) else model.decoder
    longest = positions(reader) - (0 if isinstance(model, EncoderDecoder) else limit - 1)
    fitted, mask = pad_to_bucket(src, src_mask, SpecialTokens.of(reader.embedding.config).pad, longest)
    key = (fitted.shape, mask is None, replace(search, max_new_tokens=limit), placeholders and placeholders.ids)
    if placeholders is not None:
        more = ((),) * (len(fitted) - len(src))
        placeholders = replace(placeholders, wanted=placeholders.wanted + more)
    recordings = recorder(model)
    start = partial(prepare_search, model, fitted, mask, search, limit, placeholders=placeholders)
    with recordings.lock:
        done = recordings.run(key, limit, start, src.shape[0])
        return done.hypotheses(search.nbest)[: src.shape[0]]


@checked
def stream(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    *,
    search: Search | None = None,
    prefix: Sequence[int] = (),
    given: int = 0,
    allowed: Tensor | None = None,
    **options: Unpack[SearchOptions],
) -> Generator[int, None, Hypothesis]:
    """The tokens of one source's target, each as soon as it is chosen: the likeliest, or drawn by `sampling`.

    The generator returns the whole of it: `hypothesis = yield from stream(...)`. What to look for is given as to
    `generate`, but for a beam; it may hold the tokens that are `allowed` (1, V).
    """
    search = check_stream(search_of(search, **options))
    limit = token_limit(model, src, None, search)
    if src.shape[0] != 1:
        raise ConfigError(f"stream() writes one target at a time; {src.shape[0]} sources were given")
    prefixes = [prefix] if prefix else None
    with torch.inference_mode():
        writer, constraints, selector = prepare_search(
            model, src, None, search, limit, prefixes, given=given, allowed=allowed
        )
    return stream_tokens(writer, constraints, selector, limit, prefixes)


@torch.inference_mode()
def stream_tokens(
    writer: Writer, constraints: Constraints, selector: Selector, limit: int, prefix: Sequence[Sequence[int]] | None
) -> Generator[int, None, Hypothesis]:
    for step, _ in enumerate(steps(writer, constraints, selector, limit, lambda: None)):
        token = int(selector.written[0, step])
        if token != selector.marks.end:
            yield token
    ((hypothesis,),) = check_possible(selector.hypotheses(), prefix)
    return hypothesis


def token_limit(model: EncoderDecoder | DecoderOnly, src: Tensor, src_mask: Tensor | None, search: Search) -> int:
    """The most tokens to write, once it is clear that the model can write, and from what."""
    if isinstance(model, EncoderDecoder):
        start_of(model)
    reader = model.encoder if isinstance(model, EncoderDecoder) else model.decoder
    reader.embedding.check(src, src.shape[-1] if src.dim() else 0, None)
    if src_mask is not None:
        check_mask(src_mask, src, "src_mask")
    if not len(src):
        raise InputError(f"src of shape {tuple(src.shape)} is an empty batch; give one source or more")
    empty = torch.nonzero(~(torch.ones_like(src, dtype=torch.bool) if src_mask is None else src_mask).any(1))
    if len(empty):
        raise InputError(f"source {int(empty[0])} has no tokens, so there is nothing to write from; leave it out")
    before = 1 if isinstance(model, EncoderDecoder) else src.shape[1]
    free = positions(model.decoder) - before + 1  # the last token is written and never read
    limit = min(USUAL_LIMIT, free) if search.max_new_tokens is None else search.max_new_tokens
    if limit > free:
        raise ConfigError(
            f"max_new_tokens={limit} is too many: the position table of {positions(model.decoder)} has room for {free} "
            f"after a prompt of {before}; ask for fewer, or build the model with a larger max_length"
        )
    return int(limit)


def positions(stack: Stack) -> float:
    table = stack.embedding.positions
    return math.inf if table is None else len(table.table)


def check_possible(
    hypotheses: list[list[Hypothesis]], prefix: Sequence[Sequence[int]] | None
) -> list[list[Hypothesis]]:
    for i, best in enumerate(hypotheses):
        if not best:
            after = f" after the prefix {list(prefix[i])}" if prefix and prefix[i] else ""
            raise NoTarget(
                f"source {i} has no possible target{after}: the model gives every token that may come a probability "
                f"of zero, or none at all; are the weights finite?"
            )
    return hypotheses


def prepare_search(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    src_mask: Tensor | None,
    search: Search,
    limit: int,
    prefix: Sequence[Sequence[int]] | None = None,
    placeholders: Placeholders | None = None,
    watch: Callable[[Selection], None] | None = None,
    given: int = 0,
    limits: Sequence[int] | None = None,
    allowed: Tensor | None = None,
) -> tuple[Writer, Constraints, Selector]:
    """The parts that a search is made of."""
    if isinstance(model, DecoderOnly) and src_mask is not None:
        src, src_mask = left_pad(src, src_mask)
    marks = SpecialTokens.of(model.config)
    table = None if prefix is None else prefix_table(prefix, src, model.config.vocab_size, limit, marks)
    held = (
        None if placeholders is None else placeholder_table(placeholders, src, model.config.vocab_size, limit, prefix)
    )
    writer = writer_of(model, src, src_mask, limit, search.beam)
    said = writer.prompt
    if isinstance(model, DecoderOnly) and src_mask is not None:
        said = said.masked_fill(~src_mask, NO_TOKEN)  # padding is not
    allowed = None if allowed is None else allowed.to(src.device)
    constraints = Constraints(search, marks, said, table, held, given, allowed)
    if search.beam > 1:
        return writer, constraints, Beam(search, marks, len(src), limit, src.device, watch, limits)
    streams = None if search.sampling is None else RandomStreams(search.sampling, src, src_mask)
    return writer, constraints, Greedy(search, marks, len(src), limit, src.device, streams)


def steps(
    writer: Writer, constraints: Constraints, selector: Selector, limit: int, leave: Callable[[], None]
) -> Iterator[None]:
    """Write until all sentences are done, a step at a time, or several where the writer can; `leave` is called before
    some of them leave the batch."""
    top_count = selector.top_count if constraints.free else None
    selector.advance(writer.next_top(None, top_count), constraints)
    step = 1
    while True:
        yield
        rows = still_running(selector.going, writer.thinning)
        if step == limit or (rows is not None and not len(rows)):
            return
        if selector.origin is not None:
            writer.follow(selector.origin)
        if rows is not None:
            leave()
            for part in (writer, constraints, selector):
                part.keep(rows)
        if made := writer.run_steps(selector, constraints):
            step += made
        else:
            selector.advance(writer.next_top(selector.tokens, top_count), constraints)
            step += 1
