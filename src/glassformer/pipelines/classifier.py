"""A text or an image in, a label out.

Shapes: C channels, N the side of an image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.common.arguments import check_texts, checked
from glassformer.common.device import disable_cudnn_sdp
from glassformer.common.errors import ConfigError, DataError, InputError, WeightsError, check_whole, why
from glassformer.data import About
from glassformer.data.readers import npz_error
from glassformer.data.vocabulary import PixelScaling
from glassformer.decode.engine import BATCH_TOKENS, batches, pad_batch
from glassformer.model import EncoderOnly, ModelConfig
from glassformer.pipelines.loading import LoadedModel, MonolingualTokenizer, SingleStackPipeline, check_lengths
from glassformer.weights import bundle
from glassformer.weights.pretrained.fine_tuning import shades

IMAGES = 64  # read at once
Image = str | Path | NDArray[Any] | Tensor


@dataclass(frozen=True)
class Label:
    """What a text or an image may be called, and how probable that is."""

    name: str
    probability: float


@checked
class Classifier(SingleStackPipeline[EncoderOnly, MonolingualTokenizer | None]):
    """An encoder that tells labels. `c("March 3, 2021")` gives the likeliest; `c.classify` takes many, and gives their
    labels with probabilities. It reads texts, or images: paths, or arrays of pixels; `c.reads_images` says which.

    It is trained by objective = "classify" or "image", or published: ViT.
    """

    kind = EncoderOnly

    def __init__(
        self,
        model: EncoderOnly,
        tokenizer: MonolingualTokenizer | None,
        labels: Sequence[str] = (),
        device: str | torch.device = "cpu",
        about: About | None = None,
        image_processor: ImageProcessor | None = None,
    ) -> None:
        count = model.config.labels or model.config.vocab_size
        self.labels = tuple(labels) or tuple(map(str, range(count)))
        if len(self.labels) != count:
            raise ConfigError(f"there are {len(self.labels)} labels, and the model tells {count} apart")
        super().__init__(model, tokenizer, device, about)
        self.image_processor = image_processor or ImageProcessor.of(model.config)

    @classmethod
    def _from_loaded(cls, loaded: LoadedModel[EncoderOnly], device: str | torch.device) -> Self:
        if not loaded.model.config.labels and loaded.tokenizer is not None:
            raise WeightsError(f"{loaded.folder} {bundle.describe_use(loaded.model)}")
        image_processor = ImageProcessor.of(loaded.model.config, loaded.folder)
        return cls(loaded.model, loaded.tokenizer, loaded.labels, device, loaded.about, image_processor)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self.tokenizer, self.labels, self.device, self.about, self.image_processor)

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
        values, ids = self.probabilities(items, batch_tokens=batch_tokens).topk(
            min(top or len(self.labels), len(self.labels))
        )
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
                found.append(self._probabilities(self.image_processor.tensor([pictures[i] for i in rows])))
                order += rows
        else:
            texts = check_texts(items, "texts")  # type: ignore[arg-type]  # which checks that they are
            sources = self.tokenizer.encode_source(texts)
            check_lengths(sources, self.model.config.max_length)
            for i, ids in enumerate(sources):
                if not ids or not texts[i].strip():
                    raise InputError(f"texts[{i}] is empty; there is nothing to tell of it")
            pad = self.model.config.pad_id or 0
            for rows in batches([len(ids) for ids in sources], batch_tokens):
                found.append(self._probabilities(*pad_batch([sources[i] for i in rows], pad, self.device)))
                order += rows
        probabilities = torch.zeros(len(order), len(self.labels))
        if order:
            probabilities[order] = torch.cat(found)
        return probabilities

    def _probabilities(self, items: Tensor, mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.model(items.to(self.device), mask)
        if logits.dim() == 3:  # of a head that gives them for every position: an image's are those of the first
            logits = logits[:, 0]
        return logits.float().softmax(-1).cpu()


@dataclass(frozen=True)
class ImageProcessor:
    """Makes pixels what a model reads: whole numbers are shares of 255, scaled to the model's shades, if any."""

    channels: int
    size: int
    shades: PixelScaling | None = None

    @classmethod
    def of(cls, config: ModelConfig, folder: Path | None = None) -> ImageProcessor:
        """The processor of a model; a published one's folder tells its shades."""
        return cls(config.channels, config.image_size, None if folder is None else shades(folder, config.channels))

    def tensor(self, images: Sequence[Image]) -> Tensor:
        """(B, C, N, N)"""
        rows = [self.read(image, i) for i, image in enumerate(images)]
        pixels = torch.stack(rows) if rows else torch.zeros(0, self.channels, self.size, self.size)
        return pixels if self.shades is None else torch.from_numpy(self.shades(pixels.numpy()))

    def read(self, image: Image, index: int) -> Tensor:
        name = str(image) if isinstance(image, str | Path) else f"images[{index}]"
        if isinstance(image, str | Path):
            image = self.file(Path(image))
        array = np.asarray(image)
        if array.dtype.kind not in "iubf":
            raise InputError(f"{name} holds {array.dtype}; the pixels of an image are numbers")
        brightest = 255 if array.dtype.kind in "iu" else 1
        if array.size and not (array.min() >= 0 and array.max() <= brightest):  # nor where one is no number
            raise InputError(
                f"{name} has pixels from {array.min()} to {array.max()}; bring whole numbers to 0 to 255, others to 0 "
                f"to 1"
            )
        if brightest > 1:
            array = array.astype(np.float32) / brightest
        pixels = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
        if pixels.dim() == 2:
            pixels = pixels.unsqueeze(0)
        elif pixels.dim() == 3 and pixels.shape[0] != self.channels and pixels.shape[2] == self.channels:
            pixels = pixels.permute(2, 0, 1)
        wanted = (self.channels, self.size, self.size)
        if tuple(pixels.shape) != wanted:
            raise InputError(
                f"{name} is of shape {tuple(array.shape)}; this model reads (channels, height, width) {wanted}: a PNG "
                f"is brought to that size, an array has to have it"
            )
        return pixels

    def file(self, path: Path) -> NDArray[Any]:
        """The pixels of a file: an array of numpy's as it is, a picture in the model's size and channels."""
        try:
            if path.suffix == ".npy":
                with path.open("rb") as file:
                    found = np.load(file, allow_pickle=False)
                    if not isinstance(found, np.ndarray):
                        raise ValueError("it holds several; save one with np.save")
                    return found
            try:
                from PIL import Image as pillow
            except ImportError:
                raise DataError(
                    f"{path}: pictures are read by Pillow: pip install pillow; .npy is read without"
                ) from None
            with pillow.open(path) as picture:
                if picture.mode[0] in "IF":
                    raise DataError(
                        f"{path} has pixels of the kind {picture.mode}, which do not tell what is white; save it with "
                        f"8 bits a channel, or as a .npy"
                    )
                if picture.convert("RGBA").getchannel("A").getextrema() != (255, 255):
                    raise DataError(f"{path} is transparent in parts; put it on a background first")
                plain = picture.convert("L" if self.channels == 1 else "RGB")
                return np.asarray(plain.resize((self.size, self.size), pillow.Resampling.BILINEAR))
        except FileNotFoundError:
            raise DataError(f"{path} does not exist; give a picture, such as a PNG, or a .npy of its pixels") from None
        except OSError as error:  # Pillow's own error is one too
            raise DataError(f"{path} is not a picture that can be read: {why(error)}") from None
        except (ValueError, EOFError, BadZipFile) as error:
            raise DataError(f"{path} is no array of numbers: {npz_error(error)}") from None
