"""Writing a target token by token: greedy and beam search over one step function.

A hypothesis is scored by the sum of its log-probabilities over length ** length_penalty, the end token counted. Search
for a sentence goes on until no unfinished hypothesis could still beat its finished ones:

    exact         however long it grew: log-probabilities only fall, so now's best over the longest length is a bound
    huggingface   if it ended now: the default of transformers, faster where longer is better, but it can miss the best

Shapes: B sentences, K beams, L tokens so far, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from glassformer.errors import ConfigError, one_of
from glassformer.model import Cache, DecoderOnly, EncoderDecoder

Stopping = Literal["exact", "huggingface"]


@dataclass(frozen=True)
class Hypothesis:
    """A finished target: its ids without start, end or padding, and its score."""

    ids: list[int]
    score: float


class Writer:
    """A model that can be asked for the next token's log-probabilities, row by row."""

    def __init__(self, model: EncoderDecoder | DecoderOnly, src: Tensor, src_mask: Tensor | None, length: int) -> None:
        self.model, self.rows = model, src.shape[0]
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
        config = self.model.config
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
        return logits[:, -1].float().log_softmax(-1)

    def reorder(self, rows: Tensor) -> None:
        self.cache.reorder(rows)
        if self.memory is not None:
            self.memory = self.memory[rows]
            self.mask = None if self.mask is None else self.mask[rows]


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
) -> list[list[Hypothesis]]:
    """The `nbest` best targets of each source, best first; a decoder-only model continues its prompts."""
    if stopping not in get_args(Stopping):
        raise ConfigError(f"stopping={stopping!r} is not one of {one_of(get_args(Stopping))}")
    if not 1 <= nbest <= beam:
        raise ConfigError(f"nbest={nbest} must lie between 1 and beam={beam}")
    if max_new_tokens < 1:
        raise ConfigError(f"max_new_tokens={max_new_tokens} must be at least 1")
    if isinstance(model, DecoderOnly) and src_mask is not None:
        src, src_mask = push_right(src, src_mask)
    end = -1 if model.config.end_id is None else model.config.end_id
    writer = Writer(model, src, src_mask, max_new_tokens)
    pad = model.config.pad_id if model.config.pad_id is not None else max(end, 0)
    if beam == 1:
        return greedy(writer, end, pad, max_new_tokens, length_penalty)
    return beam_search(writer, end, max_new_tokens, length_penalty, beam, nbest, stopping)


def push_right(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Padding to the left, so that every prompt ends where its continuation begins."""
    order = mask.int().argsort(dim=1, stable=True)
    return ids.gather(1, order), mask.gather(1, order)


def greedy(writer: Writer, end: int, pad: int, limit: int, penalty: float) -> list[list[Hypothesis]]:
    tokens = writer.prompt
    written, scores = [], torch.zeros(writer.rows, device=tokens.device)
    going = torch.ones(writer.rows, dtype=torch.bool, device=tokens.device)
    for step in range(limit):
        best, token = writer.next(tokens, last=step == limit - 1).max(-1)
        token = torch.where(going, token, pad)
        scores += torch.where(going, best, 0.0)
        written.append(torch.where(going, token, -1))
        going = going & (token != end)
        if not going.any():
            break
        tokens = token.unsqueeze(1)
    table = torch.stack(written, dim=1).tolist()
    found = []
    for row, total in zip(table, scores.tolist(), strict=True):
        ids = [token for token in row if token >= 0]
        length = len(ids)
        found.append([Hypothesis(ids[:-1] if ids[-1:] == [end] else ids, total / length**penalty)])
    return found


def beam_search(
    writer: Writer, end: int, limit: int, penalty: float, beam: int, nbest: int, stopping: Stopping
) -> list[list[Hypothesis]]:
    B, K, device = writer.rows, beam, writer.prompt.device
    rows = torch.arange(B, device=device).unsqueeze(1)
    running = torch.full((B, K), float("-inf"), device=device)
    running[:, 0] = 0.0  # all beams start alike; let only one of them speak
    tokens = torch.full((B, K, limit), -1, dtype=torch.long, device=device)
    done_tokens, done_scores = tokens.clone(), torch.full((B, K), float("-inf"), device=device)
    prompt = writer.next(writer.prompt, last=limit == 1)  # (B, V): the prompt is read once, not once per beam
    V = prompt.shape[-1]
    writer.reorder(rows.expand(B, K).flatten())
    scores = running.unsqueeze(-1) + prompt.unsqueeze(1)  # (B, K, V)
    open_ = torch.ones(B, 1, dtype=torch.bool, device=device)  # sentences whose finished hypotheses may still change
    for step in range(limit):
        best, flat = scores.flatten(1).topk(min(2 * K, K * V))  # (B, 2K): enough even if K of them end here
        origin, token = flat // V, flat % V
        length = step + 1
        ends = token == end
        if length == limit:
            ends = torch.ones_like(ends)  # nothing can follow
        # A hypothesis may finish only if it is among the K best: a worse one would not have been kept either.
        finishing = ends & open_ & (torch.arange(best.shape[1], device=device) < K)
        candidates = tokens[rows, origin]  # (B, 2K, limit)
        candidates[:, :, step] = token
        pool_scores = torch.cat((done_scores, torch.where(finishing, best / length**penalty, float("-inf"))), dim=1)
        pool_tokens = torch.cat((done_tokens, candidates), dim=1)
        done_scores, keep = pool_scores.topk(K)
        done_tokens = pool_tokens[rows, keep]
        if length == limit:
            break
        running, going_on = best.masked_fill(ends, float("-inf")).topk(K)
        tokens = candidates[rows, going_on]
        reach = limit if stopping == "exact" and penalty > 0 else length
        open_ = open_ & (running[:, :1] / reach**penalty > done_scores[:, -1:])
        if not open_.any():
            break
        writer.reorder((rows * K + origin[rows, going_on]).flatten())
        logits = writer.next(tokens[:, :, step].reshape(-1, 1).clamp_min(0), last=length == limit - 1)
        scores = running.unsqueeze(-1) + logits.view(B, K, V)
    found = []
    for table, totals in zip(done_tokens.tolist(), done_scores.tolist(), strict=True):
        hypotheses = []
        for row, total in zip(table[:nbest], totals[:nbest], strict=True):
            ids = [token for token in row if token >= 0]
            hypotheses.append(Hypothesis(ids[:-1] if ids[-1:] == [end] else ids, total))
        found.append(hypotheses)
    return found
