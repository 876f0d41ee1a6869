"""The translators that come with glassformer, by their names."""

from __future__ import annotations

import gzip
import lzma
import re
import tomllib
from pathlib import Path

import pytest
import torch
from small_run import call
from tiny_box import SENTENCES

import glassformer as gf
from glassformer.common.errors import WeightsError
from glassformer.pipelines import box
from glassformer.pipelines.language.language import detect_language
from glassformer.train import box as box_maker
from glassformer.train.recipe import built_in, read_toml
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


def test_a_finished_run_is_packed_scored_and_gets_its_card(box_folder, tmp_path, monkeypatch) -> None:
    data, runs, out = tmp_path / "data", tmp_path / "runs", tmp_path / "out"
    loaded = bundle.load(box_folder / "en-de")
    bundle.save(runs / "box-en-de-mixed", loaded.model, bundle.weights(loaded.model), loaded.tokenizer)
    for corpus in ("docs-en-de", "tatoeba-en-de", "docs-en"):
        (data / corpus).mkdir(parents=True)
        (data / corpus / "ATTRIBUTION.txt").write_text(f"{corpus}: CC BY 4.0", encoding="utf-8")
    for language in ("en", "de"):
        with lzma.open(data / "docs-en-de" / f"test.{language}.xz", "wt", encoding="utf-8") as file:
            file.write("\n".join(SENTENCES[language]) + "\n")
    monkeypatch.setattr(box_maker, "SETS", box_maker.SETS[:1])
    monkeypatch.setattr(
        box_maker.subprocess, "run", lambda words, cwd, **_: call(words, cwd=cwd)
    )  # torch is loaded there
    made = out / "en-de"
    made.mkdir(parents=True)
    (made / "mine.txt").write_text("of the user", encoding="utf-8")
    with pytest.raises(SystemExit, match="holds something else than a translator"):
        box_maker.make("en-de", data, runs, out)
    assert [file.name for file in made.iterdir()] == ["mine.txt"]
    (made / "README.md").write_text("# The translator en-de\n", encoding="utf-8")  # of an earlier one
    box_maker.make("en-de", data, runs, out)
    assert sorted(folder.name for folder in runs.iterdir()) == ["box-en-de-mixed"]
    assert (made / "mine.txt").read_text(encoding="utf-8") == "of the user"
    assert bundle.read_config(made)[1] == "int8"
    said = tomllib.loads((made / "recipe.toml").read_text(encoding="utf-8"))
    assert said == read_toml(built_in()["box-en-de-last"])
    assert {*said} == {"data", "tokenizer", "model", "train", "score", "about"}, "what it began with too"
    assert list(scores := bundle.read_scores(made)) == ["docs en-de", "docs de-en"]
    assert scores["docs de-en"]["sentences"] == 3
    assert "--src docs-en-de/test.de.xz --ref docs-en-de/test.en.xz --to en" in scores["docs de-en"]["command"]
    for name in ("README.md", "README.zh-CN.md"):
        card = (made / name).read_text(encoding="utf-8")
        for needed in ("en-de", "tok:13a", "glassformer evaluate", "tatoeba-en-de: CC BY 4.0", "Apache-2.0"):
            assert needed in card
    (data / "tatoeba-en-de" / "ATTRIBUTION.txt").unlink()
    with pytest.raises(FileNotFoundError):
        box_maker.card(made, data, "en-de", "en")
    for name in ("recipe.toml", "scores.json", "README.md"):
        assert str(tmp_path) not in (made / name).read_text(encoding="utf-8")


def test_english_that_is_translated_back_is_in_no_corpus_with_translations(tmp_path: Path) -> None:
    (tmp_path / "docs-en-de").mkdir()
    (tmp_path / "docs-en").mkdir()
    mono = ["Close the file at once.", "Save the file at once.", "Save the file at once.", "Too short.", "word " * 60]
    for place, lines in (("docs-en-de/test.en.xz", mono[:1]), ("docs-en/mono.en.xz", mono)):
        with lzma.open(tmp_path / place, "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    assert box_maker.untranslated(tmp_path) == ["Save the file at once."]


def test_the_teacher_gets_each_sentence_once_and_none_that_is_too_long(tmp_path: Path) -> None:
    (tmp_path / "docs-en-de").mkdir()
    (tmp_path / "tatoeba-en-de").mkdir()
    docs, talk = ["Datei schließen.", "Datei schließen.", "", "Wort " * 90], ["Guten Tag!", "Datei schließen."]
    for place, lines, opened in (
        ("docs-en-de/train.de.xz", docs, lzma.open),
        ("tatoeba-en-de/train.de.gz", talk, gzip.open),
    ):
        with opened(tmp_path / place, "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    assert sorted(box_maker.lessons(tmp_path, "de")) == ["Datei schließen.", "Guten Tag!"]


def test_what_ships_lies_between_the_last_two_parts(box_folder: Path, tmp_path: Path) -> None:
    loaded = bundle.load(box_folder / "en-de")
    older = bundle.weights(loaded.model)
    newer = {name: weight + 1 if "feed_forward" in name else weight for name, weight in older.items()}
    for run, weights in (("older", older), ("newer", newer)):
        bundle.save(tmp_path / run, loaded.model, weights, loaded.tokenizer)
    box_maker.mix(tmp_path / "older", tmp_path / "newer", tmp_path / "mixed")
    found = bundle.weights(bundle.load(tmp_path / "mixed").model)
    for name, weight in found.items():
        assert torch.allclose(weight, older[name] + box.SHARE * (newer[name] - older[name]), atol=1e-6)
        assert "feed_forward" in name or torch.equal(weight, older[name]), "what is the same stays so to the bit"


@pytest.mark.parametrize("model", box.MODELS)
def test_each_part_of_a_translator_has_a_recipe_of_the_same_shape(model: str) -> None:
    known = built_in()
    parts = [read_toml(known[f"box-{model}{part}"]) for part in ("", "-more", "-taught", "-last")]
    shapes = [{name: value for name, value in part["model"].items() if name != "dropout"} for part in parts]
    assert all(shape == shapes[0] for shape in shapes)
    assert all(part["data"]["test"] == parts[0]["data"]["test"] for part in parts)
    own, teacher = parts[0]["data"], read_toml(known[box_maker.TEACHER])["data"]
    met = {one[side] for corpora in (own, teacher) for one in corpora["train"] for side in ("src", "tgt")}
    assert not any("test" in file or "valid" in file for file in met)


def test_what_ships_fits_and_translates() -> None:
    size = sum(file.stat().st_size for file in box.HERE.rglob("*") if "__pycache__" not in file.parts)
    assert size <= 28_000_000
    for name in box.MODELS:
        assert bundle.read_config(box.folder(name))[1] == "int8"
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


def test_what_finds_no_end_stays_as_it_is() -> None:
    """The model repeats itself until the limit, and so does a second try that may not: that is no translation."""
    noise = "command" * 11
    translator = gf.Translator.load("en-de", to="de")
    limit = 3 * len(translator.tokenizer.encode_target([noise])[0]) + 10
    assert not translator.translate([noise], beam=4, max_new_tokens=limit)[0][0].finished
    with pytest.warns(UserWarning, match="found no end"):
        assert gf.translate(noise, to="de", source="en") == noise
