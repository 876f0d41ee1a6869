"""`glassformer make`: from a folder of corpora to a translator, killed and given again."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch
from small_run import PATIENCE, command, write_corpus

import glassformer as gf
from glassformer.common.errors import ConfigError, DataError, RunError
from glassformer.train.make import keep_plan, make, print_cost, read_plan, training_seconds
from glassformer.weights import bundle

SMALL = """
[augment]
templates = 20
"""
for _stage in ("teacher", "student"):
    SMALL += f"""
[{_stage}.tokenizer]
vocab_size = 400
[{_stage}.model]
d_model = 32
heads = 2
d_ff = 64
layers = 1
decoder_layers = 1
[{_stage}.train]
steps = 6
batch_tokens = 512
pack = false
log_every = 2
valid_every = 3
save_every = 2
"""


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """Numbers one by one, in two corpora, and sentences of each language alone."""
    data = tmp_path / "data"
    (data / "numbers").mkdir(parents=True)
    write_corpus(data / "numbers", "train", 400, seed=1)
    write_corpus(data, "more", 300, seed=2)
    for language, seed in (("en", 3), ("de", 4)):
        write_corpus(tmp_path, "text", 40, seed)
        lines = (tmp_path / f"text.{language}").read_text(encoding="utf-8").splitlines()
        (data / f"mono.{language}").write_text("".join(f"{line.capitalize()}.\n" for line in lines), encoding="utf-8")
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    return data


def words(corpora: Path, out: Path) -> list[str]:
    plan = corpora.parent / "small.toml"
    return command("make", "en-de", "--data", corpora, "--out", out, "--plan", plan, "--device", "cpu")


def content(model: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in model.iterdir()
        if file.name not in ("recipe.toml", "scores.json")  # which name the folder
    }


@pytest.mark.long
def test_killed_at_any_moment_it_ends_as_if_undisturbed(corpora: Path, tmp_path: Path) -> None:
    begin = time.monotonic()
    subprocess.run(words(corpora, tmp_path / "whole"), check=True, timeout=PATIENCE)
    whole, draw = time.monotonic() - begin, random.Random(5)
    for _ in range(10):
        run = subprocess.Popen(words(corpora, tmp_path / "killed"), start_new_session=True)
        try:
            run.wait(draw.uniform(0, whole / 4))
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            subprocess.run(["pkill", "-9", "-s", str(run.pid)], check=False)
            run.wait()
    subprocess.run(words(corpora, tmp_path / "killed"), check=True, timeout=PATIENCE)
    assert content(tmp_path / "killed" / "model") == content(tmp_path / "whole" / "model")
    scores = json.loads((tmp_path / "whole" / "model" / "scores.json").read_text())
    assert {name.split()[-1] for name in scores} == {"en-de", "de-en"}
    assert gf.Translator.load(tmp_path / "whole" / "model", to="de").translate(["one two"])


@pytest.mark.long
def test_a_teacher_that_goes_on_is_what_ships(corpora: Path, tmp_path: Path) -> None:
    """In six bits, with cards that say what was learnt and what each corpus asks to be said."""
    (corpora / "numbers" / "ATTRIBUTION.txt").write_text("Numbers by nobody, CC0.", encoding="utf-8")
    changes = ('student.train.start="teacher"', 'model.weights="int6"', 'model.good_at="Good at numbers."')
    more = [word for change in changes for word in ("--set", change)]
    subprocess.run([*words(corpora, tmp_path / "out"), *more], check=True, timeout=PATIENCE)
    model = tmp_path / "out" / "model"
    assert bundle.read_config(model).weights == "int6"
    assert "start" in (model / "recipe.toml").read_text(encoding="utf-8")
    clean = (tmp_path / "out" / "clean" / "numbers" / "train.en").read_text(encoding="utf-8").count("\n")
    for file in ("README.md", "README.zh-CN.md"):
        card = (model / file).read_text(encoding="utf-8")
        for said in ("int6", "Good at numbers." if file == "README.md" else "德语", f"| numbers | {clean:,} |", "CC0"):
            assert said in card
    for file in ("README.md", "README.zh-CN.md", "recipe.toml", "scores.json"):
        assert str(tmp_path) not in (model / file).read_text(encoding="utf-8")


def test_a_student_that_goes_on_has_the_shape_of_its_teacher(corpora: Path, tmp_path: Path) -> None:
    changes = ['student.train.start="teacher"', "student.model.dropout=0.25", "student.model.layers=9"]
    plan = read_plan("en-de", corpora, tmp_path / "out", None, changes, "cpu")
    teacher, student = plan.trained("teacher"), plan.trained("student")
    assert student["tokenizer"] == teacher["tokenizer"]
    assert student["model"] == teacher["model"] | {"dropout": 0.25}
    other = read_plan("en-de", corpora, tmp_path / "out", None, changes[1:], "cpu").trained("student")
    assert other["model"]["layers"] == 9


def test_what_a_folder_holds_is_found(corpora: Path, tmp_path: Path) -> None:
    (corpora / "held").mkdir()
    write_corpus(corpora / "held", "valid", 5, seed=6)
    (corpora / "notes.txt").write_text("not a corpus")
    plan = read_plan("en-de", corpora, tmp_path / "out", None, ["student.train.steps=7"], "cpu")
    assert [*plan.corpora("train")] == ["more", "numbers"]
    assert [*plan.corpora("valid")] == ["held"]
    assert plan.corpora("test") == {}
    assert {language for files in plan.corpora("mono").values() for language in files} == {"en", "de"}
    assert plan.settings["student"]["train"]["steps"] == 7
    assert plan.settings["teacher"]["train"]["steps"] > 7


@pytest.mark.parametrize(
    ("pair", "changes", "error", "said"),
    [
        ("ende", [], ConfigError, "'ende' is no pair of languages"),
        ("en-en", [], ConfigError, "no pair of languages"),
        ("en-de", ["studnt.train.steps=7"], ConfigError, "unknown option `studnt`; did you mean `student`"),
        ("ca-nl", [], DataError, r"holds no pairs; put there NAME\.ca with NAME\.nl"),
        ("en-de", ['train=["nubmers"]'], DataError, "holds no `nubmers` of en and de; did you mean `numbers`"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(
    pair: str, changes: list[str], error: type[Exception], said: str, corpora: Path, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        make(read_plan(pair, corpora, tmp_path / "out", None, changes, "cpu"))
    assert not (tmp_path / "out").exists()


def test_a_training_tells_its_cost_before_it_starts(corpora: Path, tmp_path: Path, capsys) -> None:
    """Longer trainings cost more, in proportion; what is done costs nothing; hours on a CPU call for a hint."""
    tiny = [f"teacher.model.{name}" for name in ("d_model=64", "layers=1", "decoder_layers=1")]
    tiny += [one.replace("teacher", "student") for one in tiny]
    plans = ((None, tiny), (Path("small"), []))
    long, short = (read_plan("en-de", corpora, tmp_path / "out", plan, more, "cpu") for plan, more in plans)
    print_cost(long, torch.device("cpu"))
    told = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in told[:2]] == ["teacher: 20", "student: 40"]
    assert "--plan small" in told[2]
    (tmp_path / "out" / "teacher").mkdir(parents=True)
    (tmp_path / "out" / "teacher" / "model.safetensors").touch()
    print_cost(short, torch.device("cpu"))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("student: 1,000 steps, about")
    twice = short.settings["student"] | {"train": short.settings["student"]["train"] | {"steps": 10_000}}
    once, ten_times = (training_seconds(one, torch.device("cpu")) for one in (short.settings["student"], twice))
    assert 3 < ten_times / once < 30


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder; name the one that holds the corpora"):
        read_plan("en-de", tmp_path / "none", tmp_path / "out", None, [], "cpu")


def test_no_corpus_replaces_another_and_the_output_is_none(corpora: Path) -> None:
    for name in ("opus/a", "opus/b", "out/clean/old/train"):
        (corpora / name).parent.mkdir(parents=True, exist_ok=True)
        write_corpus((corpora / name).parent, Path(name).name, 5, seed=7)
    plan = read_plan("en-de", corpora, corpora / "out", None, [], "cpu")
    assert [*plan.corpora("train")] == ["more", "numbers", "opus-a", "opus-b"]


@pytest.mark.parametrize("change", [None, "student.train.steps=8"])
def test_a_folder_of_something_else_is_left_alone(change: str | None, corpora: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if change:
        keep_plan(read_plan("en-de", corpora, out, None, [], "cpu"))
    else:
        out.mkdir()
        (out / "teacher.toml").write_text("mine")
    before = {file: file.read_bytes() for file in out.iterdir()}
    with pytest.raises(RunError, match="name another --out"):
        make(read_plan("en-de", corpora, out, None, [change] if change else [], "cpu"))
    assert {file: file.read_bytes() for file in out.iterdir()} == before
