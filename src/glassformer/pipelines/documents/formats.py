"""The kinds of document that can be read, by the endings of their names."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from glassformer.common.errors import DataError
from glassformer.pipelines.documents.passage import Tally, TextTranslating, answered

FORMATS = {
    ".txt": "plain",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".po": "po",
    ".srt": "srt",
}
LACKING = "`pip install markdown-it-py mdit-py-plugins polib srt`"


def is_document(path: Path) -> bool:
    return path.suffix.lower() in FORMATS


def check_kind(path: Path) -> None:
    if not is_document(path):
        known = ", ".join(FORMATS)
        raise DataError(f"{path}: a file of the kind `{path.suffix}` cannot be translated; there are {known}")


def translate_bytes(
    path: Path,
    data: bytes,
    translator: TextTranslating,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[bytes, Tally]:
    """The document `data`, of the kind that the name `path` tells, translated."""
    text = decoded(path, data)
    tally = Tally()
    try:
        room = import_module(f"glassformer.pipelines.documents.{FORMATS[path.suffix.lower()]}")
        mark = text[: len(text) - len(text.removeprefix("\ufeff"))]
        made: str = answered(room.translating(text.removeprefix("\ufeff"), tally), translator, progress)
    except ModuleNotFoundError as error:
        raise DataError(f"{path}: needs {error.name}, which is not installed: {LACKING}") from None
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return (mark + made).encode("utf-8", "replace"), tally


def decoded(path: Path, data: bytes) -> str:
    """The text of a document; an error where it is none."""
    check_kind(path)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path}: UTF-16; convert it first: `iconv -f UTF-16 -t UTF-8`")
    if b"\0" in data:
        raise DataError(f"{path}: no text (byte {data.index(0) + 1:,} is 0)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not UTF-8 (byte {error.start + 1:,} is 0x{data[error.start]:02x}); "
            "convert it first, such as `iconv -f ISO-8859-1 -t UTF-8`"
        ) from None
