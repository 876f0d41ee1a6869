"""The translator on a trained model: order, empty lines, and independence of what else is translated."""

from __future__ import annotations

import pytest
from small_run import train_here, write_recipe

from glassformer.translator import Translator

TEXTS = ["one two three", "", "six", "four four one six two five three", "two two", "   ", "five"]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    place = tmp_path_factory.mktemp("translator")
    train_here(write_recipe(place), place / "run", "train.steps=150", "data.valid=[]")
    return Translator.load(place / "run")


@pytest.mark.parametrize("beam", [1, 4])
def test_the_order_is_kept_and_a_batch_is_as_good_as_single_sentences(translator: Translator, beam: int) -> None:
    together = [best[0] for best in translator.translate(TEXTS, beam=beam)]
    alone = [translator.translate([text], beam=beam)[0][0] for text in TEXTS]
    assert [one.text for one in together] == [one.text for one in alone]
    assert [one.tokens for one in together] == [one.tokens for one in alone]
    assert [one.score for one in together] == pytest.approx([one.score for one in alone], abs=1e-4)
    assert len({one.text for one in together}) > 3
    again = [best[0].text for best in translator.translate(TEXTS[::-1], beam=beam)]
    assert again == [one.text for one in together][::-1]


def test_an_empty_line_stays_empty(translator: Translator) -> None:
    assert translator("") == ""
    assert translator.translate([]) == []
    assert translator.translate(["", "one"])[0][0].text == ""
    assert translator.translate(["", "one"])[1][0].text != ""


def test_n_best_are_sorted_and_the_first_is_the_best(translator: Translator) -> None:
    (found,) = translator.translate(["one two three"], beam=4, nbest=3)
    assert len(found) == 3
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len({one.text for one in found}) == 3
    assert found[0].text == translator.translate(["one two three"], beam=4)[0][0].text


def test_many_sentences_in_many_batches(translator: Translator) -> None:
    texts = [" ".join(["one", "two", "six"][: 1 + n % 3] * (1 + n % 4)) for n in range(40)]
    whole = [best[0].text for best in translator.translate(texts)]
    told: list[int] = []
    assert [best[0].text for best in translator.translate(texts, batch_tokens=16, progress=told.append)] == whole
    assert told == sorted(told)
    assert told[-1] == 40
    assert len(told) > 5


def test_unknown_words_and_very_long_lines_are_no_trouble(translator: Translator) -> None:
    assert isinstance(translator("nothing known here 中文"), str)
    assert isinstance(translator("one " * 200), str)
