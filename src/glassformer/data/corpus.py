"""Where sentence pairs come from: two aligned files, TSV, JSONL, a Hugging Face dataset, or the built-in task.

A text or an image and its label are a pair too.

Plain texts come from a file with one on each line, or from one side of such pairs. They are pairs without a source.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from glassformer.common.errors import ConfigError, did_you_mean, one_of

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
    skip_bad: bool = False  # go on without the lines that cannot be read
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
        single = ("text", "tsv", "jsonl", "images", "hub", "builtin")
        given = ["src and tgt"] * files + [name for name in single if getattr(self, name) is not None]
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
        if type(self.shift) is not int or not 0 <= self.shift <= MOST_SHIFT or (self.shift and not self.has_images):
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
    def monolingual(self) -> bool:
        """Whether it is one of plain texts."""
        return self.text is not None or self.only is not None or self.exact

    @property
    def exact(self) -> bool:
        """Whether its law is known: see glassformer.data.exact_source."""
        return self.builtin == "numerals-text"

    @property
    def has_images(self) -> bool:
        """Whether it is one of images."""
        return self.images is not None or self.builtin == "digits"

    @property
    def content(self) -> str:
        """What it has, in words."""
        return "images" if self.has_images else "plain texts" if self.monolingual else "pairs"

    @property
    def name(self) -> str:
        """What messages call this corpus."""
        return " and ".join(map(str, self.files)) or self.hub or f"{self.builtin} ({self.split})"
