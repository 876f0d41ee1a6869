"""How sure translations are: what is told is what is seen, on pairs that it was not learnt from."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from glassformer.common.errors import DataError, WeightsError
from glassformer.pipelines.confidence import Confidence, doubted_words, read_confidence, sigmoid
from glassformer.pipelines.translator import Translation
from glassformer.train.evaluation.calibration import calibrate, keep_confidence, table

REFERENCE = "Der Hund läuft heute durch den Park."


def made(count: int, seed: int, told: bool = True) -> list[Translation]:
    """Translations, right with the probability that theirs tells, or, without `told`, with one that nothing tells."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        each = [draw.uniform(-2, 0)] * draw.randint(3, 30)
        right = draw.random() < (sigmoid(4 + 4 * each[0]) if told else 0.5)
        found.append(Translation(REFERENCE if right else "Etwas anderes.", log_probabilities=each))
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_told_is_what_is_seen(seed: int) -> None:
    found = calibrate(made(6000, seed), [REFERENCE] * 6000)
    assert found.pairs == 3000
    assert found.error < 0.03
    for mean in (-1.5, -1.0, -0.5):
        assert found.probability([mean] * 10) == pytest.approx(sigmoid(4 + 4 * mean), abs=0.05)
    assert sum(count for _, _, count in found.bins) == 3000
    assert f"{found.error:.1%}" in table(found)


def test_probabilities_that_tell_nothing_are_not_made_to() -> None:
    found = calibrate(made(6000, 4, told=False), [REFERENCE] * 6000)
    assert [found.probability([mean] * 10) for mean in (-1.5, -0.5)] == pytest.approx([0.5, 0.5], abs=0.08)


def test_a_wrong_measurement_shows_in_its_error() -> None:
    """The error is of other pairs than those that were learnt from: here these are right, and those wrong."""
    right, wrong = Translation(REFERENCE, log_probabilities=[-0.5]), Translation("Nein.", log_probabilities=[-0.5])
    assert calibrate([right, wrong] * 100, [REFERENCE] * 200).error > 0.9


def test_few_pairs_are_refused_and_translations_without_tokens_left_out() -> None:
    empty = [Translation("") for _ in range(500)]
    with pytest.raises(DataError, match="99 translated pairs are too few to learn from; give 100 or more"):
        calibrate([*made(99, 5), *empty], [REFERENCE] * 599)


def test_it_is_kept_by_target_language(tmp_path: Path) -> None:
    found = calibrate(made(200, 6), [REFERENCE] * 200)
    assert read_confidence(tmp_path) == {}
    keep_confidence(tmp_path, "de", found)
    keep_confidence(tmp_path, "en", found)
    kept = read_confidence(tmp_path)
    assert [*kept] == ["de", "en"]
    assert kept["de"].probability([-0.3]) == found.probability([-0.3])
    assert found.probability([]) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"de": 3}', '{"de": {"constant": 1}}'])
def test_a_file_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "confidence.json").write_text(text)
    with pytest.raises(WeightsError, match=r"confidence\.json .*remove it"):
        read_confidence(tmp_path)


@pytest.mark.parametrize("damage", [{"constant": "much"}, {"length": None}])
def test_numbers_of_another_kind_are_refused(damage: dict[str, object], tmp_path: Path) -> None:
    keep_confidence(tmp_path, "de", Confidence(1.0, 1.0, 1.0, 50.0, 100, 0.0, ()))
    values = json.loads((tmp_path / "confidence.json").read_text())
    values["de"] |= damage
    (tmp_path / "confidence.json").write_text(json.dumps(values))
    with pytest.raises(WeightsError, match=r"confidence\.json .*remove it"):
        read_confidence(tmp_path)


LOW, HIGH = math.log(0.1), math.log(0.9)


@pytest.mark.parametrize(
    ("tokens", "low", "words"),
    [
        (["▁Der", "▁Gr", "ass", "h", "▁ist", "."], [2], ["Grassh"]),
        (["▁Der", "▁Gr", "ass", "h", "▁ist", "."], [5], []),  # a mark is no word
        (["▁C", "af", "<0xC3>", "<0xA9>", "▁da"], [3], ["Café"]),
        (["▁", "你", "好", "世界", "。"], [2, 3], ["好", "世界"]),
        (["▁a", "▁b"], [], []),
        ([], [], []),
    ],
)
def test_doubted_words_are_whole(tokens: list[str], low: list[int], words: list[str]) -> None:
    assert doubted_words(tokens, [LOW if i in low else HIGH for i in range(len(tokens))]) == words
