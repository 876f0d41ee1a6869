"""`glassformer translate` without a model: texts, lines and documents by the box."""

import json
import warnings

import pytest
from small_run import OLD
from tiny_box import SENTENCES

import glassformer as gf
from glassformer.common.errors import ConfigError
from glassformer.pipelines.polyglot import polyglot

EN, DE, ZH = (SENTENCES[language][0] for language in ("en", "de", "zh"))


@pytest.fixture(autouse=True)
def in_an_empty_folder(tiny_box, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    polyglot.cache_clear()
    yield
    polyglot.cache_clear()  # other tests use the box that ships


def translated(source: str, target: str, text: str) -> str:
    return polyglot("cpu", "auto").translator(source, target).translate([text])[0]


def test_target_language(cli):
    for to, target in (("de", "de"), ("German", "de"), ("中文", "zh"), ("zh-CN", "zh")):
        code, out, err = cli("translate", EN, "--to", to, "--device", "cpu")
        assert (code, out) == (0, translated("en", target, EN) + "\n"), err
    code, out, err = cli("translate", "--from", "en", "--to", "de", EN, "--beam", 1, "--device", "cpu")
    assert code == 0, err


def test_the_default_target_is_english(cli):
    code, out, _ = cli("translate", DE, ZH, "--device", "cpu")
    assert (code, out) == (0, translated("de", "en", DE) + "\n" + translated("zh", "en", ZH) + "\n")


def test_english_needs_a_target(cli):
    question = "from English into which language? Say --to 'de' (German) or --to 'zh' (Chinese)"
    assert cli.fails("translate", EN) == question


def test_a_misspelt_file_name_is_not_a_text(cli):
    assert cli.fails("translate", "REDME.md", "--to", "de").startswith("there is no file REDME.md")


def test_german_to_chinese_goes_by_english(cli):
    code, _, err = cli("translate", DE, "--to", "zh", "--device", "cpu")
    assert code == 0
    assert "`de` to `zh` goes by `en`" in err


def test_a_text_already_in_the_target_language_stays(cli):
    code, out, err = cli("translate", DE, "--to", "de", "--device", "cpu")
    assert (code, out) == (0, DE + "\n")
    assert "it is German already" in err


def test_unknown_languages(cli):
    assert "the language `fr` is not here; there are en (English), de" in cli.fails("translate", EN, "--to", "fr")
    assert "English twice" in cli.fails("translate", EN, "--to", "en", "--from", "en")


def test_lines_of_a_file_give_lines(cli, tmp_path):
    (tmp_path / "in.txt").write_text(f"{EN}\n\n{SENTENCES['en'][1]}\n", encoding="utf-8")
    code, out, err = cli("translate", "--to", "de", "--input", "in.txt", "--output", "out.txt", "--device", "cpu")
    assert (code, out) == (0, ""), err
    lines = (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 4
    assert lines[1] == ""


def test_json(cli):
    code, out, _ = cli("translate", DE, "--to", "zh", "--json", "--device", "cpu")
    row = json.loads(out)
    assert code == 0
    assert row["source"] == DE
    assert "goes by" in row["notes"][0]
    assert set(row["translations"][0]) == {"text", "finished"}


def test_documents(cli, tmp_path):
    (tmp_path / "a.md").write_text(f"# {EN}\n\n`code` stays.\n\n```\nas it is\n```\n", encoding="utf-8")
    code, _, err = cli("translate", "a.md", "--to", "zh", "--output", "a.zh.md", "--device", "cpu")
    assert code == 0, err
    made = (tmp_path / "a.zh.md").read_text(encoding="utf-8")
    assert made.startswith("# ")
    assert "```\nas it is\n```" in made
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.txt").write_text(EN, encoding="utf-8")
    code, _, err = cli("translate", "docs", "--to", "de", "--out", "docs.de", "--device", "cpu")
    assert code == 0, err
    assert (tmp_path / "docs.de" / "b.txt").is_file()
    assert "give either texts or files" in cli.fails("translate", "a.md", EN, "--to", "de")


def test_several_documents_replace_no_file(cli, tmp_path):
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(EN, encoding="utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b.md").write_text("mine", encoding="utf-8")
    assert "b.md is there already" in cli.fails("translate", "a.md", "b.md", "--to", "de", "--out", "out")
    assert (tmp_path / "out" / "b.md").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "out" / "a.md").exists()


def test_a_model_can_be_named(cli, tmp_path):
    code, out, _ = cli("translate", OLD, "three two one two four")
    assert (code, out) == (0, "vier zwei eins zwei drei\n")
    assert "runs/none is not a folder" in cli.fails("translate", "runs/none", "one")
    code, out, _ = cli("translate", "de-en", DE, "--nbest", 2, "--beam", 2, "--device", "cpu")
    assert code == 0
    assert out.startswith("1\t1\t")
    assert "--nbest goes with a model" in cli.fails("translate", EN, "--to", "de", "--nbest", 2, "--beam", 2)
    assert "--glossary goes without a model" in cli.fails("translate", OLD, "one", "--glossary", "x.tsv")
    assert "say what to translate" in cli.fails("translate")


def test_glossary(cli, tmp_path):
    (tmp_path / "terms.tsv").write_text("station\tHaltepunkt\n", encoding="utf-8")
    code, out, err = cli("translate", EN, "--to", "de", "--glossary", "terms.tsv", "--device", "cpu")
    assert code == 0, err
    assert "Haltepunkt" in out


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_in_python():
    assert gf.translate(EN, to="de") == translated("en", "de", EN)
    assert gf.translate((one for one in [EN, EN]), "zh") == [translated("en", "zh", EN)] * 2
    assert gf.translate([DE, ZH]) == [translated("de", "en", DE), translated("zh", "en", ZH)]
    assert gf.translate([], to="de") == []
    assert gf.translate("12345", to="de") == "12345"
    with pytest.raises(ConfigError, match="into which language"):
        gf.translate(EN)


def test_python_warns_of_a_way_by_english():
    with warnings.catch_warnings(record=True) as warned:  # such small models give cause for others too
        warnings.simplefilter("always")
        gf.translate(DE, to="zh")
    assert any("`de` to `zh` goes by `en`" in str(one.message) for one in warned)
