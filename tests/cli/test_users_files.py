"""No command removes a file of the user, or replaces one that was not named, whenever it is killed.

`--output FILE`, `--html FILE` and `--json FILE` replace that one file, whole, at the end. `--out FOLDER` fills an empty
folder, or goes on with what the same command has made there; other files in it stay.
"""

import json
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file
from sampled import sampled
from small_run import OLD, PATIENCE, command, launch, write_recipe

from glassformer.common.files import to_toml
from glassformer.train import read_recipe

FEW = ("--set", "train.steps=6", "--set", "train.save_every=2", "--set", "train.valid_every=3")
RUN = {  # what a run makes in its folder
    ".glassformer.lock", "recipe.toml", "metrics.jsonl", "config.json", "model.safetensors", "scores.json",
    "source_words.txt", "tokenizer.json", "checkpoints", "curve.png", "prepared",
}  # fmt: skip
# Files of the user.
MINE = (
    "notes.txt",
    ".writable",
    "tokenizer.mine.json",
    "step-1.safetensors",
    "checkpoint/best",
    ".hidden/x.partial",
)
KILLS = pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.long)])


def start(*words: object, number: int = 0, seconds: float = 0.0) -> tuple[int, float]:
    """Run a command to its end, or until a signal after some seconds: its exit code and how long it took."""
    begin, nothing = time.monotonic(), subprocess.DEVNULL
    with launch(command(*words), stdin=nothing, stdout=nothing, stderr=nothing) as process:
        if number:
            time.sleep(seconds)
            process.send_signal(number)
        return process.wait(PATIENCE), time.monotonic() - begin


def kill(chance: random.Random, length: float, *words: object) -> None:
    number = chance.choice([signal.SIGKILL, signal.SIGINT])
    start(*words, number=number, seconds=chance.uniform(0, 1.1) * length)


def write_mine(folder: Path) -> dict[Path, bytes]:
    files = {folder / name: f"mine: {name}".encode() for name in MINE}
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return files


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_kept(before: dict[Path, bytes]) -> None:
    assert {path: path.read_bytes() for path in before if path.exists()} == before


@KILLS
def test_train_keeps_other_files(tmp_path, kills):
    chance = random.Random(0)
    recipe, out = write_recipe(tmp_path / "mine"), tmp_path / "run"
    before = write_mine(tmp_path) | contents(recipe.parent)
    assert start("train", recipe, "--out", tmp_path / "mine")[0] == 2  # a folder of the user's, and no run
    assert contents(tmp_path) == before
    code, length = start("train", recipe, "--out", tmp_path / "whole", *FEW)
    assert code == 0
    for _ in range(kills):
        kill(chance, length, "train", recipe, "--out", out, "--resume", *FEW)
        if out.exists() and (out / "recipe.toml").exists():
            before |= write_mine(out)
        assert_kept(before)
    assert start("train", recipe, "--out", out, "--resume", *FEW)[0] == 0
    assert_kept(before)
    own = {path.name for path in out.iterdir()} - {Path(name).parts[0] for name in MINE}
    assert own == RUN
    model = (out / "model.safetensors").read_bytes()
    assert model == (tmp_path / "whole" / "model.safetensors").read_bytes()
    for _ in range(kills - 1):  # it may be replaced by its own continuation, and is a whole model all the while
        kill(chance, length, "train", "--out", out, "--resume", "--set", f"train.steps={chance.randint(8, 12)}")
        load_file(out / "model.safetensors")
        assert_kept(before)
    shutil.rmtree(out / "checkpoints")
    model = (out / "model.safetensors").read_bytes()
    assert start("train", "--out", out, "--resume", "--set", "train.steps=14")[0] == 2
    assert (out / "model.safetensors").read_bytes() == model
    assert_kept(before)


@KILLS
def test_demo_keeps_other_files(tmp_path, kills):
    chance, demo = random.Random(0), tmp_path / "demo"
    before = write_mine(tmp_path / "mine")
    assert start("demo", "--out", tmp_path / "mine")[0] == 2
    shutil.copytree(OLD, demo)  # by its recipe, a finished demo
    (demo / "recipe.toml").write_text(to_toml(read_recipe("numerals").to_dict()))
    before |= write_mine(demo) | {path: data for path, data in contents(demo).items() if path.name != "scores.json"}
    for _ in range(kills):
        kill(chance, 1.0, "demo", "--out", demo)
        assert_kept(before)
        json.loads((demo / "scores.json").read_text())


@pytest.mark.parametrize("kind", sampled(["translate", "trace", "lab"], ["translate", "lab"]))
@KILLS
def test_only_a_named_file_is_replaced_and_whole(tmp_path, kind, kills):
    chance, out = random.Random(kind), tmp_path / "out"
    (tmp_path / "lines").write_text("one two\nthree\n" * 40)
    words = {
        "translate": ("translate", OLD, "--input", tmp_path / "lines", "--output", out / "named"),
        "trace": ("trace", OLD, "one two", "--html", out / "named"),
        "lab": ("lab", "sinusoids", "--out", out),
    }[kind]
    named = [out / "named"] if kind != "lab" else [out / "report.json", out / "report.html", out / "sinusoids.svg"]
    before = write_mine(tmp_path) | write_mine(out)
    code, length = start(*words)
    assert code == 0
    new = {path: path.read_bytes() for path in named}
    assert all(new.values())
    for _ in range(kills):
        if kind != "lab":
            named[0].write_text("old")
        kill(chance, length, *words)
        assert_kept(before)
        for path in named:
            data = path.read_bytes()
            assert data == b"old" or data[-9:] == new[path][-9:]  # whole: the new one's end is there
    if kind == "lab":
        shutil.rmtree(out)
        before = write_mine(out)
        named[1].write_text("mine")
        assert start(*words)[0] == 2
        assert named[1].read_text() == "mine"
        assert_kept(before)
