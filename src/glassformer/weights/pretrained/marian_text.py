"""The text side of a Marian folder: two SentencePiece models cut text into pieces, a JSON table numbers them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from glassformer.common.errors import WeightsError
from glassformer.common.files import read_json
from glassformer.model import EncoderDecoder
from glassformer.weights.pretrained.loader import load_model, read_config

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

UNKNOWN, END, PADDING = "<unk>", "</s>", "<pad>"
_LANGUAGE = re.compile(r">>.*?<<", re.DOTALL)  # before a text for a model of many target languages: ">>fra<<"
SURROGATE = re.compile("[\ud800-\udfff]")


class MarianText:
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
    def load(cls, folder: str | Path, shared: bool = True) -> MarianText:
        """`shared`: source and target have one vocabulary; if not, `target_vocab.json` holds the target's."""
        folder = Path(folder)
        vocabulary = _read_vocabulary(folder / "vocab.json")
        apart = folder / "target_vocab.json"
        target = _read_vocabulary(apart) if not shared and apart.is_file() else vocabulary
        return cls(read_pieces(folder / "source.spm"), read_pieces(folder / "target.spm"), vocabulary, target)

    def check_sizes(self, source: int, target: int) -> None:
        """Whether a model with so many source and target ids has a place for every piece."""
        for pieces, size in ((self._source_pieces, source), (self._target_pieces, target)):
            if max(pieces) >= size:
                raise WeightsError(
                    f"the vocabulary has ids up to {max(pieces)}, but the model only 0 to {size - 1}; "
                    f"do vocab.json and config.json belong together?"
                )

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [[*self._encode(text, self._source, self._ids), self._end] for text in texts]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without the end mark, so that a target can be continued."""
        return [self._encode(text, self._target, self._target_ids) for text in texts]

    def _encode(self, text: str, cutter: SentencePieceProcessor, ids: dict[str, int]) -> list[int]:
        text = SURROGATE.sub("\ufffd", text)  # half of a pair is no text, and SentencePiece refuses it
        language = _LANGUAGE.match(text)
        code = [language.group()] if language else []
        pieces = cutter.encode(text[language.end() :] if language else text, out_type=str)
        return [ids.get(piece, ids[UNKNOWN]) for piece in [*code, *pieces]]

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        return [self._decode([self._target_pieces.get(id, UNKNOWN) for id in ids]) for ids in batch]

    def _decode(self, pieces: list[str]) -> str:
        kept = [piece for piece in pieces if piece not in (UNKNOWN, END, PADDING)]
        text: str = self._target.decode_pieces(kept)
        return text.replace("▁", " ").strip()

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._source_pieces.get(id, UNKNOWN) for id in ids]

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._target_pieces.get(id, UNKNOWN) for id in ids]


def load_marian(folder: Path) -> tuple[EncoderDecoder, MarianText]:
    """The model and the text side of a Hugging Face folder, ready to translate."""
    settings = read_config(folder)
    text = MarianText.load(folder, shared=bool(settings.get("share_encoder_decoder_embeddings", True)))
    model = load_model(folder)
    assert isinstance(model, EncoderDecoder)
    text.check_sizes(model.config.encoder.vocab_size, model.config.vocab_size)
    if model.head.bias is not None and model.config.pad_id is not None:
        with torch.no_grad():  # padding is this family's start mark and never meant as output
            model.head.bias[model.config.pad_id] = -1e9
    return model, text


def _read_vocabulary(path: Path) -> dict[str, int]:
    vocabulary = read_json(path)
    if vocabulary is None:
        raise WeightsError(_missing(path))
    if not all(type(id) is int for id in vocabulary.values()):
        raise WeightsError(f"{path} must be a JSON object that gives every piece its id")
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
