"""The text side of an export: the pieces by their ids, and the tokenizer's files as the library `tokenizers` reads
them, so that text in one place is text in the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import processors

from glassformer.common.files import write_text
from glassformer.data import PairTokenizer, Tokenizer
from glassformer.data.vocabulary import SPECIALS
from glassformer.deploy.export.formats import CheckFailed
from glassformer.deploy.export.inputs import LoadedModel, Sample

Ids = list[int]
JOINT, SOURCE, TARGET = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"


def pieces_of(loaded: LoadedModel) -> tuple[list[str], list[str]]:
    """A name for every id of the source and of the target, no two alike."""
    config, tokenizer = loaded.model.config, loaded.tokenizer
    known: tuple[dict[int, str], dict[int, str]] = ({}, {})
    if isinstance(tokenizer, Tokenizer):
        known = tokenizer.pieces
    elif tokenizer is not None:
        known = (
            dict(enumerate(tokenizer.source_pieces(range(config.encoder.vocab_size)))),
            dict(enumerate(tokenizer.target_pieces(range(config.vocab_size)))),
        )
    sizes = (config.encoder.vocab_size, config.vocab_size)
    source, target = (distinct(table, size) for table, size in zip(known, sizes, strict=True))
    return source, target


def distinct(table: dict[int, str], size: int) -> list[str]:
    """Pieces by id; what has none, or one that an earlier id has, is named by its number."""
    names: dict[str, int] = {}
    for id in range(size):
        piece = table.get(id, "")
        names[piece if piece and piece not in names else f"<id {id}>"] = id
    return list(names)


def spelling(loaded: LoadedModel) -> Callable[[Ids], str]:
    """Ids as a reader would want to see them."""
    tokenizer = loaded.tokenizer
    return str if tokenizer is None else lambda ids: tokenizer.decode_target([ids])[0]


def write_tokenizer(loaded: LoadedModel, folder: Path) -> None:
    """The vocabulary's files; what a source begins with, a tag of the language to write, is put there by the file."""
    if isinstance(loaded.tokenizer, Tokenizer):
        loaded.tokenizer.save(folder)
        (folder / "source_words.txt").unlink(missing_ok=True)
        if loaded.language is not None:
            file = folder / (JOINT if loaded.tokenizer.joint else SOURCE)
            rust = tokenizers.Tokenizer.from_file(str(file))
            tag = f"<2{loaded.language}>"
            rust.post_processor = processors.TemplateProcessing(
                f"{tag} $A", special_tokens=[(tag, rust.token_to_id(tag))]
            )
            rust.save(str(file))
    elif loaded.tokenizer is not None and loaded.folder is not None:
        for name in ("source.spm", "target.spm", "vocab.json", "target_vocab.json"):
            if (file := loaded.folder / name).is_file():
                (folder / name).write_bytes(file.read_bytes())


def write_fast_tokenizer(loaded: LoadedModel, folder: Path) -> None:
    """The files of a fast tokenizer of `transformers`; the target's in a folder of its own where it is another."""
    assert isinstance(loaded.tokenizer, Tokenizer)
    write_tokenizer(loaded, folder)
    if not loaded.tokenizer.joint:
        (folder / "target").mkdir()
        (folder / TARGET).rename(folder / "target" / JOINT)
        (folder / SOURCE).rename(folder / JOINT)
    for place in (folder, folder / "target"):
        if place.is_dir():
            form = json.loads((place / JOINT).read_text(encoding="utf-8"))
            vocabulary = form["model"]["vocab"]
            if isinstance(vocabulary, dict):  # of whole words, where no text may spell a mark
                vocabulary.update({piece: id for id, piece in enumerate(SPECIALS)})
            write_text(place / JOINT, json.dumps(form, ensure_ascii=False) + "\n")
            told = {
                "tokenizer_class": "PreTrainedTokenizerFast",
                **dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIALS, strict=True)),
                "split_special_tokens": True,  # a mark that a text spells out is text
                "clean_up_tokenization_spaces": False,
                "model_input_names": ["input_ids", "attention_mask"],
                "model_max_length": loaded.model.config.max_length,
            }
            write_text(place / "tokenizer_config.json", json.dumps(told, indent=2) + "\n")


def check_text(loaded: LoadedModel, folder: Path, sample: Sample) -> dict[str, Any]:
    """Whether the files cut the texts as the model's own tokenizer does, and put pieces together alike."""
    if not isinstance(loaded.tokenizer, Tokenizer) or not sample.texts:
        return {}
    joint = loaded.tokenizer.joint
    source = tokenizers.Tokenizer.from_file(str(folder / (JOINT if joint else SOURCE)))
    target = source if joint else tokenizers.Tokenizer.from_file(str(folder / TARGET))
    return same_texts(loaded.tokenizer, sample, lambda text: source.encode(text).ids, target.decode)


def same_texts(
    own: PairTokenizer, sample: Sample, read_by: Callable[[str], Ids], spelt_by: Callable[[Ids], str]
) -> dict[str, Any]:
    """The figures of texts that the files cut and put together as the model's own tokenizer; CheckFailed where not."""
    for text, ids in zip(sample.texts, sample.ids, strict=False):
        read = read_by(text)
        if read != ids:
            raise CheckFailed(f"the tokenizer that was written cuts {text!r:.200} into {read}, not into {ids}")
        written = own.encode_target([text])[0]
        again, ours = spelt_by(written), own.decode_target([written])[0]
        if again != ours:
            raise CheckFailed(f"the tokenizer that was written spells {written} as {again!r:.200}, not {ours!r:.200}")
    return {"text": {"sentences": len(sample.texts), "equal": len(sample.texts)}}
