"""Text files as lines: plain, gzip or xz, UTF-8, one line per newline character."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from glassformer.common.errors import DataError, did_you_mean, why

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BLOCK = 1 << 20


def read_lines(path: Path) -> Iterator[str]:
    """The lines of `path` without their line ends, one at a time.

    Only "\\n" (or "\\r\\n") ends a line: the many other line breaks of Unicode occur inside sentences, and splitting
    there would shift every later pair of two aligned files.
    """
    number = 0
    with _open(path) as stream, told(path, lambda: f" after line {number}"):
        for raw in stream:
            number += 1
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise DataError(not_utf8(path, number, raw, error)) from None
            if number == 1:
                line = line.removeprefix("\ufeff")
            yield line.removesuffix("\n").removesuffix("\r")


@contextmanager
def told(name: Path | str, where: Callable[[], str] = str) -> Iterator[None]:
    """Say what is wrong with a file that cannot be read further, or unpacked, and `where`."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataError(
            f"{name}: the compressed file is damaged{where()} ({error}); fetch or compress it again"
        ) from None
    except OSError as error:
        raise DataError(f"{name}: reading failed{where()}: {why(error)}") from None


def _open(path: Path) -> IO[bytes]:
    """The file as bytes; its first bytes, not its name, say how it is compressed."""
    try:
        with path.open("rb") as file:
            head = file.read(len(XZ_MAGIC))
        if head.startswith(GZIP_MAGIC):
            # The extra buffer moves the line search from Python into C.
            return io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), BLOCK)
        if head.startswith(XZ_MAGIC):
            return io.BufferedReader(cast(io.RawIOBase, lzma.open(path, "rb")), BLOCK)
        return path.open("rb", buffering=BLOCK)
    except FileNotFoundError:
        raise DataError(missing(path)) from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; name the text file inside it") from None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {why(error)}") from None


def missing(path: Path, otherwise: str = "check the path") -> str:
    """What to say of a file that is not there: a name like it, or what to do otherwise."""
    if not path.parent.is_dir():
        return f"{path} does not exist, and neither does the folder {path.parent}; {otherwise}"
    hint = did_you_mean(path.name, (other.name for other in path.parent.iterdir()))
    return f"{path} does not exist{hint or f'; {otherwise}'}"


def not_utf8(path: Path, number: int, raw: bytes, error: UnicodeDecodeError) -> str:
    byte = raw[error.start]
    if number == 1 and raw.startswith(UTF16_MARKS):
        guess = "it looks like UTF-16"
    else:
        guess = "it may be Latin-1 or Windows-1252"
    return (
        f"{path}, line {number}: not UTF-8 (byte {error.start + 1} of the line is 0x{byte:02x}); {guess}, "
        f"convert it with `iconv -f ENCODING -t UTF-8`"
    )
