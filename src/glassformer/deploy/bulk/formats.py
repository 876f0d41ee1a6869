"""How files of each kind are cut into shards, read, written with their translations, and joined.

A shard is a stretch of rows of one file; the same file is always cut at the same rows. A format keeps the last file
open, because most shards are followed by the next one of the same file.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from glassformer.common.errors import DataError, did_you_mean, one_of
from glassformer.data.readers import explain_read_errors, not_utf8_message
from glassformer.deploy.bulk.sources import FileKind, Source, arrow, is_remote, open_decompressed, open_raw

ROWS = 1000  # of a shard at most; a worker that is killed loses one shard
SHARD_BYTES = 1 << 17  # of text in a shard, about 40,000 tokens
MAX_LINE = 10_000_000  # bytes; a longer line is not text, and would have to be held in memory
PROGRESS_LINES = 100_000  # read between two reports
GROUP_BYTES = 1 << 26  # of a Parquet row group


@dataclass(frozen=True)
class Span:
    """`rows` rows of a file from row `first` on, counted from 0; `start` and `size` are bytes of text, or rows."""

    first: int
    rows: int
    start: int
    size: int


@dataclass(frozen=True)
class Shard(Span):
    """The `number`-th of all, a span of the `source`-th file."""

    number: int
    source: int


class TextLines:
    """Text, one a line: its translation replaces it. An empty line stays empty."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._stream: tuple[str, IO[bytes]] | None = None

    def parse(self, source: Source, number: int, raw: bytes) -> str | None:
        """The text to translate of a line, counted from 1."""
        return decode(source, number, raw)

    def format(self, raw: bytes, translation: str | None) -> bytes:
        text = translation or ""
        return (text.replace("\r", " ").replace("\n", " ") + "\n").encode("utf-8", "replace")

    def cut(self, source: Source, rows: int, progress: Callable[[int], None]) -> tuple[str, list[Span]]:
        """The file's digest, and at least one span. Every line is parsed, so that hours of work do not end in a
        mistake."""
        digest, spans = hashlib.sha256(), list[Span]()
        first = start = position = number = 0
        with open_decompressed(source) as stream, explain_read_errors(source.path):
            for number, raw in enumerate(iter(partial(stream.readline, MAX_LINE), b""), 1):
                if len(raw) == MAX_LINE and not raw.endswith(b"\n"):
                    raise DataError(
                        f"{source.path}, line {number}: longer than {MAX_LINE:,} bytes, the limit for a line; "
                        "is it text? Break it into lines"
                    )
                digest.update(raw)
                self.parse(source, number, raw)
                position += len(raw)
                if number - first == rows or position - start >= SHARD_BYTES:
                    spans.append(Span(first, number - first, start, position - start))
                    first, start = number, position
                if not number % PROGRESS_LINES:
                    progress(number)
        if position > start or not spans:
            spans.append(Span(first, number - first, start, position - start))
        return digest.hexdigest(), spans

    def texts(self, source: Source, shard: Shard) -> list[str | None]:
        return [self.parse(source, shard.first + i, raw) for i, raw in enumerate(self._lines(source, shard), 1)]

    def part(self, source: Source, shard: Shard, translations: Sequence[str | None]) -> bytes:
        """The shard's part of the output."""
        return b"".join(map(self.format, self._lines(source, shard), translations))

    def join(self, source: Source, parts: Sequence[Path], file: IO[bytes]) -> None:
        """Concatenates the parts, compressed as the source was."""
        with ExitStack() as stack:
            sink: Any = file
            if source.compression == "gzip":
                sink = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))  # the same at any time
            elif source.compression == "xz":
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
            self._stream = (source.path, self._open.enter_context(open_decompressed(source)))
        stream = self._stream[1]
        with explain_read_errors(source.path):
            stream.seek(shard.start)
            data = stream.read(shard.size)
        lines = data.removesuffix(b"\n").split(b"\n") if data else []
        if len(data) != shard.size or len(lines) != shard.rows:
            raise DataError(f"{source.path} has changed since it was first read; begin again, in another folder")
        return lines


class JsonLines(TextLines):
    """An object a line: it gets one more field, and its bytes stay the same. An empty line stays empty."""

    def __init__(self, column: str, into: str) -> None:
        super().__init__()
        self.column, self.into = column, into

    def parse(self, source: Source, number: int, raw: bytes) -> str | None:
        line, place = decode(source, number, raw), f"{source.path}, line {number}"
        if not line.strip():
            return None
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: not JSON ({error}); every line must be one object") from None
        if not isinstance(row, dict):
            raise DataError(f"{place}: a {type(row).__name__}, not an object; write {{{json.dumps(self.column)}: ...}}")
        check_columns(place, self.column, self.into, list(row))
        text = row[self.column]
        if text is not None and not isinstance(text, str):
            raise DataError(f"{place}: `{self.column}` is a {type(text).__name__}, not a text")
        return None if text is None else text.encode("utf-8", "replace").decode("utf-8")  # \ud800 is no character

    def format(self, raw: bytes, translation: str | None) -> bytes:
        row = raw.rstrip()
        if not row.endswith(b"}"):
            return b"\n"
        field = f", {json.dumps(self.into, ensure_ascii=False)}: {json.dumps(translation, ensure_ascii=False)}}}\n"
        return row.removesuffix(b"}").rstrip() + field.encode("utf-8", "replace")


class Parquet:
    """A table gets one more column. The row group that was read last is kept for the next shard."""

    def __init__(self, column: str, into: str) -> None:
        self.column, self.into = column, into
        self._open = ExitStack()
        self._file: tuple[str, Any] | None = None
        self._group: tuple[int, Any] | None = None

    def cut(self, source: Source, rows: int, progress: Callable[[int], None]) -> tuple[str, list[Span]]:
        """By rows: as many as have a shard's bytes of text on average."""
        file = self._opened(source)
        self._check(source, file.schema_arrow)
        metadata = file.metadata
        index = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == self.column)
        groups = [metadata.row_group(i).column(index) for i in range(metadata.num_row_groups)]
        size, count = sum(group.total_uncompressed_size for group in groups), metadata.num_rows
        each = max(1, min(rows, SHARD_BYTES * count // max(1, size)))
        spans = [Span(i, min(each, count - i), i, each) for i in range(0, count, each)]
        return parquet_digest(source), spans or [Span(0, 0, 0, 0)]

    def texts(self, source: Source, shard: Shard) -> list[str | None]:
        return cast("list[str | None]", self._rows(source, shard).column(self.column).to_pylist())

    def part(self, source: Source, shard: Shard, translations: Sequence[str | None]) -> bytes:
        """The shard's part of the output."""
        column, sink = arrow("").array(translations, arrow("").string()), io.BytesIO()
        arrow("parquet").write_table(self._rows(source, shard).append_column(self.into, column), sink)
        return sink.getvalue()

    def join(self, source: Source, parts: Sequence[Path], file: IO[bytes]) -> None:
        """Joins the parts' tables, in large row groups."""
        parquet, waiting = arrow("parquet"), list[Any]()
        with parquet.ParquetWriter(file, parquet.read_schema(parts[0])) as writer:
            for number, part in enumerate(parts, 1):
                waiting.append(parquet.read_table(part, partitioning=None))
                if sum(table.nbytes for table in waiting) >= GROUP_BYTES or number == len(parts):
                    writer.write_table(arrow("").concat_tables(waiting))
                    waiting.clear()

    def close(self) -> None:
        self._open.close()
        self._file = self._group = None

    def _opened(self, source: Source) -> Any:
        if self._file is None or self._file[0] != source.path:
            self.close()
            with parquet_errors(source):
                raw = self._open.enter_context(open_raw(source.path))
                self._file = (source.path, self._open.enter_context(arrow("parquet").ParquetFile(raw)))
        return self._file[1]

    def _check(self, source: Source, schema: Any) -> None:
        check_columns(source.path, self.column, self.into, schema.names)
        kind, types = schema.field(self.column).type, arrow("types")
        if types.is_dictionary(kind):
            kind = kind.value_type
        if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
            raise DataError(
                f"{source.path}: the column `{self.column}` is {kind}, not text; name another with --column"
            )

    def _rows(self, source: Source, shard: Shard) -> Any:
        """The rows of a shard as a table."""
        file, tables, before = self._opened(source), [], 0
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            start, end = max(shard.first - before, 0), min(shard.first + shard.rows - before, rows)
            if start < end:
                tables.append(self._read_group(source, file, group).slice(start, end - start))
            before += rows
        table = arrow("").concat_tables(tables) if tables else file.schema_arrow.empty_table()
        if table.num_rows != shard.rows:
            raise DataError(f"{source.path} has changed since it was first read; begin again, in another folder")
        return table

    def _read_group(self, source: Source, file: Any, group: int) -> Any:
        if self._group is None or self._group[0] != group:
            self._group = None  # so that memory holds one group, not two
            with parquet_errors(source):
                self._group = (group, file.read_row_group(group))
        return self._group[1]


Format: TypeAlias = TextLines | Parquet


def make_format(kind: FileKind, column: str, into: str) -> Format:
    if kind == "text":
        return TextLines()
    return JsonLines(column, into) if kind == "jsonl" else Parquet(column, into)


def check_columns(place: str, column: str, into: str, names: list[str]) -> None:
    if column not in names:
        hint = did_you_mean(column, names) or f"; there are {one_of(names)}, name one with --column"
        raise DataError(f"{place}: there is no `{column}`{hint}")
    if into in names:
        raise DataError(f"{place}: there is a column `{into}` already; name another for the translations with --into")


def decode(source: Source, number: int, raw: bytes) -> str:
    raw = raw.removesuffix(b"\n")
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(not_utf8_message(Path(source.name), number, raw, error)) from None
    return (line.removeprefix("\ufeff") if number == 1 else line).removesuffix("\r")


def parquet_digest(source: Source) -> str:
    """Of a file here, all of it; of a remote one its metadata at the end, which describe every column."""
    with open_raw(source.path) as file:
        if not is_remote(source.path):
            return hashlib.file_digest(cast(io.BufferedReader, file), "sha256").hexdigest()
        file.seek(-8, io.SEEK_END)
        size = int.from_bytes(file.read(4), "little")
        file.seek(-8 - size, io.SEEK_END)
        return hashlib.sha256(file.read()).hexdigest()


@contextmanager
def parquet_errors(source: Source) -> Iterator[None]:
    try:
        yield
    except (arrow("").ArrowException, OSError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"{source.path} cannot be read as Parquet ({reason}); make or copy it again") from None
