"""`glassformer evaluate` on files: with a recipe, without one, and for a Marian folder."""

import json
from pathlib import Path

import pytest
from tiny_translators import sentences, tiny_bundle, write_marian

CHINESE = ["今天天气很好。", "我们去公园吧！", "这本书多少钱？"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    for name, lines in (("a.en", sentences(3, seed=1)), ("a.de", sentences(3, seed=2)), ("a.zh", CHINESE)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return ["--src", "a.en", "--ref", "a.de"]


def test_files_need_no_recipe(cli, files):
    folder = tiny_bundle(Path("model"))
    code, printed, told = cli("evaluate", folder, *files, "--beam", 2, "--lowercase")
    assert (code, told) == (0, "")
    assert "|case:lc|" in printed
    recorded = json.loads((folder / "scores.json").read_text())["a.en a.de"]
    assert (recorded["beam"], recorded["length_penalty"]) == (2, 1.0)
    for wrong in ("0", "-1"):
        assert f"--beam {wrong} must be at least 1" in cli.fails("evaluate", folder, *files, "--beam", wrong)
    (folder / "recipe.toml").write_text("damaged [")
    code, printed, told = cli("evaluate", folder, *files)
    assert code == 0
    assert told.endswith("; judged without it\n")
    (folder / "recipe.toml").unlink()
    told = cli.fails("evaluate", folder)
    assert "holds no recipe that would name `test` pairs; give --src ... and --ref ... instead" in told


def test_a_marian_folder_is_judged_and_nothing_is_written_into_it(cli, files):
    folder = write_marian(Path("marian"), shared=True)
    before = sorted(folder.iterdir())
    code, printed, told = cli("evaluate", folder, *files, "--json")
    assert (code, told) == (0, "")
    assert json.loads(printed)["sentences"] == 3
    assert sorted(folder.iterdir()) == before
    assert "holds no recipe" in cli.fails("evaluate", folder, "--split", "test")


def test_chinese_is_counted_by_its_own_rules_or_a_warning_is_given(cli, files):
    folder = tiny_bundle(Path("model"))
    chinese = ["--src", "a.en", "--ref", "a.zh"]
    code, printed, told = cli("evaluate", folder, *chinese)
    assert (code, told.count("\n")) == (0, 1)
    assert "for Chinese give --tokenize zh" in told
    code, printed, told = cli("evaluate", folder, *chinese, "--tokenize", "zh")
    assert (code, told) == (0, "")
    assert "|tok:zh|" in printed
    for wrong, near in (("zhh", "did you mean `zh`?"), ("13", "did you mean `13a`?")):
        assert near in cli.fails("evaluate", folder, *chinese, "--tokenize", wrong)
