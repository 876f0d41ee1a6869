"""What there is to translate: files of one kind, on this machine or at an address that pyarrow reads (s3://, gs://)."""

from __future__ import annotations

import gzip
import importlib
import io
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from glassformer.common.errors import ConfigError, DataError, why
from glassformer.data.readers import BLOCK, GZIP_MAGIC, XZ_MAGIC, missing_file_message

Kind = Literal["text", "jsonl", "parquet"]
Packing = Literal["", "gzip", "xz"]

KINDS: dict[str, Kind] = {".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
PACKED = (".gz", ".xz")
# Text of some other order than a sentence or a paragraph a line.
UNREAD = (
    ".json",
    ".csv",
    ".tsv",
    ".arrow",
    ".feather",
    ".orc",
    ".avro",
    ".zip",
    ".tar",
    ".zst",
    ".bz2",
    ".html",
    ".md",
)


def arrow(part: str) -> Any:
    """A part of pyarrow, which comes with Ray Data."""
    try:
        return importlib.import_module(f"pyarrow.{part}" if part else "pyarrow")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise ConfigError(
            "pyarrow, which reads such files, is not installed; run: pip install 'glassformer[bulk]'"
        ) from None


@dataclass(frozen=True)
class Source:
    """A file, by its place and by its name in the input, which is its name in the output too."""

    name: str
    path: str
    kind: Kind
    packing: Packing


def find(given: str) -> list[Source]:
    """The file that is named, or the files of a folder and its folders, by name; hidden ones are left out."""
    there = remote_files(given) if is_remote(given) else local_files(Path(given))
    if not there:
        raise DataError(f"{given} holds no file to translate; name a file, or a folder of Parquet, JSONL or text files")
    kinds = {name: kind_of(name) for name in there}
    for name, kind in kinds.items():
        if kind != (first := next(iter(kinds.values()))):
            raise DataError(
                f"{given} holds files of different kinds: {next(iter(kinds))} is {first} and {name} is {kind}; give "
                "folders of one kind each, one after the other"
            )
    return [Source(name, path, kinds[name], packing_of(path, kinds[name])) for name, path in there.items()]


def local_files(given: Path) -> dict[str, str]:
    if not given.exists():
        raise DataError(missing_file_message(given))
    if not given.is_dir():
        return {given.name: str(given.resolve())}
    found = {}

    def unread(error: OSError) -> None:
        raise DataError(f"{error.filename} cannot be read: {why(error)}")

    for place, folders, names in os.walk(given, onerror=unread):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        for name in sorted(names):
            path = Path(place) / name
            if not is_hidden(name) and path.is_file():
                found[path.relative_to(given).as_posix()] = str(path.resolve())
    return found


def remote_files(given: str) -> dict[str, str]:
    """Of a file or a folder at an address; their addresses begin as the given one does."""
    fs, base = file_system(given)
    scheme = given[: given.index("://") + 3]
    told = fs.get_file_info(base)
    if told.type == arrow("fs").FileType.File:
        return {base.rpartition("/")[2]: given}
    found = {}
    try:
        inside = fs.get_file_info(arrow("fs").FileSelector(base, recursive=True))
    except OSError as error:
        raise DataError(f"{given} cannot be read: {why(error)}") from None
    for one in sorted(inside, key=lambda one: one.path):
        name = one.path.removeprefix(base.rstrip("/") + "/")
        if one.is_file and not any(map(is_hidden, name.split("/"))):
            found[name] = scheme + one.path
    return found


def is_remote(path: str) -> bool:
    return "://" in path


def is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))  # as `_SUCCESS`, which other programs leave behind


def file_system(address: str) -> tuple[Any, str]:
    fs = arrow("fs")
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(address)
    except (ValueError, OSError, NotImplementedError, ImportError) as error:
        raise DataError(
            f"{address} cannot be reached ({error}); name a file or folder here, or one of s3:// or gs://"
        ) from None
    return found


def kind_of(name: str) -> Kind:
    bare = Path(name.lower())
    if bare.suffix in PACKED:
        bare = bare.with_suffix("")
    if bare.suffix in UNREAD:
        raise DataError(
            f"{name}: a file of the kind `{bare.suffix}` is not read in bulk; make it Parquet, JSONL (`.jsonl`) or "
            "text, one text a line (documents are for `glassformer translate`)"
        )
    return KINDS.get(bare.suffix, "text")


def packing_of(path: str, kind: Kind) -> Packing:
    """By its first bytes, not by its name."""
    if kind == "parquet":
        return ""
    with open_raw(path) as file:
        head = file.read(len(XZ_MAGIC))
    return "gzip" if head.startswith(GZIP_MAGIC) else "xz" if head.startswith(XZ_MAGIC) else ""


def open_raw(path: str) -> IO[bytes]:
    """A file as it lies there."""
    try:
        if is_remote(path):
            fs, name = file_system(path)
            return io.BufferedReader(cast(io.RawIOBase, fs.open_input_file(name)), BLOCK)
        return open(path, "rb", buffering=BLOCK)
    except FileNotFoundError:
        raise DataError(
            f"{path} is not there; every machine that translates must find it at this place (a shared disk, or s3://)"
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {why(error)}") from None


@contextmanager
def unpacked(source: Source) -> Iterator[IO[bytes]]:
    """Its bytes, unpacked; going forward in them is cheap."""
    with open_raw(source.path) as raw:
        if not source.packing:
            yield raw
            return
        unpack: Any = gzip.open if source.packing == "gzip" else lzma.open
        with unpack(raw) as inner, io.BufferedReader(inner, BLOCK) as stream:
            yield stream


def check_apart(given: str, output: Path) -> None:
    """Whether what is written can be told from what is read."""
    if len(output.parts) > 1 and output.parts[0].endswith(":"):  # of `s3://bucket` a path keeps one slash
        raise ConfigError(
            f"{output}: name a folder of this machine, or one that is mounted here; copy it elsewhere after"
        )
    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is a file; name a folder for the translations")
    if is_remote(given):
        return
    here, there = Path(given).resolve(), output.resolve()
    if here.is_dir() and there.is_relative_to(here):
        raise ConfigError(f"{output} lies in {given}, and would be translated as well; name a folder beside it")
    if here.is_file() and there / here.name == here:
        raise ConfigError(f"{given} lies in {output}, where its translation would take its place; name another folder")
