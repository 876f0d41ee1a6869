"""The tokenizers of published models: Marian's two SentencePiece models, and the tokenizer.json of all others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokenizers

from glassformer.common.errors import WeightsError, panics_as_errors
from glassformer.common.files import read_json

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

UNKNOWN, END, PADDING = "<unk>", "</s>", "<pad>"
_LANGUAGE = re.compile(r">>.*?<<", re.DOTALL)  # before a text for a model of many target languages: ">>fra<<"
SURROGATE = re.compile("[\ud800-\udfff]")


class MarianTokenizer:
    """Text to ids and back as Hugging Face's MarianTokenizer does it; a source ends with `</s>`.

    A special mark that a text spells out, such as "</s>", is text here and not the mark.
    """

    def __init__(
        self,
        source: SentencePieceProcessor,
        target: SentencePieceProcessor,
        vocabulary: dict[str, int],
        target_vocabulary: dict[str, int],
    ) -> None:
        self._source, self._target = source, target
        self._ids, self._target_ids = vocabulary, target_vocabulary
        self._end = vocabulary[END]
        self._source_pieces = {id: piece for piece, id in vocabulary.items()}
        self._target_pieces = {id: piece for piece, id in target_vocabulary.items()}

    @classmethod
    def load(cls, folder: Path, source_size: int, target_size: int, shared: bool = True) -> MarianTokenizer:
        """That of a model with vocabularies of these sizes, `shared` by both sides or one in `target_vocab.json`."""
        vocabulary = _read_vocabulary(folder / "vocab.json")
        apart = folder / "target_vocab.json"
        target = _read_vocabulary(apart) if not shared and apart.is_file() else vocabulary
        for ids, size in ((vocabulary, source_size), (target, target_size)):
            check_size(max(ids.values()), size, "vocab.json")
        return cls(read_pieces(folder / "source.spm"), read_pieces(folder / "target.spm"), vocabulary, target)

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [[*self._encode(text, self._source, self._ids), self._end] for text in texts]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without the end mark, so that a target can be continued."""
        return [self._encode(text, self._target, self._target_ids) for text in texts]

    def _encode(self, text: str, codec: SentencePieceProcessor, ids: dict[str, int]) -> list[int]:
        text = SURROGATE.sub("\ufffd", text)  # half of a pair is no text, and SentencePiece refuses it
        language = _LANGUAGE.match(text)
        code = [language.group()] if language else []
        pieces = codec.encode(text[language.end() :] if language else text, out_type=str)
        return [ids.get(piece, ids[UNKNOWN]) for piece in [*code, *pieces]]

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        marks = (UNKNOWN, END, PADDING, "<s>")
        kept = ([p for p in self.target_pieces(ids) if p not in marks and not _LANGUAGE.fullmatch(p)] for ids in batch)
        return [str(self._target.decode_pieces(pieces)).replace("▁", " ").strip() for pieces in kept]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._source_pieces.get(id, UNKNOWN) for id in ids]

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._target_pieces.get(id, UNKNOWN) for id in ids]


def check_size(highest: int, size: int, file: str) -> None:
    """Refuse a vocabulary with more ids than its model has places for."""
    if highest >= size:
        raise WeightsError(
            f"the vocabulary has ids up to {highest}, but the model only 0 to {size - 1}; do {file} and config.json "
            f"belong together?"
        )


def _read_vocabulary(path: Path) -> dict[str, int]:
    vocabulary = read_json(path)
    if vocabulary is None:
        raise WeightsError(_missing(path))
    if not all(type(id) is int and id >= 0 for id in vocabulary.values()):
        raise WeightsError(f"{path} must be a JSON object that gives every piece its id, a whole number from 0 on")
    for piece in (UNKNOWN, END):
        if piece not in vocabulary:
            raise WeightsError(f"{path} has no `{piece}`, which every Marian vocabulary holds; copy it again")
    return vocabulary


def read_pieces(path: Path) -> SentencePieceProcessor:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise WeightsError(f"{path} needs the library sentencepiece: pip install sentencepiece") from None
    if not path.is_file():
        raise WeightsError(_missing(path))
    try:
        return SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError):
        raise WeightsError(f"{path} is not a SentencePiece model, or is damaged; copy it again") from None


def _missing(path: Path) -> str:
    return f"{path} is missing: a Marian folder holds source.spm, target.spm and vocab.json beside its weights"


TOKENIZER_JSON = "tokenizer.json"
MASKS = ("[MASK]", "<mask>")  # as the families write a gap
INSIDE = "##"  # before a piece that goes on a word, as BERT's are written


def read_tokenizer_json(path: Path) -> tokenizers.Tokenizer:
    try:
        with panics_as_errors():
            return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise WeightsError(f"{path} is not a tokenizer of the library `tokenizers`: {error}") from None


class FastTokenizer:
    """Text to ids and back as the library `tokenizers` reads the folder's file; what a text spells as one of its marks,
    such as "[SEP]", is that mark. Sources come with the marks that the family puts around them."""

    def __init__(self, rust: tokenizers.Tokenizer, mask: int | None = None) -> None:
        rust.no_padding()
        rust.no_truncation()
        self._rust, self.mask_id = rust, mask

    @classmethod
    def load(cls, folder: Path, size: int) -> FastTokenizer:
        """That of a model with a vocabulary of `size`."""
        path = folder / TOKENIZER_JSON
        if not path.is_file():
            raise WeightsError(
                f"{folder} holds no {TOKENIZER_JSON}, so its model reads ids alone; write one with transformers: "
                f"AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)"
            )
        rust = read_tokenizer_json(path)
        check_size(max(rust.get_vocab().values(), default=-1), size, TOKENIZER_JSON)
        named: Any = (read_json(folder / "tokenizer_config.json") or {}).get("mask_token")
        name = named.get("content") if isinstance(named, dict) else named
        ids = [rust.token_to_id(gap) for gap in (*([name] if isinstance(name, str) else []), *MASKS)]
        return cls(rust, next((id for id in ids if id is not None), None))

    @property
    def gap(self) -> str:
        """How a text says that something is missing there."""
        return MASKS[0] if self.mask_id is None else str(self._rust.id_to_token(self.mask_id))

    def encode_gaps(self, texts: Sequence[str]) -> list[list[int]]:
        """As `encode_source`, each gap, written "[MASK]" or as the family does, as its token."""
        return self.encode_source([text.replace(MASKS[0], self.gap) for text in texts])

    def filled(self, text: str, tokens: Sequence[int]) -> str:
        """The text, its gaps filled by these tokens one after the other; a piece of a word joins what is before it."""
        first, *rest = text.replace(MASKS[0], self.gap).split(self.gap)
        for token, after in zip(tokens, rest, strict=True):
            piece = str(self._rust.decode([token])).strip()
            inside = piece.startswith(INSIDE)
            first = (first.rstrip(" ") if inside else first) + piece.removeprefix(INSIDE) + after
        return first

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        return self.encode_source(texts, marked=False)

    def encode_source(self, texts: Sequence[str], marked: bool = True) -> list[list[int]]:
        whole = [SURROGATE.sub("\ufffd", text) for text in texts]  # half of a pair is no text
        return [one.ids for one in self._rust.encode_batch(whole, add_special_tokens=marked)]

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        return [str(self._rust.decode(list(ids), skip_special_tokens=True)) for ids in batch]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """To look at: a space is drawn as everywhere here, not as a family spells it."""
        return [(self._rust.id_to_token(id) or UNKNOWN).replace("Ġ", "▁").replace("Ċ", "\\n") for id in ids]

    target_pieces = source_pieces
