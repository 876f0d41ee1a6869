"""Images to learn from: an .npz of them, or scikit-learn's digits, as texts of one character for each pixel."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from glassformer.common.errors import DataError, did_you_mean, one_of, why

if TYPE_CHECKING:
    from glassformer.data.corpus import Corpus, Pair

DARKEST = 0x100  # the character of a pixel that is 0; none up to the brightest is a space
BRIGHTEST = 255


def written(image: NDArray[np.uint8]) -> str:
    """An image, its pixels from 0 to 255, as a text."""
    return (image.astype("<u4").ravel() + DARKEST).tobytes().decode("utf-32-le")


def pictures(corpus: Corpus) -> tuple[NDArray[np.uint8], list[str]]:
    """The images of a corpus (n, channels, side, side), and their labels."""
    images, labels = digits(corpus.split, corpus.seed) if corpus.images is None else read_images(Path(corpus.images))
    steps = range(-corpus.shift, corpus.shift + 1)
    moved = [shifted(images, down, right) for down in steps for right in steps]
    return np.concatenate(moved), labels * len(moved)


def shifted(images: NDArray[np.uint8], down: int, right: int) -> NDArray[np.uint8]:
    """Moved by some pixels; what comes in is dark."""
    side, edge = images.shape[2], max(abs(down), abs(right))
    wide = np.pad(images, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    return wide[:, :, edge - down : edge - down + side, edge - right : edge - right + side]


def picture_pairs(corpus: Corpus) -> Iterator[Pair]:
    """The same as pairs of texts."""
    return ((written(image), label) for image, label in zip(*pictures(corpus), strict=True))


def read_images(path: Path) -> tuple[NDArray[np.uint8], list[str]]:
    """The `images` (n, channels, side, side) and `labels` of an .npz; whole numbers to 255, or shares of 1."""
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                raise ValueError("it is one array alone")
            images, labels = found["images"], found["labels"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        reason = why(error) if isinstance(error, OSError) else unpickled(error)
        raise DataError(
            f"{path} is no .npz with `images` and `labels`: {reason}; np.savez(file, images=..., labels=...)"
        ) from None
    if len(images) != len(labels):
        raise DataError(f"{path}: {len(images):,} images and {len(labels):,} labels; there is one each")
    return brought(images, str(path)), label_names(labels, str(path))


def label_names(labels: NDArray[Any], name: str) -> list[str]:
    """What the labels are called, each in one line."""
    if labels.ndim != 1 or labels.dtype.kind not in "USbiu":
        raise DataError(
            f"{name}: labels of shape {labels.shape} and {labels.dtype}; they are a row of texts or whole numbers"
        )
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    names = [str(label) for label in labels.tolist()]
    for label in dict.fromkeys(names):
        if label and not label.isprintable():
            raise DataError(f"{name}: the label {label!r:.60} has signs that cannot be printed; give it a plain name")
    return names


def unpickled(error: Exception) -> str:
    """Why an array cannot be read; numpy's advice to run what a file holds is not passed on."""
    return "it is no file of numpy's, or is cut short" if "pickle" in str(error) or not str(error) else str(error)


def brought(images: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """Images in the form of the store: (n, channels, side, side), each pixel of 0 to 255."""
    if images.dtype.kind == "f":
        if images.size and not (images.min() >= 0 and images.max() <= 1):
            raise DataError(f"{name}: pixels that are no whole numbers must lie in 0 to 1")
        images = np.rint(images * BRIGHTEST)
    if images.ndim == 3:
        images = images[:, None]
    elif images.ndim == 4 and images.shape[3] in (1, 3) and images.shape[1] not in (1, 3):
        images = images.transpose(0, 3, 1, 2)
    if images.ndim != 4 or images.shape[1] not in (1, 3) or images.shape[2] != images.shape[3]:
        raise DataError(
            f"{name}: images of shape {images.shape} and {images.dtype}; they are (n, side, side), with one "
            f"channel or three"
        )
    if images.size and not (images.min() >= 0 and images.max() <= BRIGHTEST):
        raise DataError(f"{name}: pixels lie in 0 to {BRIGHTEST}; these go from {images.min()} to {images.max()}")
    return images.astype(np.uint8)


def digits(split: str, seed: int = 0) -> tuple[NDArray[np.uint8], list[str]]:
    """scikit-learn's 1,797 digits, written by hand, of 8 x 8 pixels: 360 to test on, 90 to validate, the others to
    train; `seed` deals them anew. The same people wrote all three."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError("the corpus `digits` comes with scikit-learn: pip install 'glassformer[images]'") from None
    found = load_digits()
    order = np.random.RandomState(seed).permutation(len(found.target))  # the same in every version of numpy
    parts = {"test": order[:360], "valid": order[360:450], "train": order[450:]}
    if split not in parts:
        raise DataError(f"digits has no split `{split}`; choose {one_of(parts)}{did_you_mean(split, parts)}")
    images = np.rint(found.images[parts[split]] / 16 * BRIGHTEST).astype(np.uint8)
    return images[:, None], [str(label) for label in found.target[parts[split]].tolist()]
