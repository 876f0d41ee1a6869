"""A text or an image in, a label out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from glassformer.common.device import disable_cudnn_sdp
from glassformer.common.errors import ConfigError, InputError, WeightsError, check_whole
from glassformer.common.strings import strings
from glassformer.data import About
from glassformer.decode.engine import BATCH_TOKENS, batches, padded
from glassformer.model import EncoderOnly
from glassformer.pipelines.images import Image, Sight
from glassformer.pipelines.loading import LoneModel, LoneText, Opened, check_lengths
from glassformer.weights import bundle

IMAGES = 64  # read at once


@dataclass(frozen=True)
class Label:
    """What a text or an image may be called, and how probable that is."""

    name: str
    probability: float


class Classifier(LoneModel[EncoderOnly, LoneText | None]):
    """An encoder that tells labels. `c("March 3, 2021")` gives the likeliest; `c.classify` takes many, and gives their
    labels with probabilities. It reads texts, or images: paths, or arrays of pixels; `c.reads_images` says which.

    It is trained by objective = "classify" or "image", or published: ViT.
    """

    kind = EncoderOnly

    def __init__(
        self,
        model: EncoderOnly,
        tokenizer: LoneText | None,
        labels: Sequence[str] = (),
        device: str | torch.device = "cpu",
        about: About | None = None,
        sight: Sight | None = None,
    ) -> None:
        count = model.config.labels or model.config.vocab_size
        self.labels = tuple(labels) or tuple(map(str, range(count)))
        if len(self.labels) != count:
            raise ConfigError(f"there are {len(self.labels)} labels, and the model tells {count} apart")
        super().__init__(model, tokenizer, device, about)
        self.sight = sight or Sight.of(model.config)

    @classmethod
    def _of(cls, found: Opened[EncoderOnly], device: str | torch.device) -> Self:
        if not found.model.config.labels and found.text is not None:
            raise WeightsError(f"{found.folder} {bundle.describe_use(found.model)}")
        sight = Sight.of(found.model.config, found.folder)
        return cls(found.model, found.text, found.labels, device, found.about, sight)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.tokenizer, self.labels, self.device, self.about, self.sight)

    @property
    def reads_images(self) -> bool:
        return self.tokenizer is None

    def __call__(self, one: str | Image) -> str:
        return self.classify([one], top=1)[0][0].name

    def classify(
        self, items: Iterable[str] | Iterable[Image], *, top: int | None = None, batch_tokens: int = BATCH_TOKENS
    ) -> list[list[Label]]:
        """The labels of each text or image with their probabilities, the likeliest first: all, or the `top`."""
        if top is not None:
            check_whole("top", top, 1, "give 1 for the likeliest alone")
        told = self.probabilities(items, batch_tokens=batch_tokens)
        values, ids = told.topk(min(top or len(self.labels), len(self.labels)))
        return [
            [Label(self.labels[id], value) for value, id in zip(*row, strict=True)]
            for row in zip(values.tolist(), ids.tolist(), strict=True)
        ]

    @disable_cudnn_sdp
    @torch.inference_mode()
    def probabilities(self, items: Iterable[str] | Iterable[Image], *, batch_tokens: int = BATCH_TOKENS) -> Tensor:
        """The probability of every label (items, labels), in the order given and in that of `c.labels`."""
        found = []
        order: list[int] = []
        if self.tokenizer is None:
            pictures: list[Any] = [items] if isinstance(items, str | Path) else list(items)
            for first in range(0, len(pictures), IMAGES):
                rows = list(range(first, min(first + IMAGES, len(pictures))))
                found.append(self._told(self.sight.tensor([pictures[i] for i in rows])))
                order += rows
        else:
            texts = strings(items, "texts")  # type: ignore[arg-type]  # which checks that they are
            sources = self.tokenizer.encode_source(texts)
            check_lengths(sources, self.model.config.max_length)
            for i, ids in enumerate(sources):
                if not ids or not texts[i].strip():
                    raise InputError(f"texts[{i}] is empty; there is nothing to tell of it")
            pad = self.model.config.pad_id or 0
            for rows in batches([len(ids) for ids in sources], batch_tokens):
                found.append(self._told(*padded([sources[i] for i in rows], pad, self.device)))
                order += rows
        told = torch.zeros(len(order), len(self.labels))
        if order:
            told[order] = torch.cat(found)
        return told

    def _told(self, items: Tensor, mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.model(items.to(self.device), mask)
        if logits.dim() == 3:  # of a head that gives them for every position: an image's are those of the first
            logits = logits[:, 0]
        return logits.float().softmax(-1).cpu()
