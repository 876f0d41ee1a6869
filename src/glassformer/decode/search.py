"""Writing targets token by token: one loop, with the parts that choose, forbid and remember around it.

A hypothesis is scored by the sum of its log-probabilities over a power of its length (`LengthRule`). Beam search for a
sentence goes on until no unfinished hypothesis could still beat its finished ones:

    exact         however long it grew: log-probabilities only fall, so now's best over the longest length is a bound
    huggingface   if it ended now: the default of transformers, faster where longer is better, but it can miss the best
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from glassformer.errors import ConfigError, one_of
from glassformer.model import DecoderOnly, EncoderDecoder


@torch.inference_mode()
def generate(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    src_mask: Tensor | None = None,
    beam: int = 1,
    length_penalty: float = 1.0,
    nbest: int = 1,
    max_new_tokens: int = 128,
    *,
    length_rule: Rule = "average",
    stopping: Stopping = "exact",
    sampling: Sampling | None = None,
    prefix: Sequence[Sequence[int]] | None = None,
    repetition_penalty: float = 1.0,
    no_repeat_ngram: int = 0,
    watch: Callable[[Selection], None] | None = None,
) -> list[list[Hypothesis]]:
    """The `nbest` best targets of each source, best first; a decoder-only model continues its prompts.

    With `sampling`, one target of each is drawn instead. `prefix` gives ids that each target must begin with. `watch`
    is told the candidates of every step of a beam search.
    """
    if sampling is not None and beam > 1:
        raise ConfigError(f"sampling draws one target at a time; use beam=1, not {beam}")
    if stopping not in get_args(Stopping):
        raise ConfigError(f"stopping={stopping!r} is not one of {one_of(get_args(Stopping))}")
    if not 1 <= nbest <= beam:
        raise ConfigError(f"nbest={nbest} must lie between 1 and beam={beam}")
    rule, repetition = LengthRule(length_penalty, length_rule), Repetition(repetition_penalty, no_repeat_ngram)

    def start(src: Tensor, src_mask: Tensor | None) -> tuple[Writer, Constraints, Greedy | Beam]:
        writer, constraints, end = prepare(model, src, src_mask, beam, max_new_tokens, prefix, repetition)
        if beam > 1:
            B = src.shape[0]
            return writer, constraints, Beam(B, beam, max_new_tokens, end, src.device, rule, stopping, watch)
        streams = None if sampling is None else Streams(sampling, src, src_mask)
        greedy = Greedy(src.shape[0], max_new_tokens, end, padding(model), src.device, streams)
        return writer, constraints, greedy

    if src.is_cuda and sampling is None and prefix is None and watch is None and repetition == Repetition():
        fitted, mask = fit(src, src_mask, padding(model))
        key = (fitted.shape, mask is None, beam, max_new_tokens, rule, stopping)
        recordings = recorder(model)
        with recordings.lock:
            done = recordings.run(key, max_new_tokens, lambda: start(fitted, mask), src.shape[0])
            return done.hypotheses(nbest, rule)[: src.shape[0]]
    writer, constraints, search = start(src, src_mask)
    found: list[list[Hypothesis]] = [[] for _ in range(src.shape[0])]

    def leave() -> None:
        for sentence, best in zip(search.sentence.tolist(), search.hypotheses(nbest, rule), strict=True):
            found[sentence] = best

    for _ in steps(writer, constraints, search, max_new_tokens, leave):
        pass
    leave()
    return found


@torch.inference_mode()
def stream(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    max_new_tokens: int = 128,
    *,
    sampling: Sampling | None = None,
    prefix: Sequence[int] = (),
    repetition_penalty: float = 1.0,
    no_repeat_ngram: int = 0,
) -> Iterator[int]:
    """The tokens of one source's target, each as soon as it is chosen: the likeliest, or drawn by `sampling`."""
    if src.shape[0] != 1:
        raise ConfigError(f"stream() writes one target at a time; {src.shape[0]} sources were given")
    repetition = Repetition(repetition_penalty, no_repeat_ngram)
    writer, constraints, end = prepare(model, src, None, 1, max_new_tokens, [prefix] if prefix else None, repetition)
    streams = None if sampling is None else Streams(sampling, src, None)
    search = Greedy(1, max_new_tokens, end, padding(model), src.device, streams)
    for step, _ in enumerate(steps(writer, constraints, search, max_new_tokens, lambda: None)):
        token = int(search.written[0, step])
        if token != end:
            yield token


def prepare(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    src_mask: Tensor | None,
    beam: int,
    limit: int,
    prefix: Sequence[Sequence[int]] | None,
    repetition: Repetition,
) -> tuple[Writer, Constraints, int]:
    if limit < 1:
        raise ConfigError(f"max_new_tokens={limit} must be at least 1")
    if isinstance(model, DecoderOnly) and src_mask is not None:
        src, src_mask = push_right(src, src_mask)
    config = model.config
    table = None if prefix is None else prefix_table(prefix, src, config.vocab_size, limit)
    writer = Writer(model, src, src_mask, limit, beam)
    constraints = Constraints(table, repetition, config.end_id if config.force_end else None, writer.said)
    return writer, constraints, -1 if config.end_id is None else config.end_id


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
