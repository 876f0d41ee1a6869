"""The formats of documents, by the endings of their names."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from glassformer.common.errors import DataError
from glassformer.pipelines.documents.segments import DocumentStats, SupportsTranslate, run_task

FORMATS = {  # the function that translates each, by its module in this package
    ".txt": ("text_formats", "translate_plain"),
    ".md": ("markdown", "translate"),
    ".markdown": ("markdown", "translate"),
    ".html": ("html", "translate"),
    ".htm": ("html", "translate"),
    ".po": ("text_formats", "translate_po"),
    ".srt": ("text_formats", "translate_srt"),
}


def is_document(path: Path) -> bool:
    return path.suffix.lower() in FORMATS


def check_format(path: Path) -> None:
    if not is_document(path):
        raise DataError(
            f"{path}: a file of the kind `{path.suffix}` cannot be translated; there are {', '.join(FORMATS)}"
        )


def translate_bytes(
    path: Path,
    data: bytes,
    translator: SupportsTranslate,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[bytes, DocumentStats]:
    """The document `data`, in the format given by the name `path`, translated."""
    text = decode(path, data)
    stats = DocumentStats()
    module, function = FORMATS[path.suffix.lower()]
    content = text.removeprefix("\ufeff")
    try:
        translate = getattr(import_module(f"glassformer.pipelines.documents.{module}"), function)
        translation: str = run_task(translate(content, stats), translator, progress)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    mark = text[: len(text) - len(content)]
    return (mark + translation).encode("utf-8", "replace"), stats


def decode(path: Path, data: bytes) -> str:
    """The text of a document, which must be UTF-8."""
    check_format(path)
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
