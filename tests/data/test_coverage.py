"""A model's card, and the words that its training never met."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassformer.data import About, Tokenizer, TokenizerOptions
from glassformer.data.tokenizer import frequent_words, split_words

PAIRS = [("The cat can't see twenty-one dogs.", "x"), ("wir sehen 今天", "y")] * 3


def test_words_are_runs_of_letters_and_single_characters_of_scripts_without_spaces() -> None:
    assert split_words("It's 9:34 PM, ok? naïve_word 今天ok") == ["It's", "PM", "ok", "naïve", "word", "今", "天", "ok"]
    assert split_words("€6,251.99 \U0001f600") == []


def test_only_words_that_training_never_met_are_unfamiliar() -> None:
    tokenizer = Tokenizer.train(PAIRS, TokenizerOptions("words"))
    assert tokenizer.unfamiliar(["THE CAT can't see Twenty-one 7 dogs", "今天 wir"]) == []
    assert tokenizer.unfamiliar(["Hello, how is the cat? hello", "明天"]) == ["Hello", "how", "is", "明"]


def test_pieces_of_a_word_that_was_cut_before_are_one_word() -> None:
    tokenizer = Tokenizer.train([("a bl@@ ue shirt", "x")] * 3, TokenizerOptions("words", join="@@ "))
    assert tokenizer.unfamiliar(["a blue shirt", "a bl@@ ue shirt"]) == []
    assert tokenizer.unfamiliar(["bl"]) == ["bl"]


def test_the_words_are_saved_and_a_folder_without_them_finds_nothing_unfamiliar(tmp_path: Path) -> None:
    made = Tokenizer.train(PAIRS, TokenizerOptions("words"))
    made.save(tmp_path)
    assert Tokenizer.load(tmp_path).words == made.words
    assert Tokenizer.load(tmp_path).fingerprint() == made.fingerprint()
    (tmp_path / "source_words.txt").write_bytes(b"\xff")
    assert Tokenizer.load(tmp_path).unfamiliar(["Hello"]) == []
    (tmp_path / "source_words.txt").unlink()
    assert Tokenizer.load(tmp_path).unfamiliar(["Hello"]) == []


def test_of_very_many_words_the_most_frequent_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassformer.data.tokenizer.MOST_WORDS", 2)
    assert frequent_words(["b a c", "b c", "b"]) == {"b", "c"}


def test_the_warning_names_what_was_learnt_and_what_may_be_unknown() -> None:
    card = About(purpose="numbers, dates, times and money")
    told = "this model learnt numbers, dates, times and money; it may not know: Hello, how"
    assert card.warning(["Hello", "how"]) == told
    assert About().warning(["Hello"]) == "this model may not know: Hello"
    assert About().warning([*"abcdefghij"]).endswith("g, h and 2 more")


@pytest.mark.parametrize("text", ["", "no toml at all", "about = 3", '[about]\nsource = 7\nexamples = "x"', "[data]"])
def test_a_recipe_without_a_card_or_a_broken_one_is_a_model_without_a_card(text: str) -> None:
    assert About.of_recipe(text) == About()


def test_the_card_of_a_recipe_is_read() -> None:
    text = '[about]\nsource = "en"\npurpose = "birds"\nexamples = ["a tit", 3]\nfuture = 1'
    assert About.of_recipe(text) == About(source="en", purpose="birds", examples=("a tit",))


def test_the_card_of_another_direction_swaps_the_languages_and_leaves_the_examples_out() -> None:
    card = About("en", "de", "a few sentences", "几句话", ("Hello",))
    assert card.toward("de", ("de", "en")) == card
    assert card.toward("en", ("de", "en")) == About("de", "en", "a few sentences", "几句话")
    assert card.toward("en", ("de", "en")).toward("de", ("de", "en")).source == "en"
    assert card.toward("zh", ("de", "zh")).source == "en"  # one language into several
    assert card.toward("zh", ("de", "en", "zh")).source == ""  # any of the others
    assert About().toward("de", ("de", "en")).source == "en"
