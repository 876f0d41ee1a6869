"""Pictures as a model reads them: square, of its size and channels, in floating-point numbers.

Shapes: C channels, N the side of an image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.common.errors import DataError, InputError, why
from glassformer.data.readers import npz_error
from glassformer.data.vocabulary import PixelScaling
from glassformer.model import ModelConfig
from glassformer.weights.pretrained.fine_tuning import shades

Image = str | Path | NDArray[Any] | Tensor


@dataclass(frozen=True)
class Sight:
    """How pixels become what a model reads: whole numbers are shares of 255, brought to its shades, if it has some."""

    channels: int
    size: int
    shades: PixelScaling | None = None

    @classmethod
    def of(cls, config: ModelConfig, folder: Path | None = None) -> Sight:
        """That of a model; a published one's folder tells its shades."""
        told = None if folder is None else shades(folder, config.channels)
        return cls(config.channels, config.image_size, told)

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
