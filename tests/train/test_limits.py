"""No number in a recipe hangs, overflows or fails late: each is taken, or refused at once with its name."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.common.errors import ConfigError
from glassformer.data import Corpus, TokenizerOptions
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.train.budget import check_memory, min_parameters
from glassformer.train.evaluation.metrics import make_bleu
from glassformer.train.options import Data, Score, Tokenize, Train
from glassformer.train.parallel import init_distributed
from glassformer.train.recipe import VOCABULARY_SETTINGS, Recipe, parse

SECTIONS = {"data": Data, "tokenizer": TokenizerOptions, "model": ModelConfig, "train": Train, "score": Score}
KEYS = [
    (section, name)
    for section, cls in SECTIONS.items()
    for name, hint in get_type_hints(cls).items()
    if {int, float} & {hint, *get_args(hint)} and name not in VOCABULARY_SETTINGS[1:]
]
NUMBERS = st.one_of(
    st.sampled_from([float("nan"), float("inf"), -float("inf"), 0, -1, True, 10**20, -(10**20), 10**400, 2**31, 2**63]),
    st.integers(),
    st.floats(),
    st.integers(1, 12).map(lambda power: 10**power),
)


def recipe_of(section: str, name: str, value: object) -> Recipe:
    values: dict[str, Any] = {"data": {"train": [{"src": "a.en", "tgt": "a.de"}]}}
    return parse(values | {section: {**values.get(section, {}), name: value}})


def test_every_number_is_tried() -> None:
    assert len(KEYS) > 40
    assert {("data", "max_ratio"), ("model", "norm_eps"), ("score", "beam"), ("train", "lr")} <= set(KEYS)


@settings(max_examples=150, deadline=None)
@given(key=st.sampled_from(KEYS), value=NUMBERS)
def test_a_number_is_taken_or_refused_at_once(key: tuple[str, str], value: float) -> None:
    section, name = key
    try:
        taken = recipe_of(section, name, value).to_dict()[section][name]
    except ConfigError as error:
        taken = str(error)
    same = taken == (float(value) if isinstance(taken, float) else value)  # not the same beyond 2 ** 53
    assert same or (isinstance(taken, str) and name in taken and len(taken) < 400)


@settings(max_examples=50, deadline=None)
@given(name=st.sampled_from(["weight", "size", "seed"]), value=NUMBERS)
def test_the_numbers_of_a_corpus_too(name: str, value: float) -> None:
    try:
        taken = getattr(Corpus(builtin="numerals", **{name: value}), name)
    except ConfigError as error:
        taken = str(error)
    refused = isinstance(taken, str) and f"corpus {name}" in taken
    assert refused or name == "seed" or 0 < taken <= 10**6


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"positions": "learned", "gated": True, "tied": False},
        {"positions": "rotary", "kv_heads": 2, "decoder_layers": 1, "src_vocab_size": 700},
        {"head_width": 48, "decoder_heads": 4, "decoder_d_ff": 100},
    ],
)
def test_weights_are_counted_without_making_them(settings: dict[str, Any]) -> None:
    config = ModelConfig(vocab_size=900, d_model=64, d_ff=256, heads=8, layers=3, max_length=50, **settings)
    model = EncoderDecoder(config)
    made = sum(tensor.numel() for tensor in model.parameters())
    assert 0.9 * made < min_parameters(config) < 1.05 * made


def test_a_model_larger_than_the_memory_is_refused_before_it_is_made() -> None:
    config = ModelConfig(vocab_size=1000, d_model=2**20, d_ff=2**22, positions="rotary")
    with pytest.raises(ConfigError, match=r"d_model=1048576.* has over [0-9,]{15,} weights: training it takes .* GiB"):
        check_memory(config, Train(), init_distributed("cpu"))
    check_memory(ModelConfig(vocab_size=1000, d_model=64), Train(), init_distributed("cpu"))


def test_the_tokenizers_are_those_of_sacrebleu() -> None:
    from sacrebleu.metrics.bleu import BLEU

    assert set(get_args(Tokenize)) == set(BLEU.TOKENIZERS)


def test_a_tokenizer_that_is_not_there_is_told_by_name() -> None:
    with pytest.raises(ConfigError, match=r"tokenize = '13b' is not one of .*did you mean `13a`?"):
        make_bleu("13b")
    with pytest.raises(ConfigError, match=r"`ja-mecab` cannot be used here: .*pip install sacrebleu\[ja\]"):
        make_bleu("ja-mecab")
