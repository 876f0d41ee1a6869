"""A text with gaps in, what could stand there out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from glassformer.common.arguments import check_texts, checked
from glassformer.common.device import disable_cudnn_sdp
from glassformer.common.errors import InputError, WeightsError, check_whole
from glassformer.decode.engine import BATCH_TOKENS, Likelihood, batches, pad_batch
from glassformer.model import EncoderOnly
from glassformer.pipelines.loading import LoadedModel, MonolingualTokenizer, SingleStackPipeline, check_lengths
from glassformer.weights import bundle


@dataclass(frozen=True)
class Filling:
    """A token for a gap, how probable it is there, and the whole text with it; other gaps have their likeliest."""

    token: str
    probability: float
    text: str


@dataclass(frozen=True)
class Recovered:
    """What a model made of a text whose tokens were hidden from it one at a time: how likely it found them all, and of
    how many it found the very token likeliest."""

    likelihood: Likelihood
    right: int
    each: tuple[bool, ...] = ()  # of which ones


@checked
class MaskFiller(SingleStackPipeline[EncoderOnly, MonolingualTokenizer]):
    """An encoder with its tokenizer. `f("Paris is the [MASK] of France")` gives the text, its gaps filled by what is
    likeliest, each gap by itself; `f.fill` takes many texts, and gives several fillings with their probabilities.

    It is trained by objective = "masked", or published: BERT, RoBERTa or DistilBERT with its tokenizer.json.
    """

    kind = EncoderOnly

    @classmethod
    def _from_loaded(cls, loaded: LoadedModel[EncoderOnly], device: str | torch.device) -> Self:
        if loaded.model.config.labels or loaded.tokenizer is None:
            raise WeightsError(f"{loaded.folder} {bundle.describe_use(loaded.model)}")
        if loaded.tokenizer.mask_id is None:
            raise WeightsError(f"{loaded.folder} has no token for a gap in its vocabulary, so its model fills none")
        return cls(loaded.model, loaded.tokenizer, device, loaded.about)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.tokenizer, self.device, self.about)

    def __call__(self, text: str) -> str:
        (gaps,) = self.fill([text], top=1)
        return gaps[0][0].text

    def fill(
        self, texts: Iterable[str], *, top: int = 5, batch_tokens: int = BATCH_TOKENS
    ) -> list[list[list[Filling]]]:
        """Of each text, for each of its gaps, the `top` likeliest tokens. A gap is written [MASK]."""
        check_whole("top", top, 1, "5 is usual")
        texts = check_texts(texts, "texts")
        rows = self.tokenizer.encode_gaps(texts)
        check_lengths(rows, self.model.config.max_length)
        places = [[place for place, id in enumerate(ids) if id == self.tokenizer.mask_id] for ids in rows]
        for i, (text, gaps) in enumerate(zip(texts, places, strict=True)):
            if not gaps:
                raise InputError(f"texts[{i}] has no gap: {text!r:.60}; write [MASK] where something is missing")
        found: list[list[list[Filling]]] = [[] for _ in texts]
        for batch in batches([len(ids) for ids in rows], batch_tokens):
            log_probabilities = self._log_probabilities([rows[i] for i in batch], [places[i] for i in batch])
            counts = [len(places[i]) for i in batch]
            both = (part.split(counts) for part in log_probabilities.topk(min(top, log_probabilities.shape[-1])))
            for i, values, tokens in zip(batch, *both, strict=True):  # (gaps, top)
                found[i] = self._fillings(texts[i], values.exp().tolist(), tokens.tolist())
        return found

    def recover(self, texts: Iterable[str], *, batch_tokens: int = BATCH_TOKENS) -> list[Recovered]:
        """Hide each token of each text in turn, all others in sight, and see what the model makes of it."""
        texts, gap = check_texts(texts, "texts"), self.tokenizer.mask_id
        assert gap is not None
        sources, bare = self.tokenizer.encode_source(texts), self.tokenizer.encode_target(texts)
        check_lengths(sources, self.model.config.max_length)
        # The marks around a text are given; the tokens between them are hidden.
        starts = [
            next((k for k in range(len(s)) if s[k : k + len(b)] == b), 0) for s, b in zip(sources, bare, strict=True)
        ]
        hideable = [(i, starts[i] + k) for i, ids in enumerate(bare) for k in range(len(ids))]
        totals, right = [0.0] * len(texts), [[False] * len(ids) for ids in bare]
        for batch in batches([len(sources[i]) for i, _ in hideable], batch_tokens):
            here = [hideable[n] for n in batch]
            hidden = [[*sources[i][:place], gap, *sources[i][place + 1 :]] for i, place in here]
            found = self._log_probabilities(hidden, [[place] for _, place in here])  # (B, V)
            targets = torch.tensor([sources[i][place] for i, place in here], device=found.device)
            values, hits = found.gather(1, targets.unsqueeze(1)).squeeze(1), found.argmax(1) == targets
            for (i, place), value, hit in zip(here, values.tolist(), hits.tolist(), strict=True):
                totals[i] += value
                right[i][place - starts[i]] = hit
        return [
            Recovered(Likelihood(total, len(hits)), sum(hits), tuple(hits))
            for total, hits in zip(totals, right, strict=True)
        ]

    @disable_cudnn_sdp
    @torch.inference_mode()
    def _log_probabilities(self, rows: list[list[int]], places: list[list[int]]) -> Tensor:
        """(N, V): of each of the N places of these texts, one after the other."""
        ids, real = pad_batch(rows, self.model.config.pad_id or 0, self.device)
        which = torch.tensor([(row, place) for row, own in enumerate(places) for place in own], device=self.device).T
        logits: Tensor = self.model.head(self.model.encoder(ids, real)[*which])
        return logits.float().log_softmax(-1)

    def _fillings(self, text: str, values: list[list[float]], tokens: list[list[int]]) -> list[list[Filling]]:
        best = [ranked[0] for ranked in tokens]
        return [
            [
                Filling(self._word(token), value, self.tokenizer.filled(text, [*best[:gap], token, *best[gap + 1 :]]))
                for value, token in zip(values[gap], ranked, strict=True)
            ]
            for gap, ranked in enumerate(tokens)
        ]

    def _word(self, token: int) -> str:
        """A token as it is read, or its piece if that is white space."""
        return self.tokenizer.decode_target([[token]])[0].strip() or self.tokenizer.target_pieces([token])[0]
