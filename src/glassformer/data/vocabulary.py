"""Learning a vocabulary from text, with the Rust library `tokenizers`.

A vocabulary starts with four special ids and, for `bpe` and `unigram`, one piece per byte: a character outside the
learnt alphabet is written as its UTF-8 bytes, so every string has an encoding. Spaces stay spaces inside pieces, and
one is put before every text, so that a word is the same piece at the start of a sentence and in its middle.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from glassformer.common.errors import ConfigError, DataError, did_you_mean, one_of
from glassformer.data.corpus import Pair
from glassformer.data.protect import MOST, PLACEHOLDERS

PAD, START, END, UNK = range(4)
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
RESERVED = SPECIALS + BYTES
TAG = re.compile(r"<2([A-Za-z]{2,3}(?:-[A-Za-z0-9]+)*)>")  # of a language to translate into, as in <2de>
MASK = "[MASK]"
SPECIAL = re.compile(rf"{'|'.join(map(re.escape, (*SPECIALS, MASK)))}|<extra_id_[0-9]+>|{TAG.pattern}")  # no text

# A piece never crosses the borders of this pattern: a word with the space before it, a digit, or a run of one sign.
# Signs stand alone, so no text can spell a reserved piece such as "<0x41>" or "<pad>". Scripts written without spaces
# are cut into short runs: a whole sentence as one word would make learning slow and its words all different. A
# placeholder is a piece of its own, and never one with the space before it.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"


def _pattern(placeholders: int) -> str:
    marks = PLACEHOLDERS[:placeholders]
    return "|".join(
        (
            *([f"[{marks}]"] if marks else []),
            rf" ?[\p{{L}}\p{{M}}&&[^{_UNSPACED}]]{{1,64}}",
            rf" ?[{_UNSPACED}]{{1,16}}",
            r"(?<=\p{L})['’]\p{L}{1,2}(?!\p{L})",  # don't, it's, we'll
            r" ?\p{N}",
            rf" ?([^\s\p{{L}}\p{{M}}\p{{N}}{marks}])\1{{0,15}}",
            r"\s",
        )
    )


LARGEST = 2**24  # pieces; the library makes room for all that are asked for, and fails for many more
SAMPLE_PAIRS = 300_000
SAMPLE_CHARACTERS = 2_000  # of one sentence; one huge line must not be the vocabulary
COUNTED = 20_000  # texts whose characters are counted together
COVERAGE = 0.9999  # of all characters; the rest are rare enough to be spelt in bytes


@dataclass(frozen=True)
class TokenizerOptions:
    """How text is cut into pieces."""

    kind: Literal["bpe", "unigram", "words"] = "bpe"
    vocab_size: int = 8000  # all ids, special ones and bytes included; for `words` an upper limit
    joint: bool = True  # one vocabulary for both languages
    join: str = "@@ "  # of `words`: deleting it joins the pieces of text that was cut before
    placeholders: int = 0  # pieces that stand for what a translation must not change

    def __post_init__(self) -> None:
        kinds = ("bpe", "unigram", "words")
        if self.kind not in kinds:
            raise ConfigError(
                f"tokenizer.kind `{self.kind}` is not one of {one_of(kinds)}{did_you_mean(str(self.kind), kinds)}"
            )
        if type(self.vocab_size) is not int or not len(SPECIALS) < self.vocab_size <= LARGEST:
            raise ConfigError(
                f"tokenizer.vocab_size {self.vocab_size!r:.40} must be a whole number above {len(SPECIALS)} "
                f"and at most {LARGEST:,}; 8000 is usual"
            )
        if type(self.placeholders) is not int or not 0 <= self.placeholders <= MOST:
            raise ConfigError(
                f"tokenizer.placeholders {self.placeholders!r:.40} must be a whole number between 0 and {MOST}"
            )
        if self.placeholders and self.kind == "words":
            raise ConfigError("tokenizer.placeholders are for kind = 'bpe' or 'unigram': a word is a piece of its own")


def sample_pairs(pairs: Iterable[Pair], limit: int, progress: Callable[[int], None] | None = None) -> list[Pair]:
    """At most `limit` pairs, evenly spaced over all of `pairs`, whose number need not be known before."""
    kept: list[Pair] = []
    every = 1
    for number, (source, target) in enumerate(pairs):
        if number % every == 0:
            if len(kept) == limit:
                kept = kept[::2]
                every *= 2
                if number % every:
                    continue
            kept.append((source[:SAMPLE_CHARACTERS], target[:SAMPLE_CHARACTERS]))
        if progress is not None and number % 10_000 == 9_999:
            progress(number + 1)
    if not any(source or target for source, target in kept):
        raise DataError("there is no text to learn a vocabulary from: every pair of the corpus is empty")
    return kept


def language_tag(language: str) -> str:
    """The piece that asks for a translation into `language`."""
    piece = f"<2{language}>"
    if not TAG.fullmatch(piece):
        raise ConfigError(f"`{language}` is not a language's code such as de, zh or pt-BR")
    return piece


def learn_vocabulary(texts: list[str], options: TokenizerOptions, tags: Sequence[str] = ()) -> tokenizers.Tokenizer:
    """A tokenizer of the Rust library, its vocabulary learnt from `texts`; no text yields one of the pieces `tags`."""
    if options.kind == "words":
        return _learn_words(texts, options, tags)
    reserved = [*RESERVED, *tags]
    marks = PLACEHOLDERS[: options.placeholders]
    alphabet = [*marks, *(character for character in _alphabet(texts) if character not in marks)]
    least = len(reserved) + len(alphabet)
    if options.vocab_size < least:
        raise ConfigError(
            f"tokenizer.vocab_size {options.vocab_size} is too small: special ids, bytes and the {len(alphabet)} "
            f"characters of the data need {least}; set tokenizer.vocab_size above that"
        )
    learn_pieces = _learn_bpe if options.kind == "bpe" else _learn_unigram
    # A gap stands where a character will be written in bytes, so that no piece is learnt across it.
    rare = re.compile(f"[^{re.escape(''.join(alphabet))} ]")
    rust = learn_pieces((rare.sub(" ", text) for text in texts), alphabet, reserved, options)
    size: int = rust.get_vocab_size()
    if size < options.vocab_size:
        raise ConfigError(
            f"tokenizer.vocab_size {options.vocab_size} is larger than the data allows: it yields {size} pieces; "
            f"set tokenizer.vocab_size to at most {size}, or give more text"
        )
    return rust


def _alphabet(texts: list[str]) -> list[str]:
    """The characters worth an id of their own, the most frequent first."""
    counted = np.zeros(0x110000, dtype=np.int64)
    for first in range(0, len(texts), COUNTED):
        codes = np.frombuffer("".join(texts[first : first + COUNTED]).encode("utf-32-le", "surrogatepass"), "<u4")
        counted += np.bincount(codes, minlength=len(counted))
    counted[ord(" ")] += 1
    counted[0xD800:0xE000] = 0  # halves of surrogate pairs are no characters
    counts = Counter({chr(code): int(counted[code]) for code in np.flatnonzero(counted)})
    uncovered = counts.total() * (1 - COVERAGE)
    ranked = sorted(counts.items(), key=lambda item: (item[1], item[0]))
    while ranked and (ranked[0][1] < 2 or ranked[0][1] <= uncovered):
        uncovered -= ranked.pop(0)[1]
    return [character for character, _ in reversed(ranked)]


def _learn_bpe(
    texts: Iterator[str], alphabet: list[str], reserved: list[str], options: TokenizerOptions
) -> tokenizers.Tokenizer:
    rust = _pieces(models.BPE(byte_fallback=True), options)
    trainer = trainers.BpeTrainer(
        vocab_size=options.vocab_size,
        min_frequency=2,
        special_tokens=reserved,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    rust.train_from_iterator(texts, trainer)
    form = json.loads(rust.to_str())
    # The trainer registers the reserved pieces as tokens to be found in text; here no text may produce them.
    form["added_tokens"] = []
    return tokenizers.Tokenizer.from_str(json.dumps(form))


def _learn_unigram(
    texts: Iterator[str], alphabet: list[str], reserved: list[str], options: TokenizerOptions
) -> tokenizers.Tokenizer:
    rust = _pieces(models.Unigram(), options)
    trainer = trainers.UnigramTrainer(
        vocab_size=options.vocab_size - len(reserved), initial_alphabet=alphabet, show_progress=False, special_tokens=[]
    )
    rust.train_from_iterator(texts, trainer)
    # Rounded so that a saved score is read back as the same number.
    learnt = [(piece, round(score, 6)) for piece, score in json.loads(rust.to_str())["model"]["vocab"]]
    return _pieces(models.Unigram([(piece, 0.0) for piece in reserved] + learnt, UNK, byte_fallback=True), options)


def _learn_words(texts: list[str], options: TokenizerOptions, tags: Sequence[str]) -> tokenizers.Tokenizer:
    counts = Counter(chain.from_iterable(map(str.split, texts)))
    for special in list(filter(SPECIAL.fullmatch, counts)):
        del counts[special]  # a word of the text that looks like a special piece is an unknown word
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: options.vocab_size - len(SPECIALS) - len(tags)]
    vocabulary = {SPECIALS[UNK]: UNK} | {word: id for id, word in enumerate([*tags, *ranked], len(SPECIALS))}
    rust = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIALS[UNK]))
    rust.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    join = [decoders.Replace(options.join, "")] if options.join else []
    rust.decoder = decoders.Sequence(
        [decoders.Replace(Regex(r"\z"), " "), decoders.Fuse(), *join, decoders.Strip(" ", 0, 1)]
    )
    return rust


def _pieces(model: models.Model, options: TokenizerOptions) -> tokenizers.Tokenizer:
    rust = tokenizers.Tokenizer(model)
    rust.normalizer = normalizers.Prepend(" ")
    rust.pre_tokenizer = pre_tokenizers.Split(Regex(_pattern(options.placeholders)), "isolated")
    rust.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return rust


@dataclass(frozen=True)
class IdMap:
    """The model's padding, start and end, which may be one id; every other is stored `offset` higher."""

    pad: int
    start: int
    end: int
    offset: int = len(SPECIALS)

    def __call__(self, stored: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids that the model knows."""
        marks = np.array([self.pad, self.start, self.end, self.pad])
        return np.where(stored < self.offset, marks[np.minimum(stored, self.offset - 1)], stored - self.offset)


@dataclass(frozen=True)
class PixelScaling:
    """Of each channel, the mean that is taken off, and the spread that the rest is divided by."""

    mean: tuple[float, ...]
    spread: tuple[float, ...]
    offset: int = 0  # pixels are stored as they are

    def __call__(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Images (B, C, N, N), whose pixels are shares of the brightest."""
        mean, spread = (np.array(each, np.float32).reshape(1, -1, 1, 1) for each in (self.mean, self.spread))
        return (pixels - mean) / spread


InputMap = IdMap | PixelScaling
