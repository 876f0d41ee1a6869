"""`glassformer demo` in a folder that holds something already."""

import shutil

import tomli_w
from small_run import OLD

from glassformer.train import read_recipe


def test_a_second_demo_leaves_the_folder_as_it_is_and_announces_no_curve_that_is_not_there(cli, tmp_path, monkeypatch):
    run = tmp_path / "demo"
    shutil.copytree(OLD, run)  # smaller than the demo's model; only its recipe says what it is
    (run / "recipe.toml").write_text(tomli_w.dumps(read_recipe("numerals").to_dict()))
    (run / "notes.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    monkeypatch.setattr("glassformer.cli.train.show_results", lambda *_: None)  # a test set of the demo's size
    code, printed, _ = cli("demo", "--out", run)
    assert code == 0
    assert f"{run} holds the trained demo already" in printed
    assert f"glassformer demo --out {run}-2" in printed
    assert "What to try next" in printed
    assert "curve" not in printed
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    (run / "curve.png").touch()
    assert f"The learning curve: {run / 'curve.png'}" in cli("demo", "--out", run)[1]
    assert "holds another run; choose another --out" in cli.fails("demo", "--out", run, "--seed", 1)


def test_the_demo_does_not_touch_another_run(cli, tmp_path):
    shutil.copytree(OLD, tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    assert "holds another run; choose another --out" in cli.fails("demo", "--out", tmp_path / "run")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
