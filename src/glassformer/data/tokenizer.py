"""Text to ids and back; and what a tokenizer's model was trained on: its languages and words."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import tokenizers
from numpy.typing import NDArray

from glassformer.common.errors import DataError, InputError, did_you_mean, one_of, panics_as_errors, why
from glassformer.common.strings import UNSPACED
from glassformer.data.corpus import Corpus, Pair
from glassformer.data.protect import PLACEHOLDERS
from glassformer.data.vocabulary import (
    BYTES,
    END,
    PAD,
    SAMPLE_PAIRS,
    SPECIAL,
    SPECIALS,
    START,
    TAG,
    UNK,
    InputMap,
    TokenizerOptions,
    language_tag,
    learn_vocabulary,
    sample_pairs,
)

MOST_WORDS = 50_000  # kept of those met in training, the most frequent
NAMED = 8  # words that a warning names
# In a script without spaces every character counts as a word.
_LETTER = rf"(?![{UNSPACED}])[^\W\d_]"
_WORD = re.compile(rf"[{UNSPACED}]|(?:{_LETTER})+(?:['’](?:{_LETTER})+)*")


@dataclass(frozen=True)
class About:
    """A model's card: the section [about] of its recipe. Languages are codes, such as "en"."""

    source: str = ""
    target: str = ""
    purpose: str = ""  # what it has learnt, as in "This model learnt {purpose}."
    purpose_zh: str = ""
    examples: tuple[str, ...] = ()

    @classmethod
    def of_recipe(cls, text: str) -> About:
        """The card in a recipe's text; what is missing or of another kind is left out, since a model works without."""
        try:
            table: Any = tomllib.loads(text).get("about", {})
        except (ValueError, RecursionError):
            return cls()
        found = table if isinstance(table, dict) else {}
        texts = {f.name: found[f.name] for f in fields(cls) if isinstance(found.get(f.name), str)}
        listed = found.get("examples")
        examples = tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()
        return cls(**texts | {"examples": examples})

    def toward(self, target: str, tags: Sequence[str]) -> About:
        """The card for another target language, one of `tags`; only the original direction keeps its examples."""
        fixed = [self.source] if self.source and self.source not in tags else []
        sources = fixed or [tag for tag in tags if tag != target]
        source = sources[0] if len(sources) == 1 else ""
        own = (source, target) == (self.source, self.target)
        return self if own else replace(self, source=source, target=target, examples=())

    def warning(self, words: Sequence[str]) -> str:
        """What to say of words that training never met."""
        learnt = f"this model learnt {self.purpose}; it" if self.purpose else "this model"
        more = f" and {len(words) - NAMED:,} more" if len(words) > NAMED else ""
        return f"{learnt} may not know: {', '.join(words[:NAMED])}{more}"


def split_words(text: str) -> list[str]:
    return _WORD.findall(text)


def frequent_words(texts: Iterable[str]) -> frozenset[str]:
    """The words of `texts`, capitals aside; of very many, the most frequent."""
    chunks = Counter(chain.from_iterable(map(str.split, texts)))
    counts: Counter[str] = Counter()
    for chunk, times in chunks.items():  # far fewer than there are words in all
        for word in split_words(chunk):
            counts[word.casefold()] += times
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return frozenset(ranked[:MOST_WORDS])


WORDS = "source_words.txt"
SMALL = ".xz"  # after the name of a file that is compressed


@runtime_checkable
class PairTokenizer(Protocol):
    """What a translator asks of a tokenizer; ids come with whatever marks the model's sources end with."""

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]: ...

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]: ...

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]: ...

    def source_pieces(self, ids: Sequence[int]) -> list[str]: ...

    def target_pieces(self, ids: Sequence[int]) -> list[str]: ...


@runtime_checkable
class Directed(Protocol):
    """A tokenizer of a model that translates into several languages: `tags` are what it calls them, `to` is one."""

    to: str | None

    @property
    def tags(self) -> tuple[str, ...]: ...

    def toward(self, language: str) -> PairTokenizer: ...

    def card(self, about: About) -> About: ...


class Tokenizer:
    """Two languages' text as ids and back; one vocabulary for both, or one each.

    The ids 0 to 3 are padding, start, end and unknown. Encoding adds none of them, and no text yields the first three.
    With `bpe` and `unigram`, decoding gives back exactly the text that was encoded.
    """

    source: str | None = None  # the language of the sources, for models that take it as an input
    label_names: tuple[str, ...] = ()  # of texts or images that have a label each
    input_map: InputMap | None = None  # to the ids of a model that has others than a store's

    def __init__(
        self,
        source: Vocabulary,
        target: Vocabulary | None = None,
        words: frozenset[str] = frozenset(),
    ) -> None:
        self.joint = target is None
        self.words = words  # of the source, met in training; none where they are not known
        self.to: str | None = None  # the language that sources are tagged with
        self._source = source
        self._target = source if target is None else target

    @classmethod
    def train(
        cls,
        pairs: Iterable[Pair],
        options: TokenizerOptions,
        progress: Callable[[int], None] | None = None,
        languages: Iterable[str] = (),
        reserved: Iterable[str] = (),
    ) -> Tokenizer:
        """Learn the vocabulary from (a sample of) `pairs`; `progress` gets the number of pairs read.

        `languages` are those that one model is to translate into, each by a tag of its own. `reserved` pieces are in
        the vocabulary too, and no text yields them.
        """
        tags = [language_tag(language) for language in sorted(set(languages))] + list(reserved)
        kept = sample_pairs(pairs, SAMPLE_PAIRS, progress)
        join = options.join if options.kind == "words" else ""
        sources = (source or target for source, target in kept)  # of plain texts, the text itself
        words = frequent_words(text.replace(join, "") if join else text for text in sources)
        if options.joint:
            texts = [text for pair in kept for text in pair]
            return cls(Vocabulary(learn_vocabulary(texts, options, tags)), None, words)
        source, target = (Vocabulary(learn_vocabulary([pair[side] for pair in kept], options, tags)) for side in (0, 1))
        return cls(source, target, words)

    @property
    def src_size(self) -> int:
        return self._source.size

    @property
    def tgt_size(self) -> int:
        return self._target.size

    @property
    def tags(self) -> tuple[str, ...]:
        """The languages that a source may be tagged with; none where a model knows one direction only."""
        return tuple(self._source.tags)

    @property
    def pieces(self) -> tuple[dict[int, str], dict[int, str]]:
        """The pieces of the source and of the target by their ids, as the files have them; not every id has one."""
        source, target = (
            {id: piece for id, piece in enumerate(side.pieces) if piece} for side in (self._source, self._target)
        )
        return source, target

    @property
    def forms(self) -> tuple[str, str]:
        """The source's and the target's vocabulary as JSON of the library `tokenizers`."""
        return self._source.rust.to_str(), self._target.rust.to_str()

    @property
    def alphabet(self) -> frozenset[str]:
        """The characters of a source that have a piece of their own; others are read byte by byte."""
        return self._source.alphabet

    @cached_property
    def placeholders(self) -> str:
        """The characters that stand for what must not change; empty for a model trained without them."""
        return "".join(mark for mark in PLACEHOLDERS if mark in self._target.alphabet & self._source.alphabet)

    def toward(self, language: str) -> Tokenizer:
        """The same, with the tag of `language` put before every source."""
        if language not in self._source.tags:
            known = f"its tags are {one_of(self.tags)}" if self.tags else "it knows one direction only"
            raise InputError(f"this model has no tag for `{language}`: {known}{did_you_mean(language, self.tags)}")
        other = copy(self)
        other.to = language
        return other

    def for_corpus(self, corpus: Corpus) -> Tokenizer:
        """The tokenizer for the languages of a corpus."""
        return self if corpus.to is None else self.toward(corpus.to)

    def card(self, about: About) -> About:
        """The card for the target language of this tokenizer."""
        return about if self.to is None else about.toward(self.to, self.tags)

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self._source.encode(texts)
        if self.to is None:
            return encoded
        first = self._source.tags[self.to]
        return [[first, *ids] if ids else ids for ids in encoded]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        return self._target.encode(texts)

    def encode_flat(self, pairs: Sequence[Pair], dtype: np.dtype[np.unsignedinteger]) -> tuple[Flat, Flat]:
        """What `encode_source` and `encode_target` yield of many pairs without an empty side, end to end."""
        (src, src_lengths), target = (
            side.encode_flat([pair[place] for pair in pairs], dtype)
            for place, side in enumerate((self._source, self._target))
        )
        if self.to is not None:
            src = np.insert(src, np.cumsum(src_lengths) - src_lengths, self._source.tags[self.to])
            src_lengths = src_lengths + 1
        return (src, src_lengths), target

    def decode_source(self, batch: Iterable[Sequence[int]]) -> list[str]:
        return [self._source.decode(ids) for ids in batch]

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        return [self._target.decode(ids) for ids in batch]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces of these ids to look at, spaces drawn as `▁`."""
        return self._source.readable(ids)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        return self._target.readable(ids)

    def unfamiliar(self, texts: Sequence[str]) -> list[str]:
        """The words of `texts` that training never met, each once; none where its words are not known."""
        join, found = self._source.join, dict[str, str]()
        for text in texts if self.words else ():
            for word in split_words(text.replace(join, "") if join else text):
                found.setdefault(word.casefold(), word)
        return [word for folded, word in found.items() if folded not in self.words]

    def save(self, folder: str | Path, small: bool = False) -> None:
        """Write `tokenizer.json`, or `tokenizer.src.json` and `tokenizer.tgt.json`, and the words met in training.

        `small`: without a line break and compressed, to files whose names end in `.xz` as well.
        """
        texts = {name: side.rust.to_str(pretty=not small) for name, side in self._files()}
        if self.words:
            texts[WORDS] = "\n".join(sorted(self.words))
        for name, text in texts.items():
            data = f"{text}\n".encode()
            (Path(folder) / f"{name}{SMALL if small else ''}").write_bytes(lzma.compress(data) if small else data)

    @classmethod
    def load(cls, folder: str | Path) -> Tokenizer:
        folder = Path(folder)
        words: frozenset[str] = frozenset()  # without them it translates all the same
        with suppress(OSError, UnicodeDecodeError, lzma.LZMAError):
            words = frozenset(_read(folder / WORDS).split())
        if (joint := _load(folder / "tokenizer.json")) is not None:
            return cls(joint, None, words)
        source, target = _load(folder / "tokenizer.src.json"), _load(folder / "tokenizer.tgt.json")
        if source is None:
            raise DataError(f"{folder} holds no tokenizer.json (or tokenizer.src.json); is it a model folder?")
        if target is None:
            raise DataError(f"{folder} holds tokenizer.src.json and no tokenizer.tgt.json, the other half")
        return cls(source, target, words)

    def fingerprint(self) -> str:
        """The same for tokenizers that cut text the same way."""
        digest = hashlib.sha256()
        for name, side in self._files():
            digest.update(f"{name}\n{side.rust.to_str()}\n".encode())
        return digest.hexdigest()

    def _files(self) -> list[tuple[str, Vocabulary]]:
        if self.joint:
            return [("tokenizer.json", self._source)]
        return [("tokenizer.src.json", self._source), ("tokenizer.tgt.json", self._target)]


def _read(path: Path) -> str:
    """The text of a file, or of its compressed form where it has no other."""
    small = path.with_name(path.name + SMALL)
    data = lzma.decompress(small.read_bytes()) if small.exists() and not path.exists() else path.read_bytes()
    return data.decode("utf-8")


def _load(path: Path) -> Vocabulary | None:
    """The vocabulary in a file; None where there is no such file."""
    try:
        with panics_as_errors():
            return Vocabulary(tokenizers.Tokenizer.from_str(_read(path)))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {why(error)}") from None
    except Exception as error:  # the library raises plain Exception
        raise DataError(f"{path} is not a tokenizer that can be used ({error}); copy it again") from None


Flat = tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]  # ids of texts end to end, and how many each has

CACHED_WORDS = 1 << 18
CACHED_LENGTH = 24
SHARED_WORDS = 16  # from which on Rust's threads share them: to call these costs more than a few words
_SURROGATE = re.compile("[\ud800-\udfff]")
_VISIBLE = str.maketrans({" ": "▁", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


class Vocabulary:
    """One vocabulary: the Rust tokenizer and what its pieces stand for."""

    def __init__(self, rust: tokenizers.Tokenizer) -> None:
        self.rust = rust
        vocabulary: dict[str, int] = rust.get_vocab()
        self.pieces = _pieces_by_id(vocabulary)  # checks the ids first: with a gap in them, `to_str` takes gigabytes
        self.size = len(self.pieces)
        self.words = isinstance(rust.model, tokenizers.models.WordLevel)
        self.join = _join_marker(json.loads(rust.to_str())) if self.words else ""
        self.alphabet = frozenset(piece for piece in vocabulary if len(piece) == 1)
        spelt = {piece: bytes([byte]) for byte, piece in enumerate(BYTES)}
        found = {match[1]: id for id, piece in enumerate(self.pieces) if (match := TAG.fullmatch(piece))}
        self.tags = dict(sorted(found.items()))
        silent = {PAD, START, END, *(id for id, piece in enumerate(self.pieces) if SPECIAL.fullmatch(piece))}
        self.bytes = [b"" if id in silent else spelt.get(p, p.encode()) for id, p in enumerate(self.pieces)]
        self.silent = silent
        # No piece crosses from a character to a following space, so a text is the chain of its space-separated words,
        # and remembering the frequent ones spares most of the work. An empty word is a monolingual space.
        space, _ = self._encode_words([" ", "\uffff"])  # the second unknown: the library fails here, or never
        self.known: dict[str, list[int]] = {"": [] if self.words else space[:1]}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        split = [text.split(" ") if text else [] for text in texts]
        table = self._table(set().union(*split))
        return [list(chain.from_iterable(map(table.__getitem__, words))) for words in split]

    def encode_flat(self, texts: Sequence[str], dtype: np.dtype[np.unsignedinteger]) -> Flat:
        """The same end to end, for many texts, none of them empty: no list is made for any of them."""
        words = " ".join(texts).split(" ")
        table = self._table(set(words))
        pieces = list(map(table.__getitem__, words))
        sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
        counts = np.fromiter((text.count(" ") for text in texts), np.int64, len(texts)) + 1
        lengths = np.add.reduceat(sizes, np.cumsum(counts) - counts) if len(counts) else counts
        return np.fromiter(chain.from_iterable(pieces), dtype, int(lengths.sum())), lengths

    def _table(self, met: set[str]) -> dict[str, list[int]]:
        """The ids of these words."""
        known = self.known
        unseen = [word for word in met if word not in known]
        fresh = dict(zip(unseen, self._encode_words(unseen), strict=True))
        if self.words:  # one that spells a special piece is unknown
            fresh = {word: [UNK if id in self.silent else id for id in ids] for word, ids in fresh.items()}
        table = fresh | {word: known[word] for word in met if word not in fresh}
        if len(known) < CACHED_WORDS:
            known.update((word, ids) for word, ids in fresh.items() if len(word) <= CACHED_LENGTH)
        return table

    def _encode_words(self, words: list[str]) -> list[list[int]]:
        try:
            return self._encode_clean(words)
        except (TypeError, UnicodeEncodeError):  # half of a surrogate pair: no text, and unknown to Rust
            return self._encode_clean([_SURROGATE.sub("\ufffd", word) for word in words])

    def _encode_clean(self, words: list[str]) -> list[list[int]]:
        if len(words) < SHARED_WORDS:
            return [self.rust.encode(word, add_special_tokens=False).ids for word in words]
        return [encoding.ids for encoding in self.rust.encode_batch_fast(words, add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        self._check(ids)
        if self.words:
            text = " ".join(self.pieces[id] for id in ids if id not in self.silent)
            return (text + " ").replace(self.join, "").removesuffix(" ") if self.join else text
        return b"".join(self.bytes[id] for id in ids).decode("utf-8", "replace").removeprefix(" ")

    def readable(self, ids: Sequence[int]) -> list[str]:
        self._check(ids)
        return [self.pieces[id].translate(_VISIBLE) for id in ids]

    def _check(self, ids: Sequence[int]) -> None:
        if len(ids) and not 0 <= min(ids) <= max(ids) < self.size:
            raise InputError(
                f"ids must lie in 0..{self.size - 1}, the size of this vocabulary; got {min(ids)}..{max(ids)}"
            )


def _pieces_by_id(vocabulary: dict[str, int]) -> list[str]:
    """The piece of each id. The special pieces are the first, and only the unknown one need be named."""
    named = {id: piece for piece, id in vocabulary.items()}
    pieces = dict(enumerate(SPECIALS)) | named
    if vocabulary.get(SPECIALS[UNK]) != UNK or any(pieces[id] != piece for id, piece in enumerate(SPECIALS)):
        raise ValueError(f"its ids 0 to {UNK} must be {one_of(SPECIALS)}, the last of them named")
    if len(named) < len(vocabulary) or len(pieces) <= max(pieces):
        raise ValueError(f"two of its pieces have one id, or an id up to the highest, {max(pieces)}, is left out")
    return [pieces[id] for id in range(len(pieces))]


def _join_marker(form: dict[str, object]) -> str:
    decoder = form.get("decoder")
    for step in decoder.get("decoders", []) if isinstance(decoder, dict) else []:
        if step["type"] == "Replace" and "String" in step["pattern"]:
            return str(step["pattern"]["String"])
    return ""


class TargetDecoder(Protocol):
    """What makes text of ids."""

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]: ...


def stream_decode(tokenizer: TargetDecoder, tokens: Iterable[int]) -> Iterator[str]:
    """The text of a growing target, each letter as soon as no later token can change it."""
    ids: list[int] = []
    text = shown = ""
    for token in tokens:
        ids.append(token)
        (text,) = tokenizer.decode_target([ids])
        # A letter whose bytes have not all come yet reads as the replacement character.
        if len(text) > len(shown) and not text.endswith("\ufffd"):
            yield text[len(shown) :]
            shown = text
    if len(text) > len(shown):
        yield text[len(shown) :]
