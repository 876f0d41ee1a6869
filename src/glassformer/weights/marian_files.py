"""The files of a model that Marian wrote, as Firefox Translations publishes them: weights (.bin or .npz) and a lexical
shortlist (.bin). Every number of a file is checked before it is used, and before memory is asked for.

A .bin, little-endian: u64 version 1, u64 count; of each item u64 length of its name, type, dimensions and bytes; the
names; the dimensions, i32 each; u64 of padding and the padding; the items' bytes, one after the other.
An item of type intgemm8 is a matrix (I, O) written transposed, (O, I) bytes, and behind them a float32, the
quantisation multiplier: a weight is its byte divided by it.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.common.errors import WeightsError, why

VERSION, ALIGNMENT = 1, 256
FLOAT32, INT8 = 0x404, 0x4101
TYPES = {
    0x101: "int8", 0x102: "int16", 0x104: "int32", 0x201: "uint8", 0x402: "float16", 0x408: "float64",
    0x4102: "intgemm16: convert the model with marian-conv --gemm-type intgemm8, or float32",
}  # fmt: skip
SETTINGS = "special:model.yml"
SHORTLIST = 0xF11A48D5013417F5  # the first eight bytes
HEADER = 48  # bytes of a shortlist before its tables
MOST_DIMENSIONS = 8
MOST_SETTINGS = 1 << 20  # bytes
MOST_RATIO = 100  # of an .npz: its arrays may be so many times as large as the file


class Quantized(NamedTuple):
    """A matrix of bytes as it lies in the file, (O, I), and what its weights were multiplied by."""

    values: Tensor
    multiplier: float

    def dequantize(self) -> Tensor:
        """(I, O), as a matrix of float32 lies in a file."""
        return (self.values.float() * torch.tensor(1.0 / np.float32(self.multiplier))).T


Tensors = dict[str, Tensor | Quantized]


class Contents(NamedTuple):
    """What a file of weights holds; a quantised embedding is (V, D) both in the file and here."""

    path: Path
    settings: dict[str, Any]
    tensors: Tensors


class Cursor:
    """A place in the bytes of a file; what is read lies within them, or the file is refused."""

    def __init__(self, path: Path) -> None:
        self.path, self.at = path, 0
        try:
            self.data = memoryview(path.read_bytes())
        except OSError as error:
            raise WeightsError(f"{path} cannot be read: {why(error)}") from None

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        raise WeightsError(
            f"{self.path}: {what} (offset {self.at if at is None else at:,} of {len(self.data):,} bytes)"
        )

    def take(self, size: int, what: str) -> memoryview:
        if size > len(self.data) - self.at:
            self.fail(f"{what} would take {size:,} bytes, but {len(self.data) - self.at:,} are left; is it cut off?")
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self, count: int, kind: str, what: str) -> NDArray[Any]:
        return np.frombuffer(self.take(count * np.dtype(kind).itemsize, what), kind)

    def number(self, what: str) -> int:
        return int(self.numbers(1, "<u8", what)[0])


def read_contents(path: Path) -> Contents:
    """The weights and settings of a .bin or .npz file."""
    tensors, settings = read_npz(path) if path.suffix == ".npz" else read_binary(path)
    if settings is None:
        raise WeightsError(f"{path} holds no `{SETTINGS}`, so nobody knows what its weights are; is it a whole model?")
    return Contents(path, parse_settings(path, settings), tensors)


def read_binary(path: Path) -> tuple[Tensors, bytes | None]:
    file = Cursor(path)
    version, count = file.number("the version"), file.number("the number of items")
    if version != VERSION:
        file.fail(f"the version is {version:,}, and that of a binary model of Marian is {VERSION}; is it one?", 0)
    headers = file.numbers(4 * count, "<u8", f"the headers of {count:,} items").reshape(-1, 4).tolist()
    names = [bytes(file.take(size, f"the name of item {i}")) for i, (size, *_) in enumerate(headers)]
    shapes = []
    for i, (_, _, dimensions, _) in enumerate(headers):
        if dimensions > MOST_DIMENSIONS:
            file.fail(f"item {i} has {dimensions:,} dimensions; a model's has at most {MOST_DIMENSIONS}")
        shapes.append(file.numbers(dimensions, "<i4", f"the dimensions of item {i}").tolist())
    file.take(file.number("the padding's size"), "the padding")
    tensors: Tensors = {}
    settings = None
    for (_, kind, _, size), shape, raw in zip(headers, shapes, names, strict=True):
        name, at = raw.split(b"\0")[0].decode(errors="replace"), file.at
        data = file.take(size, f"`{name}`")
        elements = math.prod(shape)
        if name in tensors or min(shape, default=1) < 1:
            file.fail(f"`{name}` " + ("comes twice" if name in tensors else f"has the shape {shape}"), at)
        if name == SETTINGS:
            settings = bytes(data)
            continue
        if kind not in (FLOAT32, INT8):
            known = TYPES.get(kind, "packed for one kind of processor: convert the model with marian-conv again")
            file.fail(f"`{name}` is of type {kind:#x} ({known}); float32 and intgemm8 are read", at)
        needed = elements * 4 if kind == FLOAT32 else elements + 4
        if size < needed:
            file.fail(f"`{name}` of shape {shape} needs {needed:,} bytes, and has {size:,}", at)
        if kind == FLOAT32:
            tensors[name] = finite(file, name, np.frombuffer(data[:needed], "<f4"), at).view(shape)
            continue
        multiplier = float(np.frombuffer(data[elements:needed], "<f4")[0])
        if not (math.isfinite(multiplier) and multiplier > 0):
            file.fail(f"`{name}` has the quantisation multiplier {multiplier}; it must be above 0", at + elements)
        values = torch.from_numpy(np.frombuffer(data[:elements], np.int8).copy())
        rows = (shape or [1])[0 if name.endswith("Wemb") else -1]
        tensors[name] = Quantized(values.view(rows, -1), multiplier)
    return tensors, settings


def finite(file: Cursor, name: str, values: NDArray[Any], at: int) -> Tensor:
    tensor = torch.from_numpy(values.astype(np.float32))
    if not torch.isfinite(tensor).all():
        file.fail(f"`{name}` holds numbers that are none, or infinite", at)
    return tensor


def read_npz(path: Path) -> tuple[Tensors, bytes | None]:
    """An archive of NumPy arrays; their headers are checked against the archive's own sizes, nothing is unpickled."""
    file = Cursor(path)
    tensors: Tensors = {}
    settings = None
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if (whole := sum(member.file_size for member in members)) > MOST_RATIO * len(file.data):
                file.fail(f"its arrays would take {whole:,} bytes, more than {MOST_RATIO} times the file")
            for member in members:
                name = member.filename.removesuffix(".npy")
                with archive.open(member) as stream:
                    first = np.lib.format.read_magic(stream) == (1, 0)
                    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
                    shape, fortran, kind = read(stream)
                    size = math.prod(shape) * kind.itemsize
                    if kind.hasobject or min(shape, default=1) < 0 or size > member.file_size:
                        file.fail(f"`{name}` of {kind} and shape {shape} does not fit its {member.file_size:,} bytes")
                    data = stream.read(size)
                if name == SETTINGS:
                    settings = data
                    continue
                if kind != np.dtype("<f4") or fortran or len(data) < size:
                    file.fail(f"`{name}` is no whole array of float32 by rows, but {len(data):,} bytes of {kind}")
                tensors[name] = finite(file, name, np.frombuffer(data, "<f4"), member.header_offset).view(shape)
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise WeightsError(f"{path} is not a whole archive of NumPy arrays: {error}") from None
    return tensors, settings


def parse_settings(path: Path, raw: bytes) -> dict[str, Any]:
    """The settings: YAML, of which Marian writes `name: value`, lists in brackets, and lists of lines with a dash."""
    if len(raw) > MOST_SETTINGS:
        raise WeightsError(f"{path}: `{SETTINGS}` has {len(raw):,} bytes; settings have at most {MOST_SETTINGS:,}")
    found: dict[str, Any] = {}
    last = ""
    for line in raw.split(b"\0")[0].decode(errors="replace").splitlines():
        if line.strip().startswith("- ") and isinstance(found.setdefault(last, []) or [], list):
            found[last] = [*(found[last] or []), scalar(line.strip()[2:])]
        elif ":" in line and not line.startswith((" ", "#")):
            last, _, value = line.partition(":")
            value = value.strip()
            listed = value.startswith("[") and value.endswith("]")
            found[last] = [scalar(one) for one in value[1:-1].split(",") if one.strip()] if listed else scalar(value)
    return found


def scalar(text: str) -> Any:
    text = text.strip()
    if text in ("true", "false", "~", "null", ""):
        return {"true": True, "false": False}.get(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("\"'")


class Shortlist(NamedTuple):
    """Which pieces a target may hold: the most frequent ones, and those that often translate a piece of the source."""

    frequent: int  # pieces, from the first
    offsets: Tensor  # of each source piece, where its own begin in `pieces`; one more for the end
    pieces: Tensor
    shared: bool  # one vocabulary for both sides: then a piece of the source may be copied

    def candidates(self, ids: Iterable[int]) -> set[int]:
        """As Firefox's engine has them: their number is filled up to a multiple of 8."""
        ids = set(ids)
        found = set(range(self.frequent)) | (ids if self.shared else set())
        for id in ids:
            if id + 1 < len(self.offsets):
                found.update(self.pieces[self.offsets[id] : self.offsets[id + 1]].tolist())
        more = self.frequent
        while len(found) % 8:
            found.add(more)
            more += 1
        return found

    def allowed(self, sources: Sequence[Iterable[int]], size: int) -> Tensor:
        """Of each source (B) and each piece of a vocabulary of `size`, whether its target may hold it."""
        table = torch.zeros(len(sources), size, dtype=torch.bool)
        for row, ids in zip(table, sources, strict=True):
            row[torch.tensor(sorted(id for id in self.candidates(ids) if id < size))] = True
        return table


def is_shortlist(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return int.from_bytes(stream.read(8), "little") == SHORTLIST
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {why(error)}") from None


def read_shortlist(path: Path, size: int, shared: bool) -> Shortlist:
    """A binary shortlist for a target vocabulary of `size` pieces."""
    file = Cursor(path)
    header = file.numbers(HEADER // 8, "<u8", "the header of a shortlist").tolist()
    _, _, frequent, _, words, count = header
    if header[0] != SHORTLIST:
        file.fail(f"it begins with {header[0]:#x}, and a binary shortlist with {SHORTLIST:#x}", 0)
    if frequent > size or not words:
        what = f"names the {frequent:,} most frequent of {size:,} pieces" if words else "has no table of words"
        file.fail(f"the shortlist {what}; is it for this model?", 16)
    start = file.at
    offsets = file.numbers(words, "<u8", f"the offsets of {words:,} words")
    pieces = file.numbers(count, "<u4", f"{count:,} pieces")
    if int(offsets[-1]) != count or (offsets[1:] < offsets[:-1]).any():
        file.fail(f"the words' offsets must grow up to {count:,}", start)
    if count and int(pieces.max()) >= size:
        file.fail(
            f"the shortlist names piece {int(pieces.max()):,}, and the vocabulary has {size:,}", start + words * 8
        )
    whole, own = torch.from_numpy(offsets.astype(np.int64)), torch.from_numpy(pieces.astype(np.int64))
    return Shortlist(frequent, whole, own, shared)


def write_binary(path: Path, tensors: Mapping[str, Tensor | Quantized], settings: str) -> None:
    """Marian's binary format: matrices of float32 as (I, O), quantised ones as (O, I) bytes with their multiplier."""
    items = [(name, *packed_item(name, value)) for name, value in tensors.items()]
    text = settings.encode() + b"\0"
    items.append((SETTINGS, 0x101, (len(text),), text))
    out = bytearray(np.array([VERSION, len(items)], "<u8").tobytes())
    padded = [data + bytes(-len(data) % ALIGNMENT) for *_, data in items]
    names = [name.encode() + b"\0" for name, *_ in items]
    for name, (_, kind, shape, _), data in zip(names, items, padded, strict=True):
        out += np.array([len(name), kind, len(shape), len(data)], "<u8").tobytes()
    out += b"".join(names) + b"".join(np.array(shape, "<i4").tobytes() for _, _, shape, _ in items)
    gap = -(len(out) + 8) % ALIGNMENT
    out += np.array([gap], "<u8").tobytes() + bytes(gap)
    path.write_bytes(bytes(out) + b"".join(padded))


def packed_item(name: str, value: Tensor | Quantized) -> tuple[int, tuple[int, ...], bytes]:
    if isinstance(value, Tensor):
        return FLOAT32, tuple(value.shape), value.detach().contiguous().numpy().astype("<f4").tobytes()
    rows, columns = value.values.shape
    shape = (rows, columns) if name.endswith("Wemb") else (columns, rows)
    data = value.values.contiguous().numpy().tobytes() + np.array([value.multiplier], "<f4").tobytes()
    return INT8, shape, data
