"""The text side of M2M100, NLLB and mBART folders: one SentencePiece model, and a token for every language.

The source says by such a token which language it is in, and every target begins with that of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from glassformer.common.errors import InputError, WeightsError, one_of
from glassformer.common.files import read_json
from glassformer.data import About
from glassformer.model import EncoderDecoder
from glassformer.weights.pretrained import language_codes
from glassformer.weights.pretrained.family import Settings
from glassformer.weights.pretrained.languages import language, pick
from glassformer.weights.pretrained.loader import load_model, read_config
from glassformer.weights.pretrained.marian_text import SURROGATE, UNKNOWN, read_pieces
from glassformer.weights.pretrained.plain_text import WHOLE, read_rules

KINDS = ("m2m_100", "mbart")
PIECES = "sentencepiece.bpe.model"
SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, UNKNOWN: 3}  # before the pieces, where no file numbers these
CODE = re.compile(r"(?:__)?([a-z]{2,3}(?:_[A-Z][A-Za-z]{1,3})?)(?:__)?")


class Cutter(Protocol):
    """Text to ids and back, without a word on languages."""

    names: list[str]  # of the ids

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: list[int]) -> str: ...


class ByPieces:
    """By a SentencePiece model, whose pieces are numbered anew."""

    def __init__(self, processor: Any, numbers: dict[str, int]) -> None:
        self._processor, self._numbers = processor, numbers
        self.names = sorted(numbers, key=numbers.__getitem__)

    def encode(self, text: str) -> list[int]:
        unknown = self._numbers[UNKNOWN]
        return [self._numbers.get(piece, unknown) for piece in self._processor.encode(text, out_type=str)]

    def decode(self, ids: list[int]) -> str:
        return str(self._processor.decode_pieces([self.names[id] for id in ids]))


class ByRules:
    """By a tokenizer.json, which holds the same rules written out."""

    def __init__(self, path: Path) -> None:
        self._rust = read_rules(path)
        self._rust.encode_special_tokens = True  # a mark that a text spells out is text
        self.names = [self._rust.id_to_token(id) or UNKNOWN for id in range(self._rust.get_vocab_size())]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._rust.encode_special_tokens = True  # which its pickle forgets

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._rust.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[int]) -> str:
        return str(self._rust.decode(ids, skip_special_tokens=False))


class LanguageText:
    """Text to ids and back, from the language `source` into the language `to`, as Hugging Face's tokenizers do it."""

    def __init__(
        self, cutter: Cutter, languages: dict[str, int], source: str, to: str, *, source_first: bool, start_says: bool
    ) -> None:
        self._cutter, self._languages = cutter, languages
        self.source, self.to = source, to
        self._source_first = source_first  # or last, after the end mark
        self._start_says = start_says  # the language: its token is what the decoder starts from
        self._aside = {*languages.values(), *SPECIAL.values()}
        self._aside |= {id for id, name in enumerate(cutter.names) if name == "<mask>"}
        self._names = dict(enumerate(cutter.names)) | {id: code for code, id in languages.items()}

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self._languages)

    @property
    def start(self) -> int | None:
        """What the decoder starts from, where that says the language."""
        return self._languages[self.to] if self._start_says else None

    def toward(self, language: str) -> LanguageText:
        """The same into another language."""
        to = pick(language, self.tags)
        if self._start_says and to != self.to:
            raise InputError(
                f"this model is told its language before it starts; load it again with to={to!r} for another"
            )
        other = copy(self)
        other.to = to
        return other

    def between(self, source: str, to: str) -> LanguageText:
        """The same from another language into another."""
        other = self.toward(to)
        other.source = pick(source, self.tags)
        return other

    def card(self, about: About) -> About:
        """What the model is for, its languages by their short codes, as all else here calls them."""
        return replace(about, source=language(self.source).short, target=language(self.to).short)

    def check_size(self, size: int) -> None:
        if (highest := max(self._names)) >= size:
            raise WeightsError(
                f"the vocabulary has ids up to {highest}, but the model only 0 to {size - 1}; do the tokenizer's files "
                f"and config.json belong together?"
            )

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        own, end = [self._languages[self.source]], [SPECIAL["</s>"]]
        if self._source_first:
            return [[*own, *self._encode(text), *end] for text in texts]
        return [[*self._encode(text), *end, *own] for text in texts]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without the end mark, so that a target can be continued; the language's first, unless the start says."""
        first = [] if self._start_says else [self._languages[self.to]]
        return [[*first, *self._encode(text)] for text in texts]

    def _encode(self, text: str) -> list[int]:
        return self._cutter.encode(SURROGATE.sub("\ufffd", text))

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        kept = ([id for id in ids if id not in self._aside and id < len(self._cutter.names)] for ids in batch)
        return [self._cutter.decode(ids).replace("▁", " ").strip() for ids in kept]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._names.get(id, UNKNOWN) for id in ids]

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        return self.source_pieces(ids)

    @classmethod
    def load(cls, folder: Path, settings: Settings, source: str | None = None, to: str | None = None) -> LanguageText:
        told = read_json(folder / "tokenizer_config.json") or {}
        kind = kind_of(told, settings, folder)
        cutter = cutter_of(folder, numbered=kind == "m2m100")
        languages = numbered_languages(folder, told) or usual_languages(kind, told, settings, cutter)
        start_says = kind == "mbart"
        ways = [read_json(folder / "generation_config.json") or {}, settings.values]
        keys = ("decoder_start_token_id",) if start_says else ("forced_bos_token_id",)
        own = {id: code for code, id in languages.items()}
        written = next((own[one[key]] for one in ways for key in keys if one.get(key) in own), None)
        source = pick_told(folder, "source", source or told.get("src_lang"), languages)
        to = pick_told(folder, "to", to or told.get("tgt_lang") or written, languages)
        first = kind != "mbart" and not told.get("legacy_behaviour")
        return cls(cutter, languages, source, to, source_first=first, start_says=start_says)


def pick_told(folder: Path, option: str, given: str | None, languages: dict[str, int]) -> str:
    if given is None:
        what = "from" if option == "source" else "into"
        usual = next((code for code in languages if language(code).short == ("en" if what == "from" else "de")), None)
        example = usual or next(iter(languages))
        raise InputError(f"{folder} knows {len(languages)} languages; say {what} which: {option}={example!r}")
    return pick(given, list(languages))


def kind_of(told: dict[str, Any], settings: Settings, folder: Path) -> str:
    """Which of the published tokenizers a folder is for."""
    named = str(told.get("tokenizer_class") or "").removesuffix("Fast")
    kinds = {
        "NllbTokenizer": "nllb",
        "M2M100Tokenizer": "m2m100",
        "MBartTokenizer": "mbart",
        "MBart50Tokenizer": "mbart50",
    }
    if named in kinds:
        return kinds[named]
    if settings.values.get("model_type") == "mbart":
        return "mbart50" if settings.need("vocab_size") % 1000 == 54 else "mbart"  # 250,054 and 250,027 as published
    return "m2m100" if (folder / "vocab.json").is_file() else "nllb"


def cutter_of(folder: Path, numbered: bool) -> Cutter:
    """By the SentencePiece model, where it is and can be read, else by tokenizer.json."""
    path, whole = folder / PIECES, folder / WHOLE
    if not path.is_file() and not whole.is_file():
        raise WeightsError(f"{folder} holds neither {PIECES} nor {WHOLE}: the model is there, but not its tokenizer")
    if whole.is_file() and not (path.is_file() and find_spec("sentencepiece")):
        return ByRules(whole)
    processor: Any = read_pieces(path)
    if numbered:
        numbers = read_json(folder / "vocab.json")
        if numbers is None:
            raise WeightsError(f"{folder / 'vocab.json'} is missing: it numbers the pieces of {PIECES}")
        lacking = [mark for mark in SPECIAL if numbers.get(mark) != SPECIAL[mark]]
        if lacking or sorted(numbers.values()) != list(range(len(numbers))):
            raise WeightsError(
                f"{folder / 'vocab.json'} does not number pieces from {one_of(SPECIAL)} on; copy it again"
            )
        return ByPieces(processor, numbers)
    pieces = [processor.id_to_piece(id) for id in range(processor.get_piece_size())]
    if pieces[:3] != [UNKNOWN, "<s>", "</s>"]:
        raise WeightsError(
            f"{path} begins with {one_of(pieces[:3])}, not with `<unk>`, `<s>`, `</s>`: not of this family"
        )
    return ByPieces(processor, SPECIAL | {piece: id + 1 for id, piece in enumerate(pieces) if id > 2})


def numbered_languages(folder: Path, told: dict[str, Any]) -> dict[str, int]:
    """The languages' tokens as the folder's own files number them, if any does."""
    added = [(int(id), one.get("content")) for id, one in (told.get("added_tokens_decoder") or {}).items()]
    if not added and (folder / WHOLE).is_file():
        listed = (read_json(folder / WHOLE) or {}).get("added_tokens") or []
        added = [(one["id"], one["content"]) for one in listed]
    found = ((CODE.fullmatch(content or ""), id) for id, content in sorted(added))
    return {code[1]: id for code, id in found if code}


def usual_languages(kind: str, told: dict[str, Any], settings: Settings, cutter: Cutter) -> dict[str, int]:
    """The languages' tokens behind the pieces, in the order of those who published the model."""
    order = {"nllb": language_codes.NLLB, "mbart": language_codes.MBART25, "mbart50": language_codes.MBART50}
    codes = order.get(kind, language_codes.M2M100)
    if told.get("language_codes") == "wmt21":
        codes = language_codes.WMT21
    spelt = {f"__{code}__" if kind == "m2m100" else code: code for code in codes}
    own = {spelt[name]: id for id, name in enumerate(cutter.names) if name in spelt}
    return own or {code: len(cutter.names) + i for i, code in enumerate(codes)}


def load_languages(folder: Path, source: str | None, to: str | None) -> tuple[EncoderDecoder, LanguageText]:
    """The model and the text side of a Hugging Face folder, ready to translate."""
    text = LanguageText.load(folder, read_config(folder), source, to)
    model = load_model(folder)
    assert isinstance(model, EncoderDecoder)
    text.check_size(model.config.vocab_size)
    if text.start is not None:
        model.config = replace(model.config, start_id=text.start)
    return model, text
