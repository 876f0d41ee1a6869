"""What a page without a server has to know of its model beside the numbers: told once, when it is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from glassformer.data import Tokenizer
from glassformer.data.protect import PLACEHOLDERS
from glassformer.data.vocabulary import TAG
from glassformer.decode.engine import GROWTH, SLACK, STRIDE
from glassformer.explain.beam_tree import RULE, RUNNERS_UP
from glassformer.explain.cache_view import ROUNDING
from glassformer.explain.schematic import schematics
from glassformer.explain.traced import Trace
from glassformer.explain.weights import facts
from glassformer.explain.writing import TOP
from glassformer.model import ModelConfig
from glassformer.pipelines.translator import Translator

LIMITS = {"beam": 8, "padding": 8}


def told_of(translator: Translator, traced: Trace, values: list[str], examples: Sequence[Any]) -> dict[str, Any]:
    """All of it, fit for JSON; `traced` is any run, from which stays what is the same in each."""
    manifest = traced.manifest()
    own = ("shape", "axes", "op", "formula", "formula_zh", "inputs")
    config = translator.model.config
    assert isinstance(translator.tokenizer, Tokenizer)
    return {
        "format": manifest["format"],
        "facts": {
            "model": facts(traced.subject, traced.name),
            "about": asdict(translator.about),
            "limits": LIMITS,
            "examples": [one._asdict() for one in examples],
            "direction": "",
            "directions": [],
        },
        "values": values,
        "tensors": [{"name": row["name"]} | {name: row[name] for name in own} for row in manifest["tensors"]],
        "weights": manifest["weights"],
        "masks": manifest["masks"],
        "tag": manifest["source"]["tag"],
        "schematics": {language: schematics(translator.model, language) for language in ("en", "zh")},
        "text": text_of(translator.tokenizer),
        "decoder": decoder_of(config),
        "rules": {"growth": GROWTH, "slack": SLACK, "stride": STRIDE, "top": TOP, "runners_up": RUNNERS_UP}
        | {"rule": RULE, "rounding": ROUNDING},
    }


def text_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """The vocabularies, and how text is cut: glassformer.data.vocabulary tells of it."""
    sides = []
    for side, pieces in zip(tokenizer.forms, tokenizer.pieces, strict=True):
        form = json.loads(side)
        model, pattern = form["model"], form["pre_tokenizer"]["pattern"]["Regex"]
        size = max(pieces) + 1
        told: dict[str, Any] = {"pieces": [pieces.get(id, "") for id in range(size)]}
        if model["type"] == "BPE":
            told["merges"] = [one.split(" ") if isinstance(one, str) else one for one in model["merges"]]
        else:
            told["scores"] = [score for _, score in model["vocab"]]
        told["tags"] = [id for id, piece in pieces.items() if TAG.fullmatch(piece)]
        told["marks"] = "".join(mark for mark in PLACEHOLDERS if mark in pattern)
        sides.append(told)
        if tokenizer.joint:
            break
    first = [] if tokenizer.to is None else [sides[0]["pieces"].index(f"<2{tokenizer.to}>")]
    return {"sides": sides, "first": first, "words": sorted(tokenizer.words)}


def decoder_of(config: ModelConfig) -> dict[str, Any]:
    """What a search and the count of its work need of a decoder."""
    own = config.decoder
    return {
        "start": config.start_id,
        "end": config.end_id,
        "pad": config.pad_id or 0,
        "force_end": config.force_end and config.end_id is not None,
        "max_length": config.max_length,
        "layers": own.layers,
        "heads": own.heads,
        "groups": own.kv_heads or own.heads,
        "d_head": own.d_head,
        "d_model": own.d_model,
        "d_ff": own.d_ff,
        "gated": own.gated,
        "vocab_size": own.vocab_size,
    }
