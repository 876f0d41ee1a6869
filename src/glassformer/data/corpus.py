"""Where sentence pairs come from: two aligned files, TSV, JSONL, a Hugging Face dataset, or the built-in task.

A text or an image and its label are a pair too.

Plain texts come from a file with one on each line, or from one side of such pairs. They are pairs without a source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from glassformer.common.errors import ConfigError, DataError, did_you_mean, one_of
from glassformer.data.lines import read_lines
from glassformer.data.pictures import picture_pairs

Pair = tuple[str, str]
MOST_WEIGHT = 10_000
MOST_SHIFT = 8  # pixels
BUILTIN = ("numerals", "numerals-text", "kinds", "digits")
MOST_PAIRS = 1_000_000  # of the built-in corpus


@dataclass(frozen=True)
class Corpus:
    """One source of sentence pairs: exactly one of `src` with `tgt`, `tsv`, `jsonl`, `hub` or `builtin`; or of plain
    texts: `text`, or `only` one side of the pairs; or of `images` with labels."""

    src: str | Path | None = None
    tgt: str | Path | None = None
    text: str | Path | None = None  # plain texts, one a line
    tsv: str | Path | None = None
    jsonl: str | Path | None = None
    hub: str | None = None  # a dataset's name on the Hugging Face hub
    images: str | Path | None = None  # an .npz of `images` and their `labels`
    shift: int = 0  # of images: each comes moved by up to so many pixels, too, in every direction
    builtin: Literal["numerals", "numerals-text", "kinds", "digits"] | None = None
    only: Literal["src", "tgt"] | None = None  # the side of the pairs that is read, as plain texts
    weight: float = 1.0  # how often each pair is seen per epoch, on average
    from_: str | None = None  # the language of the sources, in recipes `from`
    to: str | None = None  # that of the targets: with it, one model translates into several
    protect: float = 0.0  # the share of pairs in which placeholders stand for code, addresses, numbers and names
    split: str = "train"  # of `hub` and `builtin`
    config: str | None = None  # of `hub`: the dataset's configuration, such as "de-en"
    src_key: str = "src"  # of `jsonl` and `hub`: the column of the source sentence
    tgt_key: str = "tgt"
    target: str = "de"  # of `builtin`: the language to translate into
    seed: int = 0  # of `builtin`
    size: int | None = None  # of `builtin`: how many pairs, when not the default number

    def __post_init__(self) -> None:
        files = self.src is not None or self.tgt is not None
        given = [
            name for name in ("text", "tsv", "jsonl", "images", "hub", "builtin") if getattr(self, name) is not None
        ]
        given = (["src and tgt"] if files else []) + given
        if len(given) != 1:
            raise ConfigError(
                f"a corpus has exactly one of `src` with `tgt`, `text`, `tsv`, `jsonl`, `images`, `hub` or "
                f"`builtin`; got {one_of(given) if given else 'none of them'}"
            )
        if files and (self.src is None or self.tgt is None):
            there, absent = ("src", "tgt") if self.tgt is None else ("tgt", "src")
            raise ConfigError(f"a corpus with `{there}` also needs `{absent}`, the file of the other language")
        if self.only is not None and self.text is not None:
            raise ConfigError(f"a corpus with `text` has one side; `only = {self.only!r}` is for pairs")
        if self.builtin is not None and self.builtin not in BUILTIN:
            raise ConfigError(
                f"builtin corpus `{self.builtin}` does not exist; there are {one_of(BUILTIN)}"
                f"{did_you_mean(self.builtin, BUILTIN)}"
            )
        if type(self.weight) not in (int, float) or not 0 < self.weight <= MOST_WEIGHT:
            raise ConfigError(
                f"corpus weight {self.weight!r:.40} must be a number above 0 and at most {MOST_WEIGHT:,}; "
                f"leave out a corpus not wanted"
            )
        if type(self.shift) is not int or not 0 <= self.shift <= MOST_SHIFT or (self.shift and not self.pictured):
            raise ConfigError(
                f"corpus shift {self.shift!r:.40} is for images, and a whole number from 0 to {MOST_SHIFT}"
            )
        if type(self.protect) not in (int, float) or not 0 <= self.protect <= 1:
            raise ConfigError(f"corpus protect {self.protect!r:.40} must be a share between 0 and 1")
        if self.size is not None and not (type(self.size) is int and 1 <= self.size <= MOST_PAIRS):
            raise ConfigError(
                f"corpus size {self.size!r:.40} must be a whole number between 1 and {MOST_PAIRS:,} pairs"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(Path(name) for name in (self.src, self.tgt, self.text, self.tsv, self.jsonl, self.images) if name)

    @property
    def lone(self) -> bool:
        """Whether it is one of plain texts."""
        return self.text is not None or self.only is not None or self.known

    @property
    def known(self) -> bool:
        """Whether its law is known: see glassformer.data.exact_source."""
        return self.builtin == "numerals-text"

    @property
    def pictured(self) -> bool:
        """Whether it is one of images."""
        return self.images is not None or self.builtin == "digits"

    @property
    def made_of(self) -> str:
        """What it has, in words."""
        return "images" if self.pictured else "plain texts" if self.lone else "pairs"

    @property
    def name(self) -> str:
        """What messages call this corpus."""
        return " and ".join(map(str, self.files)) or self.hub or f"{self.builtin} ({self.split})"


def read_pairs(corpus: Corpus) -> Iterator[Pair]:
    """The pairs of `corpus` in order, read as they are asked for."""
    empty = True
    for source, target in _pairs(corpus):
        empty = False
        yield ("", source if corpus.only == "src" else target) if corpus.lone else (source, target)
    if empty:
        what = "text" if corpus.lone else "sentence pair"
        raise DataError(f"{corpus.name}: the corpus is empty; it needs at least one {what}")


def _pairs(corpus: Corpus) -> Iterator[Pair]:
    if corpus.src is not None and corpus.tgt is not None:
        return _aligned(Path(corpus.src), Path(corpus.tgt))
    if corpus.text is not None:
        return (("", line) for line in read_lines(Path(corpus.text)))
    if corpus.tsv is not None:
        return _tsv(Path(corpus.tsv))
    if corpus.jsonl is not None:
        return _jsonl(Path(corpus.jsonl), corpus)
    if corpus.pictured:
        return picture_pairs(corpus)
    if corpus.hub is not None:
        return _hub(corpus.hub, corpus)
    return _builtin(corpus)


def _aligned(src: Path, tgt: Path) -> Iterator[Pair]:
    sources, targets = read_lines(src), read_lines(tgt)
    for number, (source, target) in enumerate(zip_longest(sources, targets), 1):
        if source is None or target is None:
            longer = number + sum(1 for _ in (targets if source is None else sources))
            counts = (number - 1, longer) if source is None else (longer, number - 1)
            lacking = src if source is None else tgt
            raise DataError(
                f"{src} has {counts[0]} lines but {tgt} has {counts[1]}: line {number} has no partner in {lacking}; "
                f"the files must be aligned line by line"
            )
        yield source, target


def _tsv(path: Path) -> Iterator[Pair]:
    """The first two columns. The first line fixes how many there are: a stray tab must not shift the text unnoticed."""
    columns = 0
    for number, line in enumerate(read_lines(path), 1):
        if not line:
            yield "", ""  # counted as an empty pair, like an empty line in two aligned files
            continue
        fields = line.split("\t")
        if len(fields) < 2:
            raise DataError(f"{path}, line {number}: no tab; each line is source, tab, target")
        columns = columns or len(fields)
        if len(fields) != columns:
            raise DataError(
                f"{path}, line {number}: {len(fields)} columns where the lines before have {columns}; "
                f"replace tabs inside sentences by spaces"
            )
        yield fields[0], fields[1]


def _jsonl(path: Path, corpus: Corpus) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            yield "", ""
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            column = error.colno if isinstance(error, json.JSONDecodeError) else 1
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            raise DataError(
                f"{path}, line {number}, column {column}: not JSON ({reason}); "
                f'each line is an object such as {{"{corpus.src_key}": "...", "{corpus.tgt_key}": "..."}}'
            ) from None
        yield _columns(row, corpus, f"{path}, line {number}")


def _hub(name: str, corpus: Corpus) -> Iterator[Pair]:
    try:
        from datasets import load_dataset
    except ImportError:
        raise DataError(
            f"the dataset `{name}` needs the package `datasets`: pip install 'glassformer[hub]'; "
            f"or save the pairs as TSV and use `tsv`"
        ) from None
    try:
        rows = load_dataset(name, corpus.config, split=corpus.split, streaming=True)
        for number, row in enumerate(rows, 1):
            yield _columns(row.get("translation", row), corpus, f"dataset {name}, row {number}")
    except DataError:
        raise
    except Exception as error:  # the library raises many kinds: offline, unknown name, unknown split, gated
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise DataError(
            f"the dataset `{name}` (split `{corpus.split}`) cannot be read: {reason}; "
            f"check the name and the network, or save the pairs as TSV and use `tsv`"
        ) from None


def _columns(row: Any, corpus: Corpus, where: str) -> Pair:
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object with `{corpus.src_key}` and `{corpus.tgt_key}`, got {row!r:.60}")
    for key in (corpus.src_key, corpus.tgt_key):
        if key not in row:
            hint = (
                did_you_mean(key, map(str, row)) or f"; set `src_key` and `tgt_key` to two of {one_of(map(str, row))}"
            )
            raise DataError(f"{where}: no `{key}`{hint}")
        if not isinstance(row[key], str):
            raise DataError(f"{where}: `{key}` must be a string, got {row[key]!r:.60}")
    return row[corpus.src_key], row[corpus.tgt_key]


def _builtin(corpus: Corpus) -> Iterator[Pair]:
    if corpus.known:
        from glassformer.data.exact_source import draw

        return (("", text) for text in draw(corpus.split, corpus.seed, corpus.size))
    from glassformer.data.numerals import generate

    kinds = corpus.builtin == "kinds"
    return iter(generate(corpus.split, seed=corpus.seed, size=corpus.size, target=corpus.target, kinds=kinds))
