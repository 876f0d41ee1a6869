"""Sentence in, sentence out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from glassformer import bundle
from glassformer.decode import generate
from glassformer.model import EncoderDecoder
from glassformer.text import PAD, Tokenizer

BATCH_TOKENS = 4096
GROWTH = 2  # a translation may be this many times as long as its source, and SLACK tokens more
SLACK = 20


@dataclass(frozen=True)
class Translation:
    text: str
    score: float
    tokens: list[str]


class Translator:
    """A model with its tokenizer. `t("one sentence")` gives its translation; `t.translate` takes many."""

    def __init__(self, model: EncoderDecoder, tokenizer: Tokenizer, device: str | torch.device = "cpu") -> None:
        self.model, self.tokenizer = model.to(device).eval(), tokenizer
        self.device = torch.device(device)

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> Translator:
        """A folder that `glassformer train` has made."""
        loaded = bundle.load(folder)
        return cls(loaded.model, loaded.tokenizer, device)

    def __call__(self, text: str) -> str:
        return self.translate([text])[0][0].text

    def translate(
        self,
        texts: Sequence[str],
        beam: int = 1,
        nbest: int = 1,
        length_penalty: float = 1.0,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """The `nbest` best translations of each text, in the order given; an empty text stays empty."""
        sources = self.tokenizer.encode_source(list(texts))
        found: list[list[Translation]] = [[Translation("", 0.0, [])] * nbest for _ in texts]
        # Sentences of like length share a batch, so that little of it is padding.
        order = sorted((i for i, ids in enumerate(sources) if ids), key=lambda i: -len(sources[i]))
        done = 0
        for rows in self.batches(order, sources, beam):
            width = len(sources[rows[0]])
            src = torch.full((len(rows), width), PAD)
            for row, i in enumerate(rows):
                src[row, : len(sources[i])] = torch.tensor(sources[i])
            mask = torch.arange(width) < torch.tensor([[len(sources[i])] for i in rows])
            hypotheses = generate(
                self.model,
                src.to(self.device),
                mask.to(self.device),
                beam=beam,
                nbest=nbest,
                length_penalty=length_penalty,
                max_new_tokens=self.room(width),
            )
            for i, best in zip(rows, hypotheses, strict=True):
                texts_out = self.tokenizer.decode_target([h.ids for h in best])
                found[i] = [
                    Translation(text, h.score, self.tokenizer.target_pieces(h.ids))
                    for text, h in zip(texts_out, best, strict=True)
                ]
            done += len(rows)
            if progress is not None:
                progress(done)
        return found

    def room(self, width: int) -> int:
        """The longest target tried for a source of `width` tokens; the start token needs a position too."""
        return min(GROWTH * width + SLACK, self.model.config.max_length - 1)

    def batches(self, order: list[int], sources: list[list[int]], beam: int) -> list[list[int]]:
        batches: list[list[int]] = []
        for i in order:
            if batches and (len(batches[-1]) + 1) * len(sources[batches[-1][0]]) * beam <= BATCH_TOKENS:
                batches[-1].append(i)
            else:
                batches.append([i])
        return batches
