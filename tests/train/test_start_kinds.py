"""Every kind of model to go on from, for every objective: it begins, or is refused by what the two are."""

from pathlib import Path

import pytest

import glassformer as gf
from glassformer.common.errors import ConfigError, GlassformerError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.train.objective import OBJECTIVES
from glassformer.train.recipe import parse
from glassformer.weights import bundle

SIZES = {"d_model": 16, "heads": 2, "d_ff": 24, "layers": 1, "max_length": 40}
IMAGES = {"labels": 2, "tied": False, "image_size": 8, "patch_size": 4, "channels": 1}
KINDS = {
    "a translator": (gf.EncoderDecoder, {}, "translate denoise"),
    "continues texts": (gf.DecoderOnly, {}, "language"),
    "fills gaps": (gf.EncoderOnly, {}, "masked classify"),
    "labels for texts": (gf.EncoderOnly, {"labels": 2, "tied": False}, "masked classify"),
    "labels for images": (gf.EncoderOnly, IMAGES, "image"),
}
CORPORA = {
    "pairs": {"src": "a", "tgt": "b"},
    "plain texts": {"text": "a"},
    "labelled texts": {"tsv": "a"},
    "images": {"images": "a"},
}


@pytest.mark.parametrize("what", KINDS)
def test_a_model_of_another_kind_is_refused_by_its_kind(what: str, tmp_path: Path) -> None:
    make, more, trains = KINDS[what]
    words = Tokenizer.train([(w, w) for w in ("one", "two")], TokenizerOptions(kind="words"))
    model = make(gf.ModelConfig(**SIZES | {"vocab_size": words.tgt_size} | more))
    bundle.save(tmp_path, model, bundle.weights(model), None if what == "labels for images" else words)
    for name, objective in OBJECTIVES.items():
        train = {"objective": name, "start": str(tmp_path)}
        recipe = {"data": {"train": [CORPORA[objective.content]]}, "train": train}
        if name in trains.split():
            assert parse(recipe).model["d_model"] == 16
            continue
        with pytest.raises(ConfigError, match=rf"{what}.* another kind of model: train.objective = '{name}' needs"):
            parse(recipe)


@pytest.mark.parametrize(("name", "plain"), [("swiglu", "silu"), ("geglu", "gelu"), ("reglu", "relu")])
def test_a_gated_activation_is_two_settings(name: str, plain: str) -> None:
    with pytest.raises(GlassformerError, match=rf"activation='{plain}', gated=True"):
        gf.ModelConfig(vocab_size=9, activation=name)  # type: ignore[arg-type]
    gf.ModelConfig(vocab_size=9, activation=plain, gated=True)  # type: ignore[arg-type]
