"""A model, its sources and its cache, which give the logits of the next tokens step by step.

Shapes: B sentences, K beams, P prompt, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from glassformer.common.device import disable_cudnn_sdp
from glassformer.common.errors import ConfigError
from glassformer.decode.beam import Beam
from glassformer.decode.constraints import Constraints, TopTokens
from glassformer.decode.greedy import Greedy
from glassformer.decode.search import NO_TOKEN
from glassformer.decode.step import step_attention
from glassformer.model import Cache, DecoderOnly, EncoderDecoder


def start_of(model: EncoderDecoder) -> int:
    """The token that every target begins with."""
    if model.config.start_id is None:
        raise ConfigError("start_id=None: the model's config names no start token, so no target can begin; set it")
    return model.config.start_id


class Writer:
    """A model, its sources and its cache; a decoder-only model's source is the prompt that it continues."""

    thinning = 0.5  # to leave a batch costs a copy of all that stay: worth it once at most this share of them does

    @disable_cudnn_sdp
    def __init__(
        self, model: EncoderDecoder | DecoderOnly, src: Tensor, src_mask: Tensor | None, limit: int, beams: int
    ) -> None:
        self.model, self.mask = model, src_mask
        self.memory: Tensor | None = None
        self.prompt = src  # (B, P)
        if isinstance(model, EncoderDecoder):
            self.memory = model.encode(src, src_mask)
            self.prompt = src.new_full((src.shape[0], 1), start_of(model))
        self.cache: Cache = model.new_cache(self.prompt.shape[1] + limit, beams)
        self.cache.attend = step_attention

    @property
    def prompt_ids(self) -> Tensor:
        """The prompt's ids, without its padding."""
        if self.memory is not None or self.mask is None:
            return self.prompt
        return self.prompt.masked_fill(~self.mask, NO_TOKEN)

    @disable_cudnn_sdp
    def begin(self) -> Tensor:
        """Logits (B, V) after the prompt."""
        if isinstance(self.model, DecoderOnly):
            logits: Tensor = self.model(self.prompt, self.mask, self.cache)
            return logits[:, -1].float()
        return self.next(self.prompt)

    @disable_cudnn_sdp
    def next(self, tokens: Tensor) -> Tensor:
        """Logits (B K, V) after one more token (B K, 1) of every row."""
        if isinstance(self.model, DecoderOnly):
            logits: Tensor = self.model(tokens, None, self.cache)
        else:
            assert self.memory is not None
            logits = self.model.decode(tokens, self.memory, self.mask, self.cache)
        return logits[:, -1].float()

    def next_top(self, tokens: Tensor | None, top_count: int | None) -> Tensor | TopTokens:
        """Logits as from `next`, or from `begin` without tokens; perhaps only the `top_count` highest of each row."""
        return self.begin() if tokens is None else self.next(tokens)

    def run_steps(self, selector: Greedy | Beam, constraints: Constraints) -> int:
        """Read the tokens that were chosen last, and choose the next ones, for as many steps as can be made at once and
        until some sentences may leave: how many they were, 0 where steps are made one by one."""
        return 0

    def follow(self, origin: Tensor) -> None:
        """Let beam i of each sentence continue from what was beam `origin[:, i]`."""
        self.cache.follow(origin)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only."""
        self.cache.keep(sentences)
        if self.memory is not None:
            self.memory = self.memory[sentences]
            self.mask = None if self.mask is None else self.mask[sentences]


def left_pad(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Padding to the left, so that every prompt ends where its continuation begins."""
    order = mask.int().argsort(dim=1, stable=True)
    return ids.gather(1, order), mask.gather(1, order)


def still_running(going: Tensor, most: float) -> Tensor | None:
    """The rows that still go on, once they are at most this share: then it pays to let the others leave the batch."""
    rows = torch.nonzero(going).flatten()
    return rows if len(rows) <= most * len(going) else None
