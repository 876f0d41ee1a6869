"""What is said of scores, and what is recorded."""

import io
import json
import shutil

import pytest
from small_run import OLD

from glassformer.cli.train import show_results
from glassformer.train import Report


@pytest.mark.parametrize(
    ("trained", "said", "met"),
    [
        (["four", "one one"], "valid pairs, never trained on:  BLEU", 0),
        (["four", " two", "one", "two"], "valid pairs (3 of 4 are also training pairs):  BLEU", 3),
        (None, "valid pairs:  BLEU", None),
    ],
)
def test_never_trained_on_is_said_of_pairs_that_were_not(tmp_path, capsys, trained, said, met):
    run = tmp_path / "run"
    shutil.copytree(OLD, run)
    recipe = (run / "recipe.toml").read_text().replace("/texts", str(tmp_path))
    (run / "recipe.toml").write_text(recipe)
    for name, lines in (("train", trained), ("valid", ["one", "two", "one", "three"])):
        for side in ("en", "de") if lines else ():
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
    show_results(run, "cpu", Report(io.StringIO()))
    assert said in capsys.readouterr().out
    assert json.loads((run / "scores.json").read_text())["valid"].get("met_in_training") == met


def test_damaged_scores_keep_no_score_from_being_told(cli, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(OLD, run)
    (run / "scores.json").write_text("{")
    for side in ("en", "de"):
        (tmp_path / side).write_text("one\n")
    code, printed, told = cli("evaluate", run, "--src", tmp_path / "en", "--ref", tmp_path / "de")
    assert (code, printed[:4]) == (0, "BLEU")
    assert "scores.json is damaged" in told
    assert told.endswith("delete it and measure again; these scores are not recorded\n")
    assert (run / "scores.json").read_text() == "{"
