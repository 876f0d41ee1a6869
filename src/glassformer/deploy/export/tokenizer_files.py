"""The text side of an export: the pieces by their ids, and the files of the tokenizer for the library `tokenizers`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import processors

from glassformer.common.files import write_text
from glassformer.data import PairTokenizer, Tokenizer
from glassformer.data.vocabulary import SPECIALS, UNK
from glassformer.deploy.export.formats import CheckFailed
from glassformer.deploy.export.inputs import Ids, LoadedModel, Sample

JOINT, SOURCE, TARGET = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"


def vocabularies(loaded: LoadedModel) -> tuple[list[str], list[str]]:
    """A unique name for every id of the source and of the target."""
    config, tokenizer = loaded.model.config, loaded.tokenizer
    pieces: tuple[dict[int, str], dict[int, str]] = ({}, {})
    if isinstance(tokenizer, Tokenizer):
        pieces = tokenizer.pieces
    elif tokenizer is not None:
        pieces = (
            dict(enumerate(tokenizer.source_pieces(range(config.encoder.vocab_size)))),
            dict(enumerate(tokenizer.target_pieces(range(config.vocab_size)))),
        )
    return unique_pieces(pieces[0], config.encoder.vocab_size), unique_pieces(pieces[1], config.vocab_size)


def unique_pieces(table: dict[int, str], size: int) -> list[str]:
    """Pieces by id; an id without a piece, or with that of an earlier id, is named by its number."""
    names: dict[str, int] = {}
    for id in range(size):
        piece = table.get(id, "")
        names[piece if piece and piece not in names else f"<id {id}>"] = id
    return list(names)


def decode_function(loaded: LoadedModel) -> Callable[[Ids], str]:
    """What makes text of target ids."""
    tokenizer = loaded.tokenizer
    return str if tokenizer is None else lambda ids: tokenizer.decode_target([ids])[0]


def write_tokenizer(loaded: LoadedModel, folder: Path) -> None:
    """The vocabulary's files. They put the tag of the language to write, if there is one, before every source."""
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
    """The files of a fast tokenizer of `transformers`; a separate one of the target is in a folder of its own."""
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
            if isinstance(vocabulary, dict):  # of whole words, none of which may be a special token
                vocabulary.update({piece: id for id, piece in enumerate(SPECIALS)})
            write_text(place / JOINT, json.dumps(form, ensure_ascii=False) + "\n")
            config = {
                "tokenizer_class": "PreTrainedTokenizerFast",
                **dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), SPECIALS, strict=True)),
                "split_special_tokens": True,  # a special token that a text contains is text
                "clean_up_tokenization_spaces": False,
                "model_input_names": ["input_ids", "attention_mask"],
                "model_max_length": loaded.model.config.max_length,
            }
            write_text(place / "tokenizer_config.json", json.dumps(config, indent=2) + "\n")


def check_text(loaded: LoadedModel, folder: Path, sample: Sample) -> dict[str, Any]:
    """Whether the files encode and decode the texts as the model's own tokenizer does."""
    if not isinstance(loaded.tokenizer, Tokenizer) or not sample.texts:
        return {}
    joint = loaded.tokenizer.joint
    source = tokenizers.Tokenizer.from_file(str(folder / (JOINT if joint else SOURCE)))
    target = source if joint else tokenizers.Tokenizer.from_file(str(folder / TARGET))
    return same_texts(loaded.tokenizer, sample, lambda text: source.encode(text).ids, target.decode)


def same_texts(
    own: PairTokenizer, sample: Sample, encode: Callable[[str], Ids], decode: Callable[[Ids], str]
) -> dict[str, Any]:
    """The figures of texts that are encoded and decoded as by the model's own tokenizer; else raises CheckFailed."""
    for text, expected in zip(sample.texts, sample.ids, strict=False):
        if (ids := encode(text)) != expected:
            raise CheckFailed(f"the tokenizer that was written cuts {text!r:.200} into {ids}, not into {expected}")
        ids = [id for id in own.encode_target([text])[0] if id != UNK]  # which is no text
        theirs, ours = decode(ids), own.decode_target([ids])[0]
        if theirs != ours:
            raise CheckFailed(f"the tokenizer that was written spells {ids} as {theirs!r:.200}, not {ours!r:.200}")
    return {"text": {"sentences": len(sample.texts), "equal": len(sample.texts)}}
