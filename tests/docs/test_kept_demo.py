"""The demo that the handbook's code looks into is what `make demo` trains today."""

import json

import keep_demo

import glassformer as gf
from glassformer.data import Tokenizer
from glassformer.data.numerals import generate
from glassformer.train import read_recipe
from glassformer.train.folder import saved_recipe
from glassformer.train.recipe import built_in

STALE = "run: make demo && python tests/docs/keep_demo.py runs/demo"


def test_recipe_and_vocabulary_are_those_of_today(tmp_path):
    recipe = read_recipe(str(built_in()["numerals"]))
    assert saved_recipe(keep_demo.KEPT).to_dict() == recipe.to_dict(), STALE
    Tokenizer.train(generate("train"), recipe.tokenizer).save(tmp_path)
    kept, made = (json.loads((folder / "tokenizer.json").read_bytes()) for folder in (keep_demo.KEPT, tmp_path))
    assert kept == made, STALE


def test_it_has_learnt_what_the_demo_learns(demo):
    pairs = list(generate("test"))[:200]
    found = gf.Translator.load(demo).translate([source for source, _ in pairs])
    right = sum(ranked[0].text == target for ranked, (_, target) in zip(found, pairs, strict=True))
    assert right >= 196
