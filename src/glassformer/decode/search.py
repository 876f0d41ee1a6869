"""Writing a target token by token: greedy and beam search over one step function.

A hypothesis is scored by the sum of its log-probabilities over length ** length_penalty, the end token counted. Search
for a sentence goes on until no unfinished hypothesis could still beat its finished ones:

    exact         however long it grew: log-probabilities only fall, so now's best over the longest length is a bound
    huggingface   if it ended now: the default of transformers, faster where longer is better, but it can miss the best

Shapes: B sentences, K beams, L tokens so far, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from glassformer.decode.sampling import Sampling, Streams
from glassformer.errors import ConfigError, InputError, one_of
from glassformer.model import Cache, DecoderOnly, EncoderDecoder

Stopping = Literal["exact", "huggingface"]


@dataclass(frozen=True)
class Hypothesis:
    """A finished target: its ids without start, end or padding, and its score."""

    ids: list[int]
    score: float


class Writer:
    """A model that can be asked for the next token's log-probabilities, row by row."""

    def __init__(
        self,
        model: EncoderDecoder | DecoderOnly,
        src: Tensor,
        src_mask: Tensor | None,
        length: int,
        prefix: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.model, self.rows = model, src.shape[0]
        self.sentence = torch.arange(self.rows, device=src.device)  # of each row
        self.prefix = prefix_table(prefix, src, model.config.vocab_size, length)
        self.step = 0
        self.start_length = src.shape[1] if isinstance(model, DecoderOnly) else 1
        self.cache: Cache = model.new_cache(self.start_length + length)
        self.memory: Tensor | None = None
        self.mask = src_mask
        if isinstance(model, EncoderDecoder):
            assert model.config.start_id is not None
            self.memory = model.encode(src, src_mask)
            self.prompt = src.new_full((self.rows, 1), model.config.start_id)
        else:
            self.prompt = src

    def next(self, tokens: Tensor, last: bool) -> Tensor:
        """Log-probabilities (rows, V) after `tokens` (rows, 1 or more), which the cache has not seen yet."""
        config, step = self.model.config, self.step
        self.step += 1
        if last and config.force_end and config.end_id is not None:
            forced = torch.full((tokens.shape[0], config.vocab_size), float("-inf"), device=tokens.device)
            forced[:, config.end_id] = 0.0
            return forced
        if isinstance(self.model, EncoderDecoder):
            assert self.memory is not None
            logits = self.model.decode(tokens, self.memory, self.mask, self.cache)
        else:
            mask, self.mask = self.mask, None  # the prompt's padding; what is written has none
            logits = self.model(tokens, mask, self.cache)
        log_probabilities = logits[:, -1].float().log_softmax(-1)
        if step < self.prefix.shape[1]:  # what the prefix asks for keeps its probability, the rest has none
            wanted = self.prefix[self.sentence, step].unsqueeze(1)  # (rows, 1), -1 where there is no more prefix
            others = torch.arange(config.vocab_size, device=wanted.device) != wanted
            log_probabilities = log_probabilities.masked_fill(others & (wanted >= 0), float("-inf"))
        return log_probabilities

    def reorder(self, rows: Tensor, sources: Tensor | None = None) -> None:
        """Let row i continue from row `rows[i]`; with `sources`, only those sources stay."""
        self.cache.reorder(rows, sources)
        self.sentence = self.sentence[rows]
        if self.memory is not None and sources is not None:
            self.memory = self.memory[sources]
            self.mask = None if self.mask is None else self.mask[sources]


@torch.inference_mode()
def generate(
    model: EncoderDecoder | DecoderOnly,
    src: Tensor,
    src_mask: Tensor | None = None,
    beam: int = 1,
    length_penalty: float = 1.0,
    nbest: int = 1,
    max_new_tokens: int = 128,
    stopping: Stopping = "exact",
    sampling: Sampling | None = None,
    prefix: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """The `nbest` best targets of each source, best first; a decoder-only model continues its prompts.

    With `sampling`, one target of each is drawn instead. `prefix` gives ids that each target must begin with.
    """
    if sampling is not None and beam > 1:
        raise ConfigError(f"sampling draws one target at a time; use beam=1, not {beam}")
    if stopping not in get_args(Stopping):
        raise ConfigError(f"stopping={stopping!r} is not one of {one_of(get_args(Stopping))}")
    if not 1 <= nbest <= beam:
        raise ConfigError(f"nbest={nbest} must lie between 1 and beam={beam}")
    if max_new_tokens < 1:
        raise ConfigError(f"max_new_tokens={max_new_tokens} must be at least 1")
    if isinstance(model, DecoderOnly) and src_mask is not None:
        src, src_mask = push_right(src, src_mask)
    end = -1 if model.config.end_id is None else model.config.end_id
    streams = None if sampling is None else Streams(sampling, src, src_mask)
    writer = Writer(model, src, src_mask, max_new_tokens, prefix)
    pad = model.config.pad_id if model.config.pad_id is not None else max(end, 0)
    if beam == 1:
        return greedy(writer, end, pad, max_new_tokens, length_penalty, streams)
    return beam_search(writer, end, max_new_tokens, length_penalty, beam, nbest, stopping)


def push_right(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Padding to the left, so that every prompt ends where its continuation begins."""
    order = mask.int().argsort(dim=1, stable=True)
    return ids.gather(1, order), mask.gather(1, order)


def prefix_table(prefix: Sequence[Sequence[int]] | None, src: Tensor, vocab_size: int, limit: int) -> Tensor:
    """The prefixes as one table (B, longest), -1 where there is none."""
    if prefix is None:
        return src.new_full((src.shape[0], 0), -1)
    if len(prefix) != src.shape[0]:
        raise InputError(
            f"{len(prefix)} prefixes were given for {src.shape[0]} sources; give one each, empty where none"
        )
    longest = max(map(len, prefix), default=0)
    if longest > limit:
        raise InputError(f"a prefix of {longest} tokens does not fit max_new_tokens={limit}")
    for ids in prefix:
        if any(not 0 <= id < vocab_size for id in ids):
            raise InputError(f"the prefix {list(ids)} holds an id outside the vocabulary of {vocab_size}")
    table = src.new_full((src.shape[0], longest), -1)
    for row, ids in zip(table, prefix, strict=True):
        row[: len(ids)] = torch.tensor(ids, dtype=row.dtype)
    return table


def hypothesis(row: list[int], score: float, end: int) -> Hypothesis:
    ids = [token for token in row if token >= 0]
    return Hypothesis(ids[:-1] if ids[-1:] == [end] else ids, score)


def few(going: Tensor) -> Tensor | None:
    """The places that still go on, once they are at most half: then it pays to let the others leave the batch."""
    places = going.nonzero().flatten()
    return places if 2 * len(places) <= len(going) else None


def greedy(
    writer: Writer, end: int, pad: int, limit: int, penalty: float, streams: Streams | None
) -> list[list[Hypothesis]]:
    """The likeliest token at every step, or one drawn from `streams`."""
    B, tokens, device = writer.rows, writer.prompt, writer.prompt.device
    written = torch.full((B, limit), -1, device=device)
    scores = torch.zeros(B, device=device)
    going = torch.ones(B, dtype=torch.bool, device=device)
    for step in range(limit):
        sentence, following = writer.sentence, writer.next(tokens, last=step == limit - 1)
        best, token = following.max(-1) if streams is None else streams.choose(following, sentence)
        scores[sentence] += torch.where(going, best, 0.0)
        written[sentence, step] = torch.where(going, token, -1)
        going = going & (token != end)
        if not going.any():
            break
        stay = few(going)
        if stay is not None:
            writer.reorder(stay, sources=stay)
            token, going = token[stay], going[stay]
        tokens = torch.where(going, token, pad).unsqueeze(1)
    lengths = written.ge(0).sum(1)
    totals = (scores / lengths**penalty).tolist()
    return [[hypothesis(row, total, end)] for row, total in zip(written.tolist(), totals, strict=True)]


def beam_search(
    writer: Writer, end: int, limit: int, penalty: float, beam: int, nbest: int, stopping: Stopping
) -> list[list[Hypothesis]]:
    B, K, device = writer.rows, beam, writer.prompt.device
    sentence = torch.arange(B, device=device)
    rows = sentence.unsqueeze(1)
    running = torch.full((B, K), float("-inf"), device=device)
    running[:, 0] = 0.0  # all beams start alike; let only one of them speak
    tokens = torch.full((B, K, limit), -1, device=device)
    done_tokens, done_scores = tokens.clone(), torch.full((B, K), float("-inf"), device=device)
    final_tokens, final_scores = done_tokens.clone(), done_scores.clone()
    unfinished = torch.ones(B, 1, dtype=torch.bool, device=device)
    logits = writer.next(writer.prompt, last=limit == 1).unsqueeze(
        1
    )  # (B, 1, V): the prompt is read once for all beams
    V = logits.shape[-1]
    writer.reorder(rows.expand(B, K).flatten())
    for step in range(limit):
        length = step + 1
        scores = running.unsqueeze(-1) + logits  # (B, K, V)
        best, flat = scores.flatten(1).topk(min(2 * K, K * V))  # (B, 2K): enough even if K of them end here
        origin, token = flat // V, flat % V
        ends = token == end if length < limit else torch.ones_like(token, dtype=torch.bool)
        # A hypothesis may finish only if it is among the K best: a worse one would not have been kept either.
        finishing = ends & unfinished & (torch.arange(best.shape[1], device=device) < K)
        candidates = tokens[rows, origin]  # (B, 2K, limit)
        candidates[:, :, step] = token
        pool_scores = torch.cat((done_scores, torch.where(finishing, best / length**penalty, float("-inf"))), dim=1)
        done_scores, keep = pool_scores.topk(K)
        done_tokens = torch.cat((done_tokens, candidates), dim=1)[rows, keep]
        final_tokens[sentence], final_scores[sentence] = done_tokens, done_scores
        if length == limit:
            break
        running, going_on = best.masked_fill(ends, float("-inf")).topk(K)
        tokens, origin = candidates[rows, going_on], origin[rows, going_on]
        reach = limit if stopping == "exact" and penalty > 0 else length
        unfinished = unfinished & (running[:, :1] / reach**penalty > done_scores[:, -1:])
        if not unfinished.any():
            break
        stay = few(unfinished.flatten())
        kept = rows[:, 0] if stay is None else stay
        writer.reorder((kept.unsqueeze(1) * K + origin[kept]).flatten(), sources=stay)
        if stay is not None:
            sentence, running, tokens, unfinished = (x[stay] for x in (sentence, running, tokens, unfinished))
            done_tokens, done_scores, rows = done_tokens[stay], done_scores[stay], rows[: len(stay)]
        fresh = tokens[:, :, step].reshape(-1, 1).clamp_min(0)
        logits = writer.next(fresh, last=length == limit - 1).view(-1, K, V)
    return [
        [hypothesis(row, total, end) for row, total in zip(table[:nbest], totals[:nbest], strict=True)]
        for table, totals in zip(final_tokens.tolist(), final_scores.tolist(), strict=True)
    ]
