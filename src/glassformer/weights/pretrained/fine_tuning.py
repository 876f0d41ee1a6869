"""A published model that is trained on: its own tokenizer, or its labels and the scale of its images, as training
reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.common.errors import ConfigError, WeightsError
from glassformer.common.files import read_json
from glassformer.data import IdMap, PairTokenizer, Tokenizer
from glassformer.data.corpus import Corpus, Pair
from glassformer.data.labelled import ImageTokenizer, Labels
from glassformer.data.tokenizer import Flat
from glassformer.data.vocabulary import MASK, PixelScaling
from glassformer.model import DecoderOnly, EncoderDecoder
from glassformer.weights.hub import TEXT_FILES
from glassformer.weights.pretrained.loader import FAMILIES, load_tokenizer, read_config
from glassformer.weights.pretrained.multilingual import MULTILINGUAL, MultilingualTokenizer, pick_language
from glassformer.weights.pretrained.tokenizer import MarianTokenizer

FILES = ("config.json", *TEXT_FILES)  # beside its weights; a run keeps them, and ends as a folder of the same kind


def is_published(folder: Path) -> bool:
    """Whether a folder holds somebody else's model: its config.json names a family."""
    try:
        return "model_type" in (read_json(folder / "config.json") or {})
    except WeightsError:
        return False


def languages_of(corpus: Corpus, folder: Path) -> tuple[str, str]:
    """The languages of a corpus, for a model that asks for them."""
    if corpus.monolingual:
        raise ConfigError(
            f"{folder} is told the languages of each sentence; it learns from pairs, objective = 'translate'"
        )
    if corpus.from_ is None or corpus.to is None:
        raise ConfigError(
            f"{folder} is told the languages of each sentence; give the corpus {corpus.name} both, such as from = 'en' "
            f"and to = 'de'"
        )
    return corpus.from_, corpus.to


def update_json(path: Path, values: Mapping[str, object]) -> None:
    """Write values into a file of settings, in the place of those that it has."""
    path.write_text(
        json.dumps((read_json(path) or {}) | dict(values), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


class PublishedTokenizer(Tokenizer):
    """A published tokenizer. What it encodes for a store is numbered as our own vocabularies are, so that padding,
    start and end are theirs; `input_map` leads back to the model's ids.

    A tokenizer of many languages takes those of a corpus, and writes them to the folder that it is saved in. mBART's
    sentences end with their language, behind the end mark; a target begins with it, too.
    """

    input_map: IdMap
    tags: tuple[str, ...] = ()
    placeholders: str = ""

    def __init__(self, folder: Path, corpus: Corpus | None = None) -> None:
        settings = read_config(folder)
        kind = settings.need("model_type")
        family = FAMILIES[kind](settings)
        config = family.config(settings, True)  # its ids are those of an untied head as well
        self.folder, self.joint, self.words, self.to = folder, config.src_vocab_size is None, frozenset(), None
        languages = () if corpus is None or kind not in MULTILINGUAL else languages_of(corpus, folder)
        self.text: PairTokenizer = load_tokenizer(folder, settings, *languages)
        self.sizes = {name: getattr(config, name) for name in ("vocab_size", "src_vocab_size")}
        self.sizes |= {name: getattr(config, name) for name in ("pad_id", "start_id", "end_id")}
        self._pair, (around,) = family.model is EncoderDecoder, self.text.encode_source([""])
        start, end = config.start_id, config.end_id
        if family.model not in (EncoderDecoder, DecoderOnly) and around:  # the marks that stand around a text
            start, end = around[0], around[-1]
        if end is None:
            raise ConfigError(f"{folder}: its config.json names no end of a text (eos_token_id), which training needs")
        if isinstance(self.text, MultilingualTokenizer) and self.text.start is not None:
            start = end = self.sizes["start_id"] = self.text.start
        pad = config.pad_id
        self.input_map = IdMap(0 if pad is None else pad, end if start is None else start, end)

    @property
    def src_size(self) -> int:
        return int(self.sizes["src_vocab_size"] or self.tgt_size)

    @property
    def tgt_size(self) -> int:
        return int(self.sizes["vocab_size"] or 0)

    @property
    def pieces(self) -> tuple[dict[int, str], dict[int, str]]:
        """By the numbers of a store; a gap is called as our own vocabularies call it."""
        source, target = (
            {id + self.input_map.offset: piece for id, piece in enumerate(name(range(size)))}
            for name, size in ((self.text.source_pieces, self.src_size), (self.text.target_pieces, self.tgt_size))
        )
        if (mask := getattr(self.text, "mask_id", None)) is not None:
            target[mask + self.input_map.offset] = MASK
        return source, target

    def for_corpus(self, corpus: Corpus) -> Tokenizer:
        if not isinstance(self.text, MultilingualTokenizer):
            return super().for_corpus(corpus)
        other, languages = copy(self), self.text
        source, to = languages_of(corpus, self.folder)
        if languages.start is not None and pick_language(to, languages.tags) != languages.to:
            raise ConfigError(
                f"{corpus.name} has to = {to!r}, and {self.folder} starts every target from its language, which is "
                f"{languages.to} in this run; train it for one at a time"
            )
        other.text = languages.between(source, to)
        other.source, other.to = other.text.source, other.text.to
        return other

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return self.text.encode_source(texts)

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Without the end; of a pair, with the mark that the family puts first, if it puts one."""
        if not self._pair or isinstance(self.text, MarianTokenizer | MultilingualTokenizer):
            return self.text.encode_target(texts)
        marked = self.text.encode_source(texts)
        return [ids[:-1] if ids and ids[-1] == self.input_map.end else ids for ids in marked]

    def encode_flat(self, pairs: Sequence[Pair], dtype: np.dtype[np.unsignedinteger]) -> tuple[Flat, Flat]:
        """What stands alone, without a source, has no marks: the objective puts its own around it."""
        sources, texts = [source for source, _ in pairs], [target for _, target in pairs]
        if any(sources):
            sides = (self.encode_source(sources), self.encode_target(texts))
        else:
            sides = ([[]] * len(pairs), self.text.encode_target(texts))
        if isinstance(self.text, MultilingualTokenizer) and self.text.start is not None:
            sides = (sides[0], [[*ids, self.sizes["end_id"]] for ids in sides[1]])
        source, target = (
            (
                np.array([id + self.input_map.offset for ids in side for id in ids], dtype=dtype),
                np.array([len(ids) for ids in side], dtype=np.int64),
            )
            for side in sides
        )
        return source, target

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        return self.text.decode_target(batch)

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return self.text.source_pieces(ids)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        return self.text.target_pieces(ids)

    def save(self, folder: str | Path, small: bool = False) -> None:
        for file in self.files:
            (Path(folder) / file.name).write_bytes(file.read_bytes())
        if isinstance(self.text, MultilingualTokenizer):
            changes = {"src_lang": self.text.source, "tgt_lang": self.text.to}
            update_json(Path(folder) / "tokenizer_config.json", changes)
            for name in ("config.json", "generation_config.json"):
                if self.text.start is not None and (self.folder / name).is_file():
                    update_json(Path(folder) / name, {"decoder_start_token_id": self.text.start})

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(f"{file.name}\n".encode() + file.read_bytes())
        return digest.hexdigest()

    @property
    def files(self) -> list[Path]:
        return [file for file in (self.folder / name for name in FILES) if file.is_file()]


SETTINGS, SIGHT = "config.json", "preprocessor_config.json"
WITH_HEAD = "ViTForImageClassification"


def shades(folder: Path, channels: int) -> PixelScaling | None:
    """How a folder says that pixels become what its model reads; None where they are read as they are."""
    values = read_json(folder / SIGHT) or {}
    if not values.get("do_normalize", bool(values)):
        return None
    mean, spread = (values.get(name) or [0.5] * channels for name in ("image_mean", "image_std"))
    return PixelScaling(tuple(map(float, mean)), tuple(map(float, spread)))


def named_labels(folder: Path) -> tuple[str, ...]:
    """The names that a published model's settings give its labels."""
    named: Any = (read_json(folder / SETTINGS) or {}).get("id2label")
    numbers = sorted(named, key=lambda number: (len(number), number)) if isinstance(named, dict) else ()
    return tuple(str(named[number]) for number in numbers)


class PublishedImages(ImageTokenizer):
    """Images as a published model reads them; its head has a bias, whatever a recipe says."""

    def __init__(self, folder: Path, labels: Labels) -> None:
        super().__init__(labels)
        assert labels.image is not None
        self.input_map = shades(folder, labels.image[0])

    def settings(self, options: dict[str, Any]) -> dict[str, Any]:
        return super().settings(options) | {"output_bias": True}


def copy_config(start: Path, folder: Path, labels: Labels) -> None:
    """Copy a published model's settings to the folder of a run, where these are the names of its labels."""
    if not is_published(start) or is_published(folder):
        return
    if (start / SIGHT).is_file():
        (folder / SIGHT).write_bytes((start / SIGHT).read_bytes())
    names = {} if labels.names == named_labels(start) else dict(enumerate(labels.names))
    labels_json: dict[str, Any] = {"id2label": names, "label2id": {name: number for number, name in names.items()}}
    partial = folder / f".{SETTINGS}"
    partial.write_bytes((start / SETTINGS).read_bytes())
    update_json(partial, {"architectures": [WITH_HEAD]} | (labels_json if names else {}))
    partial.rename(folder / SETTINGS)
