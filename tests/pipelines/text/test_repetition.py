"""Single words and noise: a translation that runs on is tried again, and what is strange is noted."""

from __future__ import annotations

import random

import pytest
from make_bundle import WORDS
from stand_in import StandIn

from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.text.sentence_translator import most_tokens, repeats, repetition
from glassformer.pipelines.translator import Translator


def test_repetition_is_measured() -> None:
    assert repetition(["a", "b", "c", "d"]) == 0
    assert repetition(["x", "a", "a", "a", "y"]) == 3
    assert repetition(["x", "a", "b", "a", "b", "a", "b", "y"]) == 6
    assert repetition(["a", "b", "a", "b"]) == 0
    assert repetition([*"xaaab" * 3]) == 15


def test_a_source_may_repeat_itself(de: Translator) -> None:
    def around(source: str, target: list[str]) -> bool:
        return repeats(de.tokenizer, de.tokenizer.encode_source([source])[0], target)

    assert around("no", ["nein"] * 12)
    assert not around("no " * 12, ["nein"] * 12)
    assert not around("a long sentence", ["ja"] * 3)


def test_a_loop_is_tried_again_without_repetition(de: Translator) -> None:
    model = StandIn(de, lambda text: "und " * 40)
    (made,) = TextTranslator(model).details(["red house and tree."])
    (_, first), (_, second) = model.calls
    assert (first.no_repeat_ngram, second.no_repeat_ngram) == (0, 3)
    length = len(de.tokenizer.encode_source(["red house and tree."])[0]) - 1
    assert second.max_new_tokens == most_tokens(length)
    assert not made.finished
    assert made.text == "red house and tree."  # the second try found no end either
    assert [note.kind for note in made.notes] == ["cut"]
    assert "found no end" in made.notes[0].text


def noise(chance: random.Random) -> str:
    kind = chance.randrange(5)
    if kind == 0:
        return chance.choice(list(WORDS))
    if kind == 1:
        return "".join(chance.choices("abcdefghij xyz.,!?-", k=chance.randint(1, 40)))
    if kind == 2:
        return "".join(
            chr(chance.choice([0x4E00, 0x400, 0x1F600, 0x20, 0xE000]) + chance.randrange(60)) for _ in range(9)
        )
    if kind == 3:
        return " ".join(chance.choices([*WORDS, "qqq", "7", "`x`"], k=chance.randint(1, 6)))
    return chance.choice(["ha ", "a", "!", "no no "]) * chance.randint(1, 20)


def test_no_noise_grows_without_end(de: Translator) -> None:
    """By a model that knows seven words."""
    chance = random.Random(3)
    texts = [noise(chance) for _ in range(60)]
    made = TextTranslator(de).translate(texts, beam=1)
    assert len(made) == len(texts)
    sources, targets = (de.tokenizer.encode_target(side) for side in (texts, made))
    for text, source, target in zip(texts, sources, targets, strict=True):
        assert len(target) <= 3 * len(source) + 10, text


def test_what_is_strange_is_noted(de: Translator) -> None:
    def kinds(text: str, **options: object) -> list[str]:
        (made,) = TextTranslator(StandIn(de, lambda text: "gut"), **options).details([text])  # type: ignore[arg-type]
        return [note.kind for note in made.notes]

    assert kinds("red house and tree") == []
    assert kinds("ceci est une petite maison") == ["unfamiliar"]
    assert kinds("маленький дом и дерево") == ["unfamiliar", "characters"]
    (made,) = TextTranslator(de).details(["red house\nмаленький дом и дерево."])
    assert [one.way for one in made.sentences] == ["plain", "unread"]
    assert made.text.endswith("маленький дом и дерево.")
    assert kinds("red house", detect=lambda text: "fr") == ["language"]
    assert kinds("red house", detect=lambda text: "en") == kinds("red house", detect=lambda text: None) == []
    assert kinds("42", detect=lambda text: "fr") == []


@pytest.mark.parametrize("text", ["red " * 300, "x" * 3000, "`" * 50, "\x00", "\ud800", "a\u0301" * 40])
def test_nothing_odd_breaks_it(de: Translator, text: str) -> None:
    (made,) = TextTranslator(de).details([text], beam=1)
    assert isinstance(made.text, str)
