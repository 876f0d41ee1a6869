"""Corpora read as pairs: aligned files, TSV, JSONL, Hugging Face datasets, images, built-in tasks; text as lines."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, TypeVar, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from glassformer.common.errors import DataError, did_you_mean, one_of, why
from glassformer.data.corpus import Corpus, Pair

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BLOCK = 1 << 20
SHOWN = 10  # bad lines that are told in full
T = TypeVar("T")
Items = Iterator[T | DataError]  # what is read, and what is wrong where it cannot be


def without_bad(items: Items[T], skip: bool = False, counts: Counter[str] | None = None) -> Iterator[T]:
    """The good items; but without `skip` a bad one ends them, and all the bad ones are told when the last is read."""
    bad, count, good = list[str](), 0, 0
    for item in items:
        if isinstance(item, DataError):
            bad += [str(item)][: SHOWN - count]
            count += 1
            continue
        good += 1
        if skip or not count:
            yield item
    if counts is not None:
        counts["bad"] += count
    if count > (good if skip else 0):
        fix = "skip_bad = true in a corpus's table, or `train --skip-bad`, leaves out bad ones that are the fewer"
        listed = "\n  ".join([f"{count:,} bad lines and {good:,} good ones; {fix}. The first bad ones:", *bad])
        raise DataError(bad[0] if count == 1 else listed)


def read_pairs(corpus: Corpus, counts: Counter[str] | None = None) -> Iterator[Pair]:
    """The pairs of `corpus` in order, read lazily; `counts` is told how many bad lines were left out."""
    empty = True
    for source, target in without_bad(_read(corpus), corpus.skip_bad, counts):
        empty = False
        yield ("", source if corpus.only == "src" else target) if corpus.monolingual else (source, target)
    if empty:
        what = "text" if corpus.monolingual else "sentence pair"
        raise DataError(f"{corpus.name}: the corpus is empty; it needs at least one {what}")


def _read(corpus: Corpus) -> Items[Pair]:
    if corpus.src is not None and corpus.tgt is not None:
        return _aligned(Path(corpus.src), Path(corpus.tgt))
    if corpus.text is not None:
        return (line if isinstance(line, DataError) else ("", line) for line in _lines(Path(corpus.text)))
    if corpus.tsv is not None:
        return _tsv(Path(corpus.tsv))
    if corpus.jsonl is not None:
        return _jsonl(Path(corpus.jsonl), corpus)
    if corpus.has_images:
        return ((image_to_text(image), label) for image, label in zip(*load_images(corpus), strict=True))
    if corpus.hub is not None:
        return _hub(corpus.hub, corpus)
    if corpus.exact:
        from glassformer.data.exact_source import draw

        return (("", text) for text in draw(corpus.split, corpus.seed, corpus.size))
    from glassformer.data.numerals import generate

    kinds = corpus.builtin == "kinds"
    return iter(generate(corpus.split, seed=corpus.seed, size=corpus.size, target=corpus.target, kinds=kinds))


def _aligned(src: Path, tgt: Path) -> Items[Pair]:
    sources, targets = _lines(src), _lines(tgt)
    for number, (source, target) in enumerate(zip_longest(sources, targets), 1):
        if source is None or target is None:
            longer = number + sum(1 for _ in (targets if source is None else sources))
            counts, lacking = ((number - 1, longer), src) if source is None else ((longer, number - 1), tgt)
            raise DataError(
                f"{src} has {counts[0]} lines but {tgt} has {counts[1]}: line {number} has no partner in {lacking}; "
                f"the files must be aligned line by line"
            )
        bad = [side for side in (source, target) if isinstance(side, DataError)]
        yield from bad or cast(list[Pair], [(source, target)])


def _tsv(path: Path) -> Items[Pair]:
    """The first two columns. The first line fixes how many there are: a stray tab must not shift the text unnoticed."""
    columns = 0
    for number, line in enumerate(_lines(path), 1):
        if isinstance(line, DataError) or not line:
            yield line or ("", "")  # counted as an empty pair, like an empty line in two aligned files
            continue
        fields = line.split("\t")
        if len(fields) < 2:
            yield DataError(f"{path}, line {number}: no tab; each line is source, tab, target")
        elif len(fields) != (columns := columns or len(fields)):
            yield DataError(
                f"{path}, line {number}: {len(fields)} columns where the lines before have {columns}; "
                f"replace tabs inside sentences by spaces"
            )
        else:
            yield fields[0], fields[1]


def _jsonl(path: Path, corpus: Corpus) -> Items[Pair]:
    for number, line in enumerate(_lines(path), 1):
        if isinstance(line, DataError) or not line.strip():
            yield line if isinstance(line, DataError) else ("", "")
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            deep = (1, "nested too deeply")
            column, reason = (error.colno, error.msg) if isinstance(error, json.JSONDecodeError) else deep
            yield DataError(
                f"{path}, line {number}, column {column}: not JSON ({reason}); "
                f'each line is an object such as {{"{corpus.src_key}": "...", "{corpus.tgt_key}": "..."}}'
            )
            continue
        yield _pair_of_row(row, corpus, f"{path}, line {number}")


def _hub(name: str, corpus: Corpus) -> Items[Pair]:
    try:
        from datasets import load_dataset
    except ImportError:
        raise DataError(
            f"the dataset `{name}` needs the package `datasets`: pip install 'glassformer[hub]'; "
            f"or save the pairs as TSV and use `tsv`"
        ) from None
    try:
        rows = load_dataset(name, corpus.config, split=corpus.split, streaming=True)
        for number, row in enumerate(rows, 1):
            found = _pair_of_row(row.get("translation", row), corpus, f"dataset {name}, row {number}")
            if isinstance(found, DataError) and not corpus.skip_bad:
                raise found  # the others would have to be fetched to be counted
            yield found
    except DataError:
        raise
    except Exception as error:  # the library raises many kinds: offline, unknown name, unknown split, gated
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise DataError(
            f"the dataset `{name}` (split `{corpus.split}`) cannot be read: {reason}; "
            f"check the name and the network, or save the pairs as TSV and use `tsv`"
        ) from None


def _pair_of_row(row: Any, corpus: Corpus, where: str) -> Pair | DataError:
    if not isinstance(row, dict):
        return DataError(f"{where}: expected an object with `{corpus.src_key}` and `{corpus.tgt_key}`, got {row!r:.60}")
    columns = list(map(str, row))
    for key in (corpus.src_key, corpus.tgt_key):
        if key not in row:
            hint = did_you_mean(key, columns) or f"; set `src_key` and `tgt_key` to two of {one_of(columns)}"
            return DataError(f"{where}: no `{key}`{hint}")
        if not isinstance(row[key], str):
            return DataError(f"{where}: `{key}` must be a string, got {row[key]!r:.60}")
    return row[corpus.src_key], row[corpus.tgt_key]


def read_lines(path: Path) -> Iterator[str]:
    return without_bad(_lines(path))


def _lines(path: Path) -> Items[str]:
    """The lines of `path` without their line ends, one at a time.

    Only "\\n" (or "\\r\\n") ends a line: the many other line breaks of Unicode occur inside sentences, and splitting
    there would shift every later pair of two aligned files.
    """
    number = 0
    with open_text(path) as stream, explain_read_errors(path, lambda: f" after line {number}"):
        for raw in stream:
            number += 1
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                wrong = DataError(not_utf8_message(path, number, raw, error))
                if "UTF-16" in str(wrong):  # no line of it can be read
                    raise wrong from None
                yield wrong
                continue
            if number == 1:
                line = line.removeprefix("\ufeff")
            yield line.removesuffix("\n").removesuffix("\r")


@contextmanager
def explain_read_errors(name: Path | str, where: Callable[[], str] = str) -> Iterator[None]:
    """Say what is wrong with a file that cannot be read further, or unpacked, and `where`."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataError(
            f"{name}: the compressed file is damaged{where()} ({error}); fetch or compress it again"
        ) from None
    except OSError as error:
        raise DataError(f"{name}: reading failed{where()}: {why(error)}") from None


def open_text(path: Path) -> IO[bytes]:
    """The file as bytes; its first bytes, not its name, say how it is compressed."""
    try:
        with path.open("rb") as file:
            head = file.read(len(XZ_MAGIC))
        if head.startswith(GZIP_MAGIC):
            # The extra buffer moves the line search from Python into C.
            return io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), BLOCK)
        if head.startswith(XZ_MAGIC):
            return io.BufferedReader(cast(io.RawIOBase, lzma.open(path, "rb")), BLOCK)
        if head.startswith(ZSTD_MAGIC):
            return io.BufferedReader(zstd().input_stream(str(path), compression="zstd"), BLOCK)
        return path.open("rb", buffering=BLOCK)
    except FileNotFoundError:
        raise DataError(missing_file_message(path)) from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; name the text file inside it") from None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {why(error)}") from None


def zstd() -> Any:
    """The library that packs and unpacks Zstandard."""
    try:
        import pyarrow
    except ImportError:
        raise DataError("Zstandard needs the package `pyarrow`: pip install pyarrow; or use gzip or xz") from None
    return pyarrow


def missing_file_message(path: Path, otherwise: str = "check the path") -> str:
    """What to say of a file that is not there: a name like it, or what to do otherwise."""
    if not path.parent.is_dir():
        return f"{path} does not exist, and neither does the folder {path.parent}; {otherwise}"
    hint = did_you_mean(path.name, (other.name for other in path.parent.iterdir()))
    return f"{path} does not exist{hint or f'; {otherwise}'}"


def not_utf8_message(path: Path, number: int, raw: bytes, error: UnicodeDecodeError) -> str:
    utf16 = number == 1 and raw.startswith(UTF16_MARKS)
    guess = "it looks like UTF-16" if utf16 else "it may be Latin-1 or Windows-1252"
    return (
        f"{path}, line {number}: not UTF-8 (byte {error.start + 1} of the line is 0x{raw[error.start]:02x}); {guess}, "
        f"convert it with `iconv -f ENCODING -t UTF-8`"
    )


DARKEST = 0x100  # the character of a pixel that is 0; none up to the brightest is a space
BRIGHTEST = 255


def image_to_text(image: NDArray[np.uint8]) -> str:
    """An image, its pixels from 0 to 255, as a text."""
    return (image.astype("<u4").ravel() + DARKEST).tobytes().decode("utf-32-le")


def load_images(corpus: Corpus) -> tuple[NDArray[np.uint8], list[str]]:
    """The images of a corpus (n, channels, side, side), and their labels."""
    images, labels = digits(corpus.split, corpus.seed) if corpus.images is None else read_images(Path(corpus.images))
    side, most = images.shape[2], corpus.shift
    wide = np.pad(images, ((0, 0), (0, 0), (most, most), (most, most)))  # what comes in is dark
    starts = range(2 * most, -1, -1)
    moved = [wide[:, :, top : top + side, left : left + side] for top in starts for left in starts]
    return np.concatenate(moved), labels * len(moved)


def read_images(path: Path) -> tuple[NDArray[np.uint8], list[str]]:
    """The `images` (n, channels, side, side) and `labels` of an .npz; whole numbers to 255, or shares of 1."""
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                raise ValueError("it is one array alone")
            images, labels = found["images"], found["labels"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        reason = why(error) if isinstance(error, OSError) else npz_error(error)
        raise DataError(
            f"{path} is no .npz with `images` and `labels`: {reason}; np.savez(file, images=..., labels=...)"
        ) from None
    if len(images) != len(labels):
        raise DataError(f"{path}: {len(images):,} images and {len(labels):,} labels; there is one each")
    return normalize_images(images, str(path)), label_names(labels, str(path))


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


def npz_error(error: Exception) -> str:
    """Why an array cannot be read; numpy's advice to run what a file holds is not passed on."""
    return "it is no file of numpy's, or is cut short" if "pickle" in str(error) or not str(error) else str(error)


def normalize_images(images: NDArray[Any], name: str) -> NDArray[np.uint8]:
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
    train; `seed` changes the split. The same people wrote all three."""
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
