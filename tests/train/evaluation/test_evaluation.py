"""`gf.evaluate`: what the command says, for Python."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from small_run import OLD, Cli
from tiny_translators import sentences, tiny_bundle

import glassformer as gf
from glassformer.common.errors import ConfigError, DataError, InputError
from glassformer.train.evaluation.metrics import score


@pytest.fixture
def pairs(tmp_path: Path) -> tuple[Path, Path]:
    for name, seed in (("a.en", 1), ("a.de", 2)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in sentences(5, seed=seed)), encoding="utf-8")
    return tmp_path / "a.en", tmp_path / "a.de"


def test_python_and_the_command_say_the_same(cli: Cli, tmp_path: Path, pairs: tuple[Path, Path]) -> None:
    folder = tiny_bundle(tmp_path / "model")
    src, ref = pairs
    options = ["--beam", 2, "--length-penalty", 0.5, "--lowercase", "--tokenize", "char", "--device", "cpu"]
    code, printed, _ = cli("evaluate", folder, "--src", src, "--ref", ref, *options, "--json")
    assert code == 0
    recorded = (folder / "scores.json").read_text()
    settings = {"beam": 2, "length_penalty": 0.5, "lowercase": True, "tokenize": "char", "device": "cpu"}
    found = gf.evaluate(folder, src, ref, **settings)
    assert found.scores.to_dict() == json.loads(printed)
    assert "|tok:char|" in found.scores.bleu_signature
    assert found.name == "a.en a.de"
    assert found.sources == tuple(sentences(5, seed=1))
    assert found.references == tuple(sentences(5, seed=2))
    best = gf.Translator.load(folder).translate(found.sources, beam=2, length_penalty=0.5)
    assert found.hypotheses == tuple(row[0].text for row in best)
    assert found.scores == score(found.hypotheses, found.references, "char", lowercase=True)
    assert (folder / "scores.json").read_text() == recorded, "nothing is written that was not asked for"
    (folder / "scores.json").unlink()
    assert gf.evaluate(str(folder), str(src), str(ref), **settings, record=True) == found
    assert (folder / "scores.json").read_text() == recorded
    lists = gf.evaluate(folder, list(found.sources), iter(found.references), **settings)
    assert lists == dataclasses.replace(found, name="given sentences")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.name = "other"  # type: ignore[misc]


def test_a_split_of_the_recipe(cli: Cli, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(OLD, run)
    (run / "recipe.toml").write_text((run / "recipe.toml").read_text().replace("/texts", str(tmp_path)))
    for side in ("en", "de"):
        (tmp_path / f"valid.{side}").write_text("one\ntwo\n")
    code, printed, _ = cli("evaluate", run, "--split", "valid", "--json")
    found = gf.evaluate(run, split="valid", device="cpu")
    assert (code, found.scores.to_dict()) == (0, json.loads(printed))
    assert found.name == "valid"
    with pytest.raises(DataError, match="names no `test` pairs"):
        gf.evaluate(run)


def test_what_cannot_be_judged_is_told(tmp_path: Path, pairs: tuple[Path, Path]) -> None:
    folder = tiny_bundle(tmp_path / "model")
    with pytest.raises(ConfigError, match="go together"):
        gf.evaluate(folder, ["one"])
    with pytest.raises(ConfigError, match="not both"):
        gf.evaluate(folder, *pairs, split="test")
    with pytest.raises(DataError, match="2 sources but 1 references"):
        gf.evaluate(folder, ["one", "two"], ["eins"])
    with pytest.raises(InputError, match="it must be a list of str"):
        gf.evaluate(folder, ["one"], "eins")
    with pytest.raises(DataError, match="nothing to score"):
        gf.evaluate(folder, [], [])
