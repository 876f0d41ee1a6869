"""How files of each kind are cut into shards, read, written with their translations, and joined."""

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
from typing import IO, Any, Protocol, cast

from glassformer.common.errors import DataError, did_you_mean, one_of
from glassformer.data.readers import explain_read_errors, not_utf8_message
from glassformer.deploy.bulk.sources import Source, arrow, is_remote, open_raw, unpacked

ROWS = 1000  # of a shard at most; what is lost when a worker is killed is one shard
SHARD_BYTES = 1 << 17  # of text in a shard, about 40,000 tokens

Translate = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Span:
    """Rows `first` and on, counted from 0, of a file; `start` and `size` are what its kind counts in."""

    first: int
    rows: int
    start: int
    size: int


@dataclass(frozen=True)
class Shard(Span):
    """That of the `source`-th file."""

    number: int
    source: int


@dataclass(frozen=True)
class Cut:
    """A file cut into shards, one at least; the digest is of all that was read."""

    digest: str
    spans: list[Span]


class Format(Protocol):
    """How files of a kind are cut, read, written with their translations, and put together. A file stays open for the
    next shard, which most often follows."""

    def cut(self, source: Source, rows: int, progress: Callable[[int], None]) -> Cut: ...

    def texts(self, source: Source, shard: Shard) -> list[str | None]: ...

    def made(self, source: Source, shard: Shard, translate: Translate) -> bytes: ...

    def join(self, source: Source, parts: Sequence[Path], file: IO[bytes]) -> None: ...

    def close(self) -> None: ...


def through(texts: Sequence[str | None], translate: Translate) -> list[str | None]:
    """Translations in the order of the texts; where there is no text, there is none."""
    said = iter(translate([text for text in texts if text is not None]))
    return [None if text is None else next(said) for text in texts]


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
        with unpacked(source) as stream, explain_read_errors(source.path):
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
        with explain_read_errors(source.path):
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
        raise DataError(not_utf8_message(Path(source.name), number, raw, error)) from None
    return (line.removeprefix("\ufeff") if number == 1 else line).removesuffix("\r")


GROUP = 1 << 26  # bytes of a row group that is written


class Parquet:
    """A table; of the file that is open, the row group that was read last is kept for the next shard."""

    def __init__(self, column: str, into: str) -> None:
        self.column, self.into = column, into
        self._open = ExitStack()
        self._file: tuple[str, Any] | None = None
        self._group: tuple[int, Any] | None = None

    def cut(self, source: Source, rows: int, progress: Callable[[int], None]) -> Cut:
        """By rows, as many as hold the text of a shard on an average."""
        file = self._opened(source)
        self._check(source, file.schema_arrow)
        told = file.metadata
        place = next(i for i in range(told.num_columns) if told.schema.column(i).path == self.column)
        size = sum(told.row_group(i).column(place).total_uncompressed_size for i in range(told.num_row_groups))
        each = max(1, min(rows, SHARD_BYTES * told.num_rows // max(1, size)))
        spans = [Span(i, min(each, told.num_rows - i), i, each) for i in range(0, told.num_rows, each)]
        return Cut(digest_of(source), spans or [Span(0, 0, 0, 0)])

    def texts(self, source: Source, shard: Shard) -> list[str | None]:
        return self._texts(source, self._rows(source, shard))

    def made(self, source: Source, shard: Shard, translate: Translate) -> bytes:
        table = self._rows(source, shard)
        said = through(self._texts(source, table), translate)
        sink = io.BytesIO()
        arrow("parquet").write_table(table.append_column(self.into, arrow("").array(said, arrow("").string())), sink)
        return sink.getvalue()

    def join(self, source: Source, parts: Sequence[Path], file: IO[bytes]) -> None:
        """One file; its row groups are large again."""
        parquet, pa = arrow("parquet"), arrow("")
        with ExitStack() as stack:
            writer, waiting = None, []
            for number, part in enumerate(parts, 1):
                waiting.append(parquet.read_table(part, partitioning=None))
                if writer is None:
                    writer = stack.enter_context(parquet.ParquetWriter(file, waiting[0].schema))
                if sum(table.nbytes for table in waiting) >= GROUP or number == len(parts):
                    writer.write_table(pa.concat_tables(waiting))
                    waiting.clear()

    def close(self) -> None:
        self._open.close()
        self._file = self._group = None

    def _opened(self, source: Source) -> Any:
        if self._file is None or self._file[0] != source.path:
            self.close()
            with unreadable(source):
                raw = self._open.enter_context(open_raw(source.path))
                self._file = (source.path, self._open.enter_context(arrow("parquet").ParquetFile(raw)))
        return self._file[1]

    def _check(self, source: Source, schema: Any) -> None:
        if self.column not in schema.names:
            raise DataError(f"{source.path}: {no_column(self.column, schema.names)}")
        if self.into in schema.names:
            raise DataError(f"{source.path}: {taken(self.into)}")
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
            self._group = None  # two would be held otherwise
            with unreadable(source):
                self._group = (group, file.read_row_group(group))
        return self._group[1]

    def _texts(self, source: Source, table: Any) -> list[str | None]:
        found: list[str | None] = table.column(self.column).to_pylist()
        return found


def digest_of(source: Source) -> str:
    """Of a file here, all of it; of one elsewhere, its end, which says what every column holds."""
    with open_raw(source.path) as file:
        if not is_remote(source.path):
            return hashlib.file_digest(cast(io.BufferedReader, file), "sha256").hexdigest()
        file.seek(-8, io.SEEK_END)
        size = int.from_bytes(file.read(4), "little")
        file.seek(-8 - size, io.SEEK_END)
        return hashlib.sha256(file.read()).hexdigest()


@contextmanager
def unreadable(source: Source) -> Iterator[None]:
    try:
        yield
    except (arrow("").ArrowException, OSError) as error:
        told = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"{source.path} cannot be read as Parquet ({told}); make or copy it again") from None
