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

FileKind = Literal["text", "jsonl", "parquet"]
Compression = Literal["", "gzip", "xz"]

KINDS: dict[str, FileKind] = {".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
COMPRESSED = (".gz", ".xz")
# Their text is not one sentence or paragraph a line.
UNSUPPORTED = frozenset(
    (".json", ".csv", ".tsv", ".arrow", ".feather", ".orc", ".avro", ".zip", ".tar", ".zst", ".bz2", ".html", ".md")
)


@dataclass(frozen=True)
class Source:
    """A file, by its path and by its name in the input, which is its name in the output too."""

    name: str
    path: str
    kind: FileKind
    compression: Compression


def find_sources(given: str) -> list[Source]:
    """The file, or the files of a folder and its subfolders, by name, without hidden files."""
    paths = remote_files(given) if is_remote(given) else local_files(Path(given))
    if not paths:
        raise DataError(f"{given} holds no file to translate; name a file, or a folder of Parquet, JSONL or text files")
    kinds = {name: kind_of(name) for name in paths}
    first, kind = next(iter(kinds.items()))
    for name in kinds:
        if kinds[name] != kind:
            raise DataError(
                f"{given} holds files of different kinds: {first} is {kind} and {name} is {kinds[name]}; give "
                "folders of one kind each, one after the other"
            )
    return [Source(name, path, kind, compression_of(path, kind)) for name, path in paths.items()]


def local_files(given: Path) -> dict[str, str]:
    if not given.exists():
        raise DataError(missing_file_message(given))
    if not given.is_dir():
        return {given.name: str(given.resolve())}
    found = {}

    def on_error(error: OSError) -> None:
        raise DataError(f"{error.filename} cannot be read: {why(error)}")

    for place, folders, names in os.walk(given, onerror=on_error):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        for name in sorted(names):
            path = Path(place) / name
            if not is_hidden(name) and path.is_file():
                found[path.relative_to(given).as_posix()] = str(path.resolve())
    return found


def remote_files(given: str) -> dict[str, str]:
    """The file or the files of a folder at an address; their addresses begin with the same scheme."""
    fs, base = file_system(given)
    scheme = given[: given.index("://") + 3]
    if fs.get_file_info(base).type == arrow("fs").FileType.File:
        return {base.rpartition("/")[2]: given}
    try:
        files = fs.get_file_info(arrow("fs").FileSelector(base, recursive=True))
    except OSError as error:
        raise DataError(f"{given} cannot be read: {why(error)}") from None
    names = {file.path.removeprefix(base.rstrip("/") + "/"): scheme + file.path for file in files if file.is_file}
    return {name: names[name] for name in sorted(names) if not any(map(is_hidden, name.split("/")))}


def is_remote(path: str) -> bool:
    return "://" in path


def is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))  # such as `_SUCCESS`, which other programs leave


def arrow(module: str) -> Any:
    """A module of pyarrow, which is installed with Ray Data; "" is pyarrow itself."""
    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise ConfigError(
            "pyarrow, which reads such files, is not installed; run: pip install 'glassformer[bulk]'"
        ) from None


def file_system(address: str) -> tuple[Any, str]:
    fs = arrow("fs")
    try:
        return cast(tuple[Any, str], fs.FileSystem.from_uri(address))
    except (ValueError, OSError, NotImplementedError, ImportError) as error:
        raise DataError(
            f"{address} cannot be reached ({error}); name a file or folder here, or one of s3:// or gs://"
        ) from None


def kind_of(name: str) -> FileKind:
    bare = Path(name.lower())
    if bare.suffix in COMPRESSED:
        bare = bare.with_suffix("")
    if bare.suffix in UNSUPPORTED:
        raise DataError(
            f"{name}: a file of the kind `{bare.suffix}` is not read in bulk; make it Parquet, JSONL (`.jsonl`) or "
            "text, one text a line (documents are for `glassformer translate`)"
        )
    return KINDS.get(bare.suffix, "text")


def compression_of(path: str, kind: FileKind) -> Compression:
    """By its first bytes, not by its name."""
    if kind == "parquet":
        return ""
    with open_raw(path) as file:
        head = file.read(len(XZ_MAGIC))
    return "gzip" if head.startswith(GZIP_MAGIC) else "xz" if head.startswith(XZ_MAGIC) else ""


def open_raw(path: str) -> IO[bytes]:
    """A file, not decompressed."""
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
def open_decompressed(source: Source) -> Iterator[IO[bytes]]:
    """Its decompressed bytes; seeking forward is cheap."""
    with open_raw(source.path) as raw:
        if not source.compression:
            yield raw
            return
        decompress: Any = gzip.open if source.compression == "gzip" else lzma.open
        with decompress(raw) as inner, io.BufferedReader(inner, BLOCK) as stream:
            yield stream


def check_output(given: str, output: Path) -> None:
    """Whether the output is a folder of this machine, apart from the input."""
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
