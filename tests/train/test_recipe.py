"""Recipes: what a user may write, and what a mistake is answered with."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.common.errors import ConfigError
from glassformer.common.files import to_toml
from glassformer.data import About, TokenizerOptions
from glassformer.model import ModelConfig
from glassformer.train.options import Score, Train
from glassformer.train.recipe import built_in, parse, read_recipe

MINIMAL = {"data": {"train": [{"src": "a.en", "tgt": "a.de"}], "valid": [{"tsv": "v.tsv"}]}}


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", built_in())
def test_the_built_in_recipes_say_what_their_model_is_for(name: str) -> None:
    recipe = read_recipe(name)
    card = recipe.about
    assert recipe.data.train
    assert recipe.data.valid
    assert all((card.purpose, card.purpose_zh))
    assert card.examples or recipe.objective.content == "images"
    assert (card.source and card.target) or recipe.train.objective in ("classify", "image")
    assert About.of_recipe(to_toml(read_recipe(name).to_dict())) == card


def test_one_setting_chooses_the_language_of_the_built_in_corpus_and_of_the_card() -> None:
    recipe = read_recipe("numerals", ("data.target=fr",))
    assert {corpus.target for corpus in (*recipe.data.train, *recipe.data.valid, *recipe.data.test)} == {"fr"}
    assert recipe.about.target == "fr"
    assert {corpus.target for corpus in read_recipe("numerals").data.train} == {"de"}
    with pytest.raises(ConfigError, match=r"about.examples = \[1\] must be a list of texts in quotes"):
        read_recipe("numerals", ("about.examples=[1]",))


def test_set_reads_numbers_switches_and_plain_words() -> None:
    changes = ("train.steps=60", "train.lr=2e-4", "train.compile=true", "model.norm=post", 'score.tokenize="zh"')
    recipe = read_recipe("numerals", changes)
    assert (recipe.train.steps, recipe.train.lr, recipe.train.compile) == (60, 2e-4, True)
    assert recipe.model["norm"] == "post"
    assert recipe.score.tokenize == "zh"
    assert read_recipe("numerals", ("train.lr=1",)).train.lr == 1.0


def test_paths_start_at_the_recipes_folder_and_below_root(tmp_path: Path) -> None:
    name = write(tmp_path, '[data]\nroot = "texts"\n[[data.train]]\nsrc = "a.en"\ntgt = "/b.de"\n')
    corpus = read_recipe(name).data.train[0]
    assert corpus.src == str(tmp_path / "texts" / "a.en")
    assert corpus.tgt == "/b.de"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("train.warmup_stps=5", "unknown key `train.warmup_stps` in the recipe; did you mean `warmup_steps`?"),
        ("trian.steps=5", "did you mean `train`?"),
        ("steps=5", "did you mean `train.steps`?"),
        ("model.dmodel=64", "unknown key `model.dmodel` in the recipe; did you mean `d_model`?"),
        ("model.vocab_size=64", "set tokenizer.vocab_size instead"),
        ("model.heads=3", "d_model=128 cannot be split evenly into heads=3"),
        ("model.d_model=wide", "d_model='wide'"),
        ("model=5", "`model` must be a section, not 5"),
        ("train=5", "`train` must be a section, not 5"),
        ("data.train=5", "data.train must be a table"),
        ("data.train=[]", "no [[data.train]]"),
        ("data.train.size=5", "`train` is a value, not a section"),
        ("tokenizer.kind=bep", "tokenizer.kind = 'bep' must be one of `bpe`, `unigram`, `words`"),
        ("train.steps=many", "train.steps = 'many' must be a whole number"),
        ("train.steps=1.5", "train.steps = 1.5 must be a whole number"),
        ("train.steps=true", "train.steps = True must be a whole number"),
        ("train.steps=", "train.steps = '' must be a whole number"),
        ("train.compile=1", "train.compile = 1 must be true or false"),
        ("train.batch_tokens=big", "train.batch_tokens = 'big' must be a whole number or one of `auto`"),
        ("train.schedule=cosin", "train.schedule = 'cosin' must be one of"),
        ("train.steps=0", "train.steps = 0: it must be at least 1"),
        ("train.seed=-1", "train.seed = -1: it cannot be negative"),
        ("train.seed=9223372036854775808", "it must be at most 9,223,372,036,854,775,807"),
        ("train.lr=0", "train.lr = 0.0: it must be above 0"),
        ("train.lr=nan", "train.lr = nan: it must be a finite number"),
        ("train.label_smoothing=1.0", "train.label_smoothing = 1.0: it lies in 0 <= x < 1"),
        ("train.average=3", "set train.keep_last = 3"),
        ("score.tokenize=13b", "score.tokenize = '13b' must be one of `13a`, `zh`"),
        ("score.beam=5000", "score.beam = 5000: it must be at most 1,000"),
        ("data.max_ratio=nan", "data.max_ratio = nan: it must be a finite number"),
        ("model.norm_eps=nan", "norm_eps=nan: it must be a finite number"),
        ("model.rotary_base=-1", "rotary_base=-1: it must be above 0"),
        ("model.d_model=99999999999999999999", "d_model=99999999999999999999: it must be at most 16,777,216"),
        ("model.d_model=16777214", "d_model=16777214 cannot be split evenly into heads=4; heads=2 would fit"),
        ("tokenizer.vocab_size=99999999999999999999", "must be a whole number above 4 and at most 16,777,216"),
        ("train.accumulate=1000000", "cannot be taken in more portions than it has tokens"),
        ("train.shapes=300", "train.shapes = 300: it must be at most 255"),
        ("train.lr=1" + 400 * "0", "(401 characters) must be a number"),
        ("train.steps=1" + 5000 * "0", "(5,003 characters) must be a whole number"),
        ("train.steps=" + 5000 * "[", "(5,002 characters) must be a whole number"),
        ("train.steps=5\ntrain.lr=1", "train.steps = '5\\ntrain.lr=1' must be a whole number"),
        ("train.steps", "is not of the form section.key=value"),
        ("=5", "is not of the form section.key=value"),
    ],
)
def test_a_mistake_is_named(change: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_recipe("numerals", (change,))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_patience_needs_something_to_judge_by() -> None:
    with pytest.raises(ConfigError, match=r"need \[\[data.valid\]\]"):
        read_recipe("numerals", ("data.valid=[]", "train.patience=2"))


def test_an_unknown_recipe_and_bad_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no recipe `numeral`: .*did you mean `numerals`?"):
        read_recipe("numeral")
    with pytest.raises(ConfigError, match=r"no recipe `nowhere/mine.toml`"):
        read_recipe("nowhere/mine.toml")
    with pytest.raises(ConfigError, match=r"mine.toml is not valid TOML: .*line 1"):
        read_recipe(write(tmp_path, "[train\nsteps = 5\n"))
    (tmp_path / "mine.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"mine.toml is not valid TOML"):
        read_recipe(str(tmp_path / "mine.toml"))


def test_a_recipe_begins_with_another(tmp_path: Path) -> None:
    base = read_recipe("numerals-gpt")
    own = '[[data.train]]\ntext = "mine.txt"\n\n[train]\nlr = 0.25\n'
    recipe = read_recipe(write(tmp_path, f'base = "numerals-gpt"\n\n{own}'))
    assert [corpus.files for corpus in recipe.data.train] == [(tmp_path / "mine.txt",)], "all of a split, or none"
    assert recipe.data.valid == base.data.valid
    assert recipe.train == dataclasses.replace(base.train, lr=0.25)
    assert (recipe.model, recipe.tokenizer, recipe.about) == (base.model, base.tokenizer, base.about)
    with pytest.raises(ConfigError, match=r"train.objective = 'translate' learns from pairs"):
        read_recipe(write(tmp_path, own))  # without it, nothing of the other
    for wrong in ('"numeral"', "5", '["numerals"]', '"mine.toml"'):
        with pytest.raises(ConfigError, match=r"no recipe `.*`, the base of .*mine.toml: it is one of .*numerals"):
            read_recipe(write(tmp_path, f"base = {wrong}\n\n{own}"))


def values_of(cls: type, **own: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    """Sections with any of a dataclass's keys set to any value of its type."""
    kinds = {int: st.integers(1, 255), float: st.floats(0.001, 0.999), bool: st.booleans(), str: st.text(max_size=20)}
    hints = get_type_hints(cls)
    known = {
        name: st.sampled_from(get_args(hint)) if get_args(hint) else kinds[hint]
        for name, hint in hints.items()
        if name not in own
    }
    return st.fixed_dictionaries({}, optional=known | own)


batch_tokens = st.one_of(st.just("auto"), st.integers(255, 10**6))
corpora = st.fixed_dictionaries(
    {"src": st.text(min_size=1), "tgt": st.text(min_size=1)},
    optional={"weight": st.floats(0.1, 10), "from": st.text(), "split": st.text(), "size": st.integers(1, 99)},
)


@settings(max_examples=100, deadline=None)
@given(
    train=values_of(
        Train,
        objective=st.just("translate"),  # the one that learns from pairs
        batch_tokens=batch_tokens,
        average=st.just(1),
        noise_span=st.floats(1, 9),
        freeze=st.lists(st.text()),
        lora_rank=st.just(0),
        lora_on=st.lists(st.text(), min_size=1),
        compile=st.sampled_from([True, False, "auto"]),
    ),
    score=values_of(Score),
    data=st.lists(corpora, min_size=1, max_size=3),
    join=st.text(),
)
def test_a_recipe_survives_being_written(
    train: dict[str, object], score: dict[str, object], data: list[dict[str, object]], join: str
) -> None:
    recipe = parse(
        {
            "data": {"train": data, "valid": data[:1], "max_ratio": 2},
            "tokenizer": {"join": join},
            "model": {"norm": "post", "dropout": 0, "bias": False},
            "train": train,
            "score": score,
        }
    )
    assert parse(tomllib.loads(to_toml(recipe.to_dict()))) == recipe


def test_a_saved_recipe_is_whole_so_that_a_later_default_changes_no_run() -> None:
    saved = tomllib.loads(to_toml(parse(MINIMAL).to_dict()))
    for section, cls in (("train", Train), ("score", Score), ("tokenizer", TokenizerOptions)):
        told = {f.name: f.default for f in dataclasses.fields(cls) if f.default is not None}
        told = {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}
        assert saved[section] == told
    built = {"vocab_size", "src_vocab_size", "pad_id", "start_id", "end_id", "seed"}
    numbers = {f.name: f.default for f in dataclasses.fields(ModelConfig) if f.name not in built}
    assert saved["model"] == {name: value for name, value in numbers.items() if value is not None}
    assert saved["data"]["max_ratio"] == 3.0
    assert saved["data"]["train"][0]["weight"] == 1.0
