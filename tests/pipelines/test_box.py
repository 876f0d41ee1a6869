"""The translators that come with glassformer, by their names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import glassformer as gf
from glassformer.common.errors import WeightsError
from glassformer.pipelines import box
from glassformer.pipelines.language.language import detect_language
from glassformer.weights import bundle


@pytest.mark.parametrize(("name", "to"), [("en-de", "de"), ("de-en", "en"), ("en-zh", "zh"), ("zh-en", "en")])
def test_each_direction_has_a_name(tiny_box: Path, name: str, to: str) -> None:
    assert gf.Translator.load(name).to == to
    assert gf.Translator.load(name, to="en").to == "en"


def test_a_folder_of_that_name_wins(tiny_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en-de").mkdir()
    with pytest.raises(WeightsError, match="en-de is not a trained model"):
        gf.Translator.load("en-de")


def test_without_its_data_the_box_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "HERE", tmp_path)
    with pytest.raises(WeightsError, match=r"comes without the translator `en-de` .* install a wheel"):
        gf.Translator.load("de-en")


def test_what_no_model_joins_goes_by_english() -> None:
    assert box.route("en", "de") == [("en-de", "de")]
    assert box.route("zh", "en") == [("en-zh", "en")]
    assert box.route("de", "zh") == [("en-de", "en"), ("en-zh", "zh")]


def test_what_ships_fits_and_translates() -> None:
    size = sum(file.stat().st_size for file in box.HERE.rglob("*") if "__pycache__" not in file.parts)
    assert size <= 34_000_000
    for name in box.MODELS:
        assert bundle.read_config(box.folder(name)).weights in ("int8", "int6")
        assert (box.folder(name) / "README.md").is_file()
        assert (box.folder(name) / "README.zh-CN.md").is_file()
        assert bundle.read_scores(box.folder(name))
    assert "Bahnhof" in gf.Translator.load("en-de")("Where is the nearest station?")


@pytest.mark.parametrize("direction", box.directions())
def test_there_is_something_to_try_in_each_direction(direction: str) -> None:
    known = box.examples(direction)
    assert len({one.text for one in known}) == len({one.label for one in known}) == len(known) >= 6
    for one in known:
        assert all(one), "a sentence, and what it shows in both languages"
        assert detect_language(one.text, box.LANGUAGES)[0] == direction.split("-")[0]
        assert detect_language(one.label, box.LANGUAGES)[0] == "en"
        assert re.search(r"[\u4e00-\u9fff]", one.label_zh + one.look_zh)
        assert one.look.endswith(("?", ".", ")")), "a question, or what to try"
    assert any("`" in one.text and "**" in one.text for one in known), "a line of documentation with markup"
    assert any(one.text.endswith(("?", "？")) for one in known), "a question"
