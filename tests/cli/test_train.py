"""`glassformer train` and `glassformer demo`, mistakes first."""

import io
import json
import shutil
from pathlib import Path

import pytest
from small_run import OLD, RECIPE, call, command, write_recipe

from glassformer.cli.train import show_results, train
from glassformer.common.files import to_toml
from glassformer.train import Report, built_in, read_recipe

FEW = ("--set", "train.steps=4", "--set", "train.log_every=2")


@pytest.fixture
def recipe(tmp_path):
    return write_recipe(tmp_path / "mine")


@pytest.fixture
def run(tmp_path):
    """A copy of a small finished run."""
    return Path(shutil.copytree(OLD, tmp_path / "run"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("files", "change", "settings", "errors"),
    [
        ("train.en", lambda data: data + b"one more\nand another\n", [],
         ["train.en has 302 lines but", "train.de has 300: line 301 has no partner in"]),
        ("train.de", lambda data: b"eins\n" * 6 + b"f\xfcnf\n" + b"eins\n" * 293, [],
         ["train.de, line 7: not UTF-8 (byte 2 of the line is 0xfc)", "iconv"]),
        ("train.*", lambda data: b"", [], ["the corpus is empty"]),
        ("recipe.toml", lambda data: data + b'[[data.test]]\ntsv = "nowhere.tsv"\n', [],  # not read until the end
         ["nowhere.tsv does not exist; relative paths start at the recipe's folder"]),
        ("train.en", bytes, ["tokenizer.kind=bpe", "tokenizer.vocab_size=5000"],
         ["tokenizer.vocab_size 5000 is larger than the data allows", "set tokenizer.vocab_size to at most"]),
    ],
)  # fmt: skip
def test_mistakes_in_the_data(cli, recipe, tmp_path, files, change, settings, errors):
    for path in recipe.parent.glob(files):
        path.write_bytes(change(path.read_bytes()))
    options = [word for setting in settings for word in ("--set", setting)]
    line = cli.fails("train", recipe, "--out", tmp_path / "run", *options)
    assert all(error in line for error in errors), line


@pytest.mark.parametrize("how", [["--skip-bad"], ["--set", "data.skip_bad=true"], ["in the recipe"]])
def test_bad_lines_are_all_told_and_left_out_on_demand(cli, recipe, tmp_path, how):
    lines = (recipe.parent / "train.de").read_bytes().splitlines(keepends=True)
    for place in range(5, 17):
        lines[place] = b"f\xfcnf\n"
    (recipe.parent / "train.de").write_bytes(b"".join(lines))
    code, _, err = cli("train", recipe, "--out", tmp_path / "run")
    first, *told = err.splitlines()
    assert (code, len(told)) == (2, 10)
    assert "12 bad lines and 288 good ones" in first
    assert "train.de, line 6: not UTF-8" in told[0]
    assert not (tmp_path / "run").exists()
    if how == ["in the recipe"]:
        how = recipe.write_text(RECIPE.replace('tgt = "train.de"', 'tgt = "train.de"\nskip_bad = true')) and []
    code, _, err = cli("train", recipe, "--out", tmp_path / "run", *FEW, *how)
    assert code == 0, err
    assert "train: 288 pairs" in err
    assert "left out: 12 bad lines" in err


def test_a_missing_file(cli, recipe, tmp_path):
    (recipe.parent / "train.de").rename(recipe.parent / "train.deu")
    error = cli.fails("train", recipe, "--out", tmp_path / "run")
    assert "train.de does not exist; did you mean `train.deu`?" in error


def test_the_help_names_every_built_in_recipe():
    listed = " ".join((train.__doc__ or "").split()).partition("Built-in recipes: ")[2].partition(". For your own")[0]
    assert {name.split()[0] for name in listed.split(", ")} == set(built_in())


@pytest.mark.parametrize("command", ["train", "doctor"])
def test_a_built_in_recipe_without_its_data(cli, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, _, err = cli(command, "multi30k")
    assert code == 2
    assert f"{tmp_path / 'data' / 'multi30k-bpe' / 'train.en.gz'} does not exist" in err
    assert "relative paths start at `data/multi30k-bpe` (data.root)" in err
    assert "--set data.root=FOLDER" in err
    assert not list(tmp_path.rglob("recipe.toml"))


def test_mistakes_in_the_recipe(cli, recipe, tmp_path):
    for change, error in (
        ("train.warmup_stps=5", "unknown key `train.warmup_stps` in the recipe; did you mean `warmup_steps`?"),
        ("train.steps=many", "train.steps = 'many' must be a whole number"),
        ("training.steps=5", "unknown section `training`"),
        ("data=5", "`data` must be a section"),
        ("data.max_tokens=300", "data.max_tokens = 300 and the end token do not fit model.max_length = 272"),
        ("train.batch_tokens=5", "train.batch_tokens = 5 is smaller than the longest sentence, 10 tokens"),
    ):
        code, _, err = cli("train", recipe, "--out", tmp_path / "run", "--set", change)
        assert code == 2
        assert err.splitlines()[-1].startswith("glassformer: ")
        assert error in err.splitlines()[-1]
    # Once corrected, the same command works: the failed starts left nothing in the way.
    code, _, err = cli("train", recipe, "--out", tmp_path / "run", *FEW)
    assert code == 0, err


def test_no_recipe_an_unknown_one_and_bad_toml(cli, recipe, tmp_path):
    assert "name a recipe: " in cli.fails("train")
    assert "did you mean `numerals`?" in cli.fails("train", "numeral")
    recipe.write_text("[train\n")
    assert "is not valid TOML" in cli.fails("train", recipe)
    assert "holds no run to continue" in cli.fails("train", "--resume", "--out", tmp_path / "nothing")


def test_another_run_is_not_replaced(cli, recipe, run):
    (run / ".glassformer.lock").touch()  # as each run has
    before = contents(run)
    error = cli.fails("train", recipe, "--out", run, *FEW)
    assert "holds another run; continue it with --resume, or choose another --out" in error
    assert "holds another run; choose another --out" in cli.fails("demo", "--out", run)
    assert contents(run) == before


def test_a_users_own_files_are_left_alone(cli, recipe):
    folder = recipe.parent  # a recipe and its texts, and no run
    for name in (".writable", "tokenizer.mine.json"):
        (folder / name).write_text("mine")
    before = contents(folder)
    for words in ((recipe, "--out", folder), (recipe, "--out", folder, "--resume"), ("--out", folder, "--resume")):
        assert "is not empty and holds no run of ours; choose another --out" in cli.fails("train", *words)
    assert contents(folder) == before


@pytest.mark.parametrize("content", ["[train\n", "data = 5\n", "\udcff", None])
def test_an_unreadable_recipe_of_a_run(cli, run, content):
    path = run / "recipe.toml"
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_text(content, encoding="utf-8", errors="surrogateescape")
    for words in (("train", "--resume", "--out", run), ("evaluate", run, "--split", "valid")):
        error = cli.fails(*words)
        assert "recipe.toml" in error or "`data` must be a section" in error
    assert cli("translate", run, "one")[0] == 0  # which needs no recipe


@pytest.mark.parametrize("place", ["a file", "below a file", "/proc/nowhere/run"])
def test_a_folder_that_cannot_be_written(cli, recipe, tmp_path, place):
    (tmp_path / "file").touch()
    out = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "run"}.get(place, Path(place))
    error = cli.fails("train", recipe, "--out", out)
    assert f"{out} cannot be written: " in error
    assert error.endswith("choose another --out")


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
    code, _, err = cli("train", recipe, "--out", tmp_path / "run", *FEW, *size)
    assert code == 0
    assert "train: 300 pairs" in err
    assert "left out: 1 longer than 256 tokens" in err


def test_from_any_folder_to_a_whole_model(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = [f'data.{split}=[{{builtin="numerals", split="{split}", size=60}}]' for split in ("train", "valid", "test")]
    small = ["model.d_model=32", "model.d_ff=64", "model.layers=1", "tokenizer.vocab_size=350", "score.samples=4"]
    few = ["train.steps=6", "train.log_every=2", "train.valid_every=3"]
    words = [word for change in [*sizes, *small, *few] for word in ("--set", change)]
    code, printed, err = cli("train", "numerals", *words)
    assert code == 0, err
    out = tmp_path / "runs" / "numerals"
    names = ["config.json", "curve.png", "metrics.jsonl", "model.safetensors", "recipe.toml", "scores.json"]
    assert {*names, "tokenizer.json"} <= {path.name for path in out.iterdir()}
    assert "test pairs, never trained on:  BLEU" in printed
    assert "the learning curve is in" in err
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    scores = json.loads((out / "scores.json").read_text())["test"]
    assert (scores["sentences"], scores["beam"]) == (60, 1)
    assert scores["bleu_signature"].startswith("nrefs:1")
    code, printed, _ = cli("evaluate", "runs/numerals", "--split", "valid", "--json")
    assert code == 0
    assert json.loads(printed)["sentences"] == 60
    assert set(json.loads((out / "scores.json").read_text())) == {"test", "valid"}


def test_separate_vocabularies_and_tsv(cli, tmp_path):
    folder = tmp_path / "mine"
    recipe = write_recipe(folder, RECIPE.replace('src = "train.en"\ntgt = "train.de"', 'tsv = "train.tsv"'))
    pairs = zip(*((folder / f"train.{side}").read_text().splitlines() for side in ("en", "de")), strict=True)
    (folder / "train.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    code, _, err = cli("train", recipe, "--out", tmp_path / "run", *FEW, "--set", "tokenizer.joint=false")
    assert code == 0, err
    assert (tmp_path / "run" / "tokenizer.tgt.json").exists()
    assert cli("translate", tmp_path / "run", "one")[0] == 0


@pytest.mark.parametrize(
    ("train_lines", "line", "met"),
    [
        (["four", "one one"], "valid pairs, never trained on:  BLEU", 0),
        (["four", " two", "one", "two"], "valid pairs (3 of 4 are also training pairs):  BLEU", 3),
        (None, "valid pairs:  BLEU", None),
    ],
)
def test_results_say_which_pairs_were_trained_on(run, tmp_path, capsys, train_lines, line, met):
    (run / "recipe.toml").write_text((run / "recipe.toml").read_text().replace("/texts", str(tmp_path)))
    for name, lines in (("train", train_lines), ("valid", ["one", "two", "one", "three"])):
        for side in ("en", "de") if lines else ():
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
    show_results(run, "cpu", Report(io.StringIO()))
    assert line in capsys.readouterr().out
    assert json.loads((run / "scores.json").read_text())["valid"].get("met_in_training") == met


def test_a_second_demo_leaves_the_folder_as_it_is(cli, run, monkeypatch):
    """And names no curve where there is none."""
    (run / "recipe.toml").write_text(to_toml(read_recipe("numerals").to_dict()))  # by it, a finished demo
    (run / "notes.txt").write_text("mine")
    before = contents(run)
    monkeypatch.setattr("glassformer.cli.train.show_results", lambda *_: None)  # a test set of the demo's size
    code, printed, _ = cli("demo", "--out", run)
    assert code == 0
    assert f"{run} holds the trained demo already" in printed
    assert f"glassformer demo --out {run}-2" in printed
    assert "What to try next" in printed
    assert "curve" not in printed
    assert contents(run) == before
    (run / "curve.png").touch()
    assert f"The learning curve: {run / 'curve.png'}" in cli("demo", "--out", run)[1]
    assert "holds another run; choose another --out" in cli.fails("demo", "--out", run, "--seed", 1)
