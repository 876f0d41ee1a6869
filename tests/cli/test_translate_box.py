"""`glassformer translate` without a model: texts, lines and documents by the box."""

from __future__ import annotations

import json
import warnings

import pytest
from small_run import OLD
from tiny_box import SENTENCES, make_box

import glassformer as gf
from glassformer.common.errors import ConfigError
from glassformer.pipelines import box
from glassformer.pipelines.polyglot import polyglot

EN, DE, ZH = (SENTENCES[language][0] for language in ("en", "de", "zh"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return make_box(tmp_path_factory.mktemp("box"))


@pytest.fixture(autouse=True)
def here(place, tmp_path, monkeypatch):
    monkeypatch.setattr(box, "HERE", place)
    monkeypatch.chdir(tmp_path)
    polyglot.cache_clear()
    yield
    polyglot.cache_clear()  # another file's tests want the real ones


def by(source: str, target: str, text: str) -> str:
    return polyglot("cpu", "auto").translator(source, target).translate([text])[0]


def test_a_text_is_translated_into_the_language_asked_for(cli):
    for to, code in (("de", "de"), ("German", "de"), ("中文", "zh"), ("zh-CN", "zh")):
        ended, out, err = cli("translate", EN, "--to", to, "--device", "cpu")
        assert (ended, out) == (0, by("en", code, EN) + "\n"), err
    ended, out, err = cli("translate", "--from", "en", "--to", "de", EN, "--beam", 1, "--device", "cpu")
    assert ended == 0, err


def test_without_a_target_it_is_english(cli):
    ended, out, _ = cli("translate", DE, ZH, "--device", "cpu")
    assert (ended, out) == (0, by("de", "en", DE) + "\n" + by("zh", "en", ZH) + "\n")


def test_from_english_it_is_asked_into_which_language(cli):
    told = cli.fails("translate", EN)
    assert told == "from English into which language? Say --to 'de' (German) or --to 'zh' (Chinese)"


def test_a_name_with_a_slip_in_it_is_no_text(cli):
    assert cli.fails("translate", "REDME.md", "--to", "de").startswith("there is no file REDME.md")


def test_german_to_chinese_goes_by_english_and_says_so(cli):
    ended, _, err = cli("translate", DE, "--to", "zh", "--device", "cpu")
    assert ended == 0
    assert "`de` to `zh` goes by `en`" in err


def test_a_text_that_is_in_the_language_already_stays(cli):
    ended, out, err = cli("translate", DE, "--to", "de", "--device", "cpu")
    assert (ended, out) == (0, DE + "\n")
    assert "it is German already" in err


def test_a_language_that_is_not_here(cli):
    assert "the language `fr` is not here; there are en (English), de" in cli.fails("translate", EN, "--to", "fr")
    assert "English twice" in cli.fails("translate", EN, "--to", "en", "--from", "en")


def test_lines_of_a_file_give_lines(cli, tmp_path):
    (tmp_path / "in.txt").write_text(f"{EN}\n\n{SENTENCES['en'][1]}\n", encoding="utf-8")
    ended, out, err = cli("translate", "--to", "de", "--input", "in.txt", "--output", "out.txt", "--device", "cpu")
    assert (ended, out) == (0, ""), err
    lines = (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 4
    assert lines[1] == ""


def test_json_tells_what_there_is_to_say(cli):
    ended, out, _ = cli("translate", DE, "--to", "zh", "--json", "--device", "cpu")
    told = json.loads(out)
    assert ended == 0
    assert told["source"] == DE
    assert "goes by" in told["notes"][0]
    assert set(told["translations"][0]) == {"text", "finished"}


def test_a_document_is_translated(cli, tmp_path):
    (tmp_path / "a.md").write_text(f"# {EN}\n\n`code` stays.\n\n```\nas it is\n```\n", encoding="utf-8")
    ended, _, err = cli("translate", "a.md", "--to", "zh", "--output", "a.zh.md", "--device", "cpu")
    assert ended == 0, err
    made = (tmp_path / "a.zh.md").read_text(encoding="utf-8")
    assert made.startswith("# ")
    assert "```\nas it is\n```" in made
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.txt").write_text(EN, encoding="utf-8")
    ended, _, err = cli("translate", "docs", "--to", "de", "--out", "docs.de", "--device", "cpu")
    assert ended == 0, err
    assert (tmp_path / "docs.de" / "b.txt").is_file()
    assert "give either texts or files" in cli.fails("translate", "a.md", EN, "--to", "de")


def test_a_file_that_is_there_is_not_replaced_by_one_of_several(cli, tmp_path):
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(EN, encoding="utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b.md").write_text("mine", encoding="utf-8")
    assert "b.md is there already" in cli.fails("translate", "a.md", "b.md", "--to", "de", "--out", "out")
    assert (tmp_path / "out" / "b.md").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "out" / "a.md").exists()


def test_a_model_is_taken_as_ever(cli, tmp_path):
    ended, out, _ = cli("translate", OLD, "three two one two four")
    assert (ended, out) == (0, "vier zwei eins zwei drei\n")
    assert "runs/none is not a folder" in cli.fails("translate", "runs/none", "one")
    ended, out, _ = cli("translate", "de-en", DE, "--nbest", 2, "--beam", 2, "--device", "cpu")
    assert ended == 0
    assert out.startswith("1\t1\t")
    assert "--nbest goes with a model" in cli.fails("translate", EN, "--to", "de", "--nbest", 2, "--beam", 2)
    assert "--glossary goes without a model" in cli.fails("translate", OLD, "one", "--glossary", "x.tsv")
    assert "say what to translate" in cli.fails("translate")


def test_a_glossary_comes_out_as_written(cli, tmp_path):
    (tmp_path / "terms.tsv").write_text("station\tHaltepunkt\n", encoding="utf-8")
    ended, out, err = cli("translate", EN, "--to", "de", "--glossary", "terms.tsv", "--device", "cpu")
    assert ended == 0, err
    assert "Haltepunkt" in out


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_in_python_a_text_gives_a_text_and_several_a_list():
    assert gf.translate(EN, to="de") == by("en", "de", EN)
    assert gf.translate((one for one in [EN, EN]), "zh") == [by("en", "zh", EN)] * 2
    assert gf.translate([DE, ZH]) == [by("de", "en", DE), by("zh", "en", ZH)]
    assert gf.translate([], to="de") == []
    assert gf.translate("12345", to="de") == "12345"
    with pytest.raises(ConfigError, match="into which language"):
        gf.translate(EN)


def test_in_python_too_it_is_said_that_it_goes_by_english():
    with warnings.catch_warnings(record=True) as told:  # such small models give cause for others too
        warnings.simplefilter("always")
        gf.translate(DE, to="zh")
    assert any("`de` to `zh` goes by `en`" in str(one.message) for one in told)
