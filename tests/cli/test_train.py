"""`glassformer train`, `evaluate` and `translate` as a user meets them, mistakes first."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from small_run import OLD, RECIPE, call, command, train_here, write_recipe

from glassformer.cli.train import train
from glassformer.train import built_in

FEW = ("--set", "train.steps=4", "--set", "train.log_every=2")


@pytest.fixture
def recipe(tmp_path):
    return write_recipe(tmp_path / "mine")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run, beside the folder `mine` of its recipe."""
    folder = tmp_path_factory.mktemp("trained")
    train_here(write_recipe(folder / "mine"), folder / "run", "train.steps=4")
    return folder / "run"


def test_unequal_line_counts(cli, recipe, tmp_path):
    with (recipe.parent / "train.en").open("a") as file:
        file.write("one more\nand another\n")
    told = cli.fails("train", recipe, "--out", tmp_path / "run")
    assert "train.en has 302 lines but" in told
    assert "train.de has 300: line 301 has no partner in" in told


def test_not_utf8(cli, recipe, tmp_path):
    path = recipe.parent / "train.de"
    lines = path.read_bytes().split(b"\n")
    lines[6] = b"f\xfcnf"
    path.write_bytes(b"\n".join(lines))
    told = cli.fails("train", recipe, "--out", tmp_path / "run")
    assert f"{path}, line 7: not UTF-8 (byte 2 of the line is 0xfc)" in told
    assert "iconv" in told


def test_an_empty_corpus(cli, recipe, tmp_path):
    for name in ("train.en", "train.de"):
        (recipe.parent / name).write_text("")
    assert "the corpus is empty" in cli.fails("train", recipe, "--out", tmp_path / "run")


def test_the_help_names_every_built_in_recipe():
    listed = " ".join((train.__doc__ or "").split()).partition("Built-in recipes: ")[2].partition(". For your own")[0]
    assert {name.split()[0] for name in listed.split(", ")} == set(built_in())


@pytest.mark.parametrize("command", ["train", "doctor"])
def test_a_recipe_whose_data_are_not_here_says_how_to_name_their_folder(cli, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, _, told = cli(command, "multi30k")
    assert code == 2
    assert f"{tmp_path / 'data' / 'multi30k-bpe' / 'train.en.gz'} does not exist" in told
    assert "relative paths start at `data/multi30k-bpe` (data.root)" in told
    assert "--set data.root=FOLDER" in told
    assert not list(tmp_path.rglob("recipe.toml"))


def test_test_pairs_that_are_not_there_are_told_before_training(cli, recipe, tmp_path):
    """They are read when training has ended."""
    with recipe.open("a", encoding="utf-8") as file:
        file.write('[[data.test]]\ntsv = "nowhere.tsv"\n')
    told = cli.fails("train", recipe, "--out", tmp_path / "run")
    assert "nowhere.tsv does not exist; relative paths start at the recipe's folder" in told


def test_a_missing_file(cli, recipe, tmp_path):
    (recipe.parent / "train.de").rename(recipe.parent / "train.deu")
    told = cli.fails("train", recipe, "--out", tmp_path / "run")
    assert "train.de does not exist; did you mean `train.deu`?" in told


def test_a_vocabulary_larger_than_the_data(cli, recipe, tmp_path):
    sets = ("--set", "tokenizer.kind=bpe", "--set", "tokenizer.vocab_size=5000")
    told = cli.fails("train", recipe, "--out", tmp_path / "run", *sets)
    assert "tokenizer.vocab_size 5000 is larger than the data allows" in told
    assert "set tokenizer.vocab_size to at most" in told


def test_a_mistake_in_the_recipe(cli, recipe, tmp_path):
    for change, said in (
        ("train.warmup_stps=5", "unknown key `train.warmup_stps` in the recipe; did you mean `warmup_steps`?"),
        ("train.steps=many", "train.steps = 'many' must be a whole number"),
        ("training.steps=5", "unknown section `training`"),
        ("data=5", "`data` must be a section"),
        ("data.max_tokens=300", "data.max_tokens = 300 and the end token do not fit model.max_length = 272"),
        ("train.batch_tokens=5", "train.batch_tokens = 5 is smaller than the longest sentence, 10 tokens"),
    ):
        code, _, told = cli("train", recipe, "--out", tmp_path / "run", "--set", change)
        assert code == 2
        assert told.splitlines()[-1].startswith("glassformer: ")
        assert said in told.splitlines()[-1]
    # Mended, the same command works: the failed starts left nothing in the way.
    code, _, told = cli("train", recipe, "--out", tmp_path / "run", *FEW)
    assert code == 0, told


def test_no_recipe_an_unknown_one_and_bad_toml(cli, recipe, tmp_path):
    assert "name a recipe: " in cli.fails("train")
    assert "did you mean `numerals`?" in cli.fails("train", "numeral")
    recipe.write_text("[train\n")
    assert "is not valid TOML" in cli.fails("train", recipe)
    assert "holds no run to continue" in cli.fails("train", "--resume", "--out", tmp_path / "nothing")


def test_a_folder_that_holds_something_else(cli, recipe, tmp_path):
    assert cli("train", recipe, "--out", tmp_path / "run", *FEW)[0] == 0
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    told = cli.fails("train", recipe, "--out", tmp_path / "run", *FEW)
    assert "holds another run; continue it with --resume, or choose another --out" in told
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    assert "is not empty and holds no run of ours" in cli.fails("train", recipe, "--out", tmp_path / "photos")


def test_a_users_own_files_are_left_alone(cli, recipe, tmp_path):
    mine = recipe.parent  # a recipe and its texts, and no run
    for name in (".writable", "tokenizer.mine.json"):
        (mine / name).write_text("mine")
    before = {path.name: path.read_bytes() for path in mine.iterdir()}
    for words in ((recipe, "--out", mine), (recipe, "--out", mine, "--resume"), ("--out", mine, "--resume")):
        assert "is not empty and holds no run of ours; choose another --out" in cli.fails("train", *words)
    assert {path.name: path.read_bytes() for path in mine.iterdir()} == before


@pytest.mark.parametrize("content", ["[train\n", "data = 5\n", "\udcff", None])
def test_an_unreadable_recipe_of_a_run(cli, tmp_path, content):
    run = tmp_path / "run"
    shutil.copytree(OLD, run)
    path = run / "recipe.toml"
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_text(content, encoding="utf-8", errors="surrogateescape")
    for words in (("train", "--resume", "--out", run), ("evaluate", run, "--split", "valid")):
        assert "recipe.toml" in cli.fails(*words) or "`data` must be a section" in cli.fails(*words)
    assert cli("translate", run, "one")[0] == 0  # which needs no recipe


@pytest.mark.parametrize("place", ["a file", "below a file", "/proc/nowhere/run"])
def test_a_folder_that_cannot_be_written(cli, recipe, tmp_path, place):
    (tmp_path / "file").touch()
    out = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "run"}.get(place, Path(place))
    told = cli.fails("train", recipe, "--out", out)
    assert f"{out} cannot be written: " in told
    assert told.endswith("choose another --out")


def test_a_device_that_is_not_there(cli, recipe, tmp_path):
    told = cli.fails("train", recipe, "--out", tmp_path / "run", "--device", "gpu")
    assert told.startswith("--device gpu cannot be used")


def test_a_mistake_as_a_real_process(recipe, tmp_path):
    done = call(command("train", recipe, "--out", "/proc/nowhere/run"), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_one_huge_line_is_skipped_and_counted(cli, recipe, tmp_path, kind):
    with (recipe.parent / "train.en").open("a") as src, (recipe.parent / "train.de").open("a") as tgt:
        src.write("one " * 100_000 + "\n")
        tgt.write("eins\n")
    size = ("--set", f"tokenizer.kind={kind}", *(("--set", "tokenizer.vocab_size=285") if kind == "bpe" else ()))
    code, _, told = cli("train", recipe, "--out", tmp_path / "run", *FEW, *size)
    assert code == 0
    assert "train: 300 pairs" in told
    assert "left out: 1 longer than 256 tokens" in told


def test_from_any_folder_to_a_whole_model(cli, tmp_path, monkeypatch):
    sizes = [f'data.{split}=[{{builtin="numerals", split="{split}", size=60}}]' for split in ("train", "valid", "test")]
    small = ["model.d_model=32", "model.d_ff=64", "model.layers=1", "tokenizer.vocab_size=350", "score.samples=4"]
    few = ["train.steps=6", "train.log_every=2", "train.valid_every=3"]
    words = [word for change in [*sizes, *small, *few] for word in ("--set", change)]
    done = call(command("train", "numerals", *words), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "runs" / "numerals"
    names = ["config.json", "curve.png", "metrics.jsonl", "model.safetensors", "recipe.toml", "scores.json"]
    assert {*names, "tokenizer.json"} <= {path.name for path in out.iterdir()}
    assert "test pairs, never trained on:  BLEU" in done.stdout
    assert "the learning curve is in" in done.stderr
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    scores = json.loads((out / "scores.json").read_text())["test"]
    assert scores["sentences"] == 60
    assert scores["beam"] == 1
    assert scores["bleu_signature"].startswith("nrefs:1")
    monkeypatch.chdir(tmp_path)
    code, printed, _ = cli("evaluate", "runs/numerals", "--split", "valid", "--json")
    assert code == 0
    assert json.loads(printed)["sentences"] == 60
    assert set(json.loads((out / "scores.json").read_text())) == {"test", "valid"}


def test_evaluate_files_and_its_mistakes(cli, recipe, trained, tmp_path):
    run = trained
    src, ref = recipe.parent / "valid.en", recipe.parent / "valid.de"
    code, printed, _ = cli("evaluate", run, "--src", src, "--ref", ref, "--beam", 2)
    assert code == 0
    assert "BLEU" in printed
    assert "nrefs:1" in printed
    assert json.loads((run / "scores.json").read_text())["valid.en valid.de"]["beam"] == 2
    assert cli("evaluate", run, "--src", src, "--ref", ref, "--precision", "int8")[0] == 0
    assert json.loads((run / "scores.json").read_text())["valid.en valid.de"]["precision"] == "int8"
    assert "--precision 'half' is not one of" in cli.fails("evaluate", run, "--precision", "half", "--split", "valid")
    assert "go together" in cli.fails("evaluate", run, "--src", src)
    assert "not both" in cli.fails("evaluate", run, "--src", src, "--ref", ref, "--split", "test")
    assert "names no `test` pairs" in cli.fails("evaluate", run, "--split", "test")
    assert "a recipe has train, valid and test" in cli.fails("evaluate", run, "--split", "dev")
    assert "is not a folder" in cli.fails("evaluate", tmp_path / "nowhere")
    ref.write_text("eins\n")
    assert "has 30 lines but" in cli.fails("evaluate", run, "--src", src, "--ref", ref)


def test_translate_lines(cli, trained, monkeypatch):
    run = trained
    code, printed, _ = cli("translate", run, "one two", "three")
    assert code == 0
    assert printed.count("\n") == 2

    def typed(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    typed(b"one two\n\nthree\r\n")
    lines = cli("translate", run)[1].split("\n")
    assert len(lines) == 4
    assert [lines[0], lines[2]] == printed.split("\n")[:2]
    assert lines[1] == ""
    typed(b"one\ntw\xff\n")
    code, printed, told = cli("translate", run)
    assert code == 0
    assert printed.count("\n") == 2
    assert "line 2: not UTF-8 (byte 3 of the line is 0xff)" in told


def test_separate_vocabularies_and_tsv(cli, tmp_path):
    folder = tmp_path / "mine"
    recipe = write_recipe(folder, RECIPE.replace('src = "train.en"\ntgt = "train.de"', 'tsv = "train.tsv"'))
    pairs = zip(*((folder / f"train.{side}").read_text().splitlines() for side in ("en", "de")), strict=True)
    (folder / "train.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    code, _, told = cli("train", recipe, "--out", tmp_path / "run", *FEW, "--set", "tokenizer.joint=false")
    assert code == 0, told
    assert (tmp_path / "run" / "tokenizer.tgt.json").exists()
    assert cli("translate", tmp_path / "run", "one")[0] == 0
