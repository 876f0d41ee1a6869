"""A second process compiles while the text is prepared: where the shape is known, and never in the way."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_run import RECIPE

from glassformer.common.report import process_age
from glassformer.data.shapes import Shape
from glassformer.train import precompile as ahead
from glassformer.train.parallel import World
from glassformer.train.precompile import PrecompileProcess, fixed_shape, precompiling, trial_step
from glassformer.train.recipe import Recipe, read_recipe

CPU = World(0, 1, torch.device("cpu"))


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE, encoding="utf-8")
    changes = ("tokenizer.kind=bpe", "tokenizer.vocab_size=300", "train.pack=true", "data.max_tokens=250")
    return read_recipe(str(path), (*changes, "train.batch_tokens=512"))


def test_the_shape_is_known_where_the_text_cannot_change_it(recipe: Recipe) -> None:
    assert fixed_shape(recipe) == Shape(2, 256, 256)
    for unknown in (
        replace(recipe, train=replace(recipe.train, pack=False)),
        replace(recipe, train=replace(recipe.train, batch_tokens="auto")),
        replace(recipe, data=replace(recipe.data, max_tokens=256)),  # its longest text may ask for a wider row
        replace(recipe, tokenizer=replace(recipe.tokenizer, kind="words")),  # it may have fewer words
    ):
        assert fixed_shape(unknown) is None


def test_the_trial_is_a_step(recipe: Recipe) -> None:
    trial_step(recipe, CPU)


def test_what_is_compiled_can_be_kept(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def backend(graph: torch.fx.GraphModule, _inputs: object) -> torch.fx.GraphModule:
        calls.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    compiler = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, **_options: compiler(function, backend=backend))
    trial_step(replace(recipe, train=replace(recipe.train, compile=True, precision="bf16")), CPU)
    assert any("cross_entropy" in call for call in calls)
    assert not [call for call in calls if "autocast" in call]  # with it, the compiler's cache is passed by


def test_on_a_cpu_the_cores_are_left_to_the_text(recipe: Recipe) -> None:
    recipe = replace(recipe, train=replace(recipe.train, compile=True))
    with precompiling(recipe, CPU, fresh=True) as begun:
        assert begun.process is None
        begun.wait()


@pytest.mark.parametrize("head_start", [0.0, pytest.param(1e9, marks=pytest.mark.long)])
def test_a_process_that_fails_or_is_late_is_not_missed(monkeypatch: pytest.MonkeyPatch, head_start: float) -> None:
    monkeypatch.setattr(ahead, "HEAD_START", head_start)
    begun = PrecompileProcess(read_recipe("numerals"), CPU)  # whose batches have many shapes
    begun.wait()
    assert begun.process is not None
    assert begun.process.returncode != 0
    begun.close()


def test_seconds_count_from_the_start_of_the_process() -> None:
    code = "import time; time.sleep(0.3); "
    code += "from glassformer.common.report import process_age as r; a = r(); print(a, r() - a)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    whole, since = map(float, told.split())
    assert whole > since >= 0
    if sys.platform == "linux":
        assert whole > 0.25
    assert process_age() > 0
