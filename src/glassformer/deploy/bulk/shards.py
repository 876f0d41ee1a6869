"""A shard: some rows of one file, cut in the same places whenever the file is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from glassformer.deploy.bulk.sources import Source

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
