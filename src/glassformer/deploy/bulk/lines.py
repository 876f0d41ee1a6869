"""Text and JSONL: one row a line, plain or packed."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any

from glassformer.common.errors import DataError, did_you_mean, one_of
from glassformer.data.readers import not_utf8, told
from glassformer.deploy.bulk.shards import SHARD_BYTES, Cut, Shard, Span, Translate, through
from glassformer.deploy.bulk.sources import Source, unpacked

LONGEST = 10_000_000  # bytes of a line; more is no text, and would have to be held in memory
TOLD = 100_000  # lines between two words on how far the reading is


class TextLines:
    """Text, one a line: its translation takes its place. An empty line stays empty."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._stream: tuple[str, IO[bytes]] | None = None

    def text(self, source: Source, number: int, raw: bytes) -> str | None:
        """What a line, counted from 1, has to translate."""
        return decoded(source, number, raw)

    def line(self, raw: bytes, translation: str | None) -> bytes:
        said = translation or ""
        return (said.replace("\r", " ").replace("\n", " ") + "\n").encode("utf-8", "replace")

    def cut(self, source: Source, rows: int, progress: Callable[[int], None]) -> Cut:
        """Where its shards lie, in bytes; every line is looked at, so that a wrong one is told before hours of work."""
        digest, spans = hashlib.sha256(), list[Span]()
        first = start = here = number = 0
        with unpacked(source) as stream, told(source.path):
            for number, raw in enumerate(iter(partial(stream.readline, LONGEST), b""), 1):
                if len(raw) == LONGEST and not raw.endswith(b"\n"):
                    raise DataError(
                        f"{source.path}, line {number}: longer than {LONGEST:,} bytes, the limit for a line; "
                        "is it text? Break it into lines"
                    )
                digest.update(raw)
                self.text(source, number, raw)
                here += len(raw)
                if number - first == rows or here - start >= SHARD_BYTES:
                    spans.append(Span(first, number - first, start, here - start))
                    first, start = number, here
                if not number % TOLD:
                    progress(number)
        if here > start or not spans:
            spans.append(Span(first, number - first, start, here - start))
        return Cut(digest.hexdigest(), spans)

    def texts(self, source: Source, shard: Shard) -> list[str | None]:
        return [self.text(source, shard.first + i, raw) for i, raw in enumerate(self._lines(source, shard), 1)]

    def made(self, source: Source, shard: Shard, translate: Translate) -> bytes:
        lines = self._lines(source, shard)
        texts = [self.text(source, shard.first + i, raw) for i, raw in enumerate(lines, 1)]
        return b"".join(map(self.line, lines, through(texts, translate)))

    def join(self, source: Source, parts: Sequence[Path], file: IO[bytes]) -> None:
        """The parts one after the other, packed as the source was."""
        with ExitStack() as stack:
            sink: Any = file
            if source.packing == "gzip":
                sink = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))  # the same at any time
            elif source.packing == "xz":
                sink = stack.enter_context(lzma.open(file, "wb"))
            for part in parts:
                with part.open("rb") as one:
                    shutil.copyfileobj(one, sink)

    def close(self) -> None:
        self._open.close()
        self._stream = None

    def _lines(self, source: Source, shard: Shard) -> list[bytes]:
        if self._stream is None or self._stream[0] != source.path:
            self.close()
            self._stream = (source.path, self._open.enter_context(unpacked(source)))
        stream = self._stream[1]
        with told(source.path):
            stream.seek(shard.start)
            data = stream.read(shard.size)
        lines = data.removesuffix(b"\n").split(b"\n") if data else []
        if len(data) != shard.size or len(lines) != shard.rows:
            raise DataError(f"{source.path} has changed since it was first read; begin again, in another folder")
        return lines


class JsonLines(TextLines):
    """An object a line: it gets one more field, and stays to the byte what it was. An empty line stays empty."""

    def __init__(self, column: str, into: str) -> None:
        super().__init__()
        self.column, self.into = column, into

    def text(self, source: Source, number: int, raw: bytes) -> str | None:
        line, place = decoded(source, number, raw), f"{source.path}, line {number}"
        if not line.strip():
            return None
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: not JSON ({error}); every line must be one object") from None
        if not isinstance(row, dict):
            raise DataError(f"{place}: a {type(row).__name__}, not an object; write {{{json.dumps(self.column)}: ...}}")
        if self.column not in row:
            raise DataError(f"{place}: {no_column(self.column, list(row))}")
        if self.into in row:
            raise DataError(f"{place}: {taken(self.into)}")
        text = row[self.column]
        if text is not None and not isinstance(text, str):
            raise DataError(f"{place}: `{self.column}` is a {type(text).__name__}, not a text")
        return None if text is None else text.encode("utf-8", "replace").decode("utf-8")  # \ud800 is no character

    def line(self, raw: bytes, translation: str | None) -> bytes:
        row = raw.rstrip()
        if not row.endswith(b"}"):
            return b"\n"
        field = f", {json.dumps(self.into, ensure_ascii=False)}: {json.dumps(translation, ensure_ascii=False)}}}\n"
        return row.removesuffix(b"}").rstrip() + field.encode("utf-8", "replace")


def no_column(column: str, there: list[str]) -> str:
    hint = did_you_mean(column, there) or f"; there are {one_of(there)}, name one with --column"
    return f"there is no `{column}`{hint}"


def taken(into: str) -> str:
    return f"there is a column `{into}` already; name another for the translations with --into"


def decoded(source: Source, number: int, raw: bytes) -> str:
    raw = raw.removesuffix(b"\n")
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(not_utf8(Path(source.name), number, raw, error)) from None
    return (line.removeprefix("\ufeff") if number == 1 else line).removesuffix("\r")
