"""Parquet: all columns stay, and the translations are one more."""

from __future__ import annotations

import hashlib
import importlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

from glassformer.common.errors import ConfigError, DataError
from glassformer.deploy.bulk.lines import no_column, taken
from glassformer.deploy.bulk.shards import SHARD_BYTES, Cut, Shard, Span, Translate, through
from glassformer.deploy.bulk.sources import Source, is_remote, open_raw

GROUP = 1 << 26  # bytes of a row group that is written


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
