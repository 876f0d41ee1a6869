"""`glassformer evaluate` on files: with a recipe, without one, and for a Marian folder."""

import json
import shutil
from pathlib import Path

import pytest
from small_run import OLD
from tiny_translators import sentences, write_marian

CHINESE = ["今天天气很好。", "我们去公园吧！", "这本书多少钱？"]
FILES = ("--src", "a.en", "--ref", "a.de")


@pytest.fixture(autouse=True)
def in_a_folder_of_texts(tmp_path, monkeypatch):
    for name, lines in (("a.en", sentences(3, seed=1)), ("a.de", sentences(3, seed=2)), ("a.zh", CHINESE)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def recorded(folder: Path) -> dict:
    return json.loads((folder / "scores.json").read_text())["a.en a.de"]


def test_files_need_no_recipe(cli, model):
    folder = Path(shutil.copytree(model, "model"))
    code, printed, err = cli("evaluate", folder, *FILES, "--beam", 2, "--lowercase")
    assert (code, err) == (0, "")
    assert "|case:lc|" in printed
    assert (recorded(folder)["beam"], recorded(folder)["length_penalty"]) == (2, 1.0)
    for wrong in ("0", "-1"):
        assert f"--beam {wrong} must be at least 1" in cli.fails("evaluate", folder, *FILES, "--beam", wrong)
    (folder / "recipe.toml").write_text("damaged [")
    code, printed, err = cli("evaluate", folder, *FILES)
    assert code == 0
    assert err.endswith("; judged without it\n")
    (folder / "recipe.toml").unlink()
    error = cli.fails("evaluate", folder)
    assert "holds no recipe that would name `test` pairs; give --src ... and --ref ... instead" in error


def test_a_run_and_mistakes(cli):
    run = Path(shutil.copytree(OLD, "run"))
    code, printed, _ = cli("evaluate", run, *FILES, "--precision", "int8")
    assert code == 0
    assert "BLEU" in printed
    assert "nrefs:1" in printed
    assert recorded(run)["precision"] == "int8"
    for words, error in (
        ((*FILES, "--precision", "half"), "--precision 'half' is not one of"),
        (("--src", "a.en"), "go together"),
        ((*FILES, "--split", "test"), "not both"),
        (("--split", "test"), "names no `test` pairs"),
        (("--split", "dev"), "a recipe has train, valid and test"),
    ):
        assert error in cli.fails("evaluate", run, *words)
    assert "is not a folder" in cli.fails("evaluate", "nowhere")
    Path("a.de").write_text("eins\n")
    assert "has 3 lines but" in cli.fails("evaluate", run, *FILES)


def test_damaged_scores_are_kept_and_the_new_ones_printed(cli):
    run = Path(shutil.copytree(OLD, "run"))
    (run / "scores.json").write_text("{")
    code, printed, err = cli("evaluate", run, *FILES)
    assert (code, printed[:4]) == (0, "BLEU")
    assert "scores.json is damaged" in err
    assert err.endswith("delete it and measure again; these scores are not recorded\n")
    assert (run / "scores.json").read_text() == "{"


def test_nothing_is_written_into_a_marian_folder(cli):
    folder = write_marian(Path("marian"), shared=True)
    before = sorted(folder.iterdir())
    code, printed, err = cli("evaluate", folder, *FILES, "--json")
    assert (code, err) == (0, "")
    assert json.loads(printed)["sentences"] == 3
    assert sorted(folder.iterdir()) == before
    assert "holds no recipe" in cli.fails("evaluate", folder, "--split", "test")


def test_chinese_needs_its_own_tokenization(cli, model):
    folder = shutil.copytree(model, "model")
    evaluate = ("evaluate", folder, "--src", "a.en", "--ref", "a.zh")
    code, printed, err = cli(*evaluate)
    assert (code, err.count("\n")) == (0, 1)
    assert "for Chinese give --tokenize zh" in err
    code, printed, err = cli(*evaluate, "--tokenize", "zh")
    assert (code, err) == (0, "")
    assert "|tok:zh|" in printed
    for wrong, near in (("zhh", "did you mean `zh`?"), ("13", "did you mean `13a`?")):
        assert near in cli.fails(*evaluate, "--tokenize", wrong)
