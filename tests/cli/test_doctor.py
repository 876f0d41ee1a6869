"""`glassformer doctor`, run as a newcomer would, from another folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

from small_run import call, command

RECIPE = """
[[data.train]]
tsv = "train.tsv"

[[data.valid]]
tsv = "valid.tsv"

[tokenizer]
vocab_size = 300

[model]
d_model = 16
heads = 2
d_ff = 16
layers = 1

[train]
steps = 10
batch_tokens = 512
"""


def doctor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call(command("doctor", *arguments), cwd=folder)


def test_the_machine(tmp_path):
    found = doctor(tmp_path)
    assert found.returncode == 0
    assert {line.split()[0] for line in found.stdout.splitlines()} >= {"python", "torch", "cuda", "cpu", "disk"}


def test_a_recipe_before_it_runs(tmp_path):
    pairs = [f"the house number {i}\tdas Haus Nummer {i}" for i in range(300)]
    (tmp_path / "train.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("\n".join([pairs[7], "a tree\tein Baum"]) + "\n", encoding="utf-8")
    (tmp_path / "r.toml").write_text(RECIPE, encoding="utf-8")
    found = doctor(tmp_path, "r.toml")
    assert found.returncode == 0, found.stderr
    assert "300 pairs" in found.stdout
    assert "of the sources of valid, 1 in train too: its scores will flatter" in found.stdout
    assert "parameters" in found.stdout
    assert "an epoch of" in found.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "r.toml",
        "train.tsv",
        "valid.tsv",
    ]  # nothing is left behind


def test_a_mistake_is_one_line(tmp_path):
    found = doctor(tmp_path, "nmerals")
    assert found.returncode == 2
    assert "did you mean `numerals`?" in found.stderr
    assert "Traceback" not in found.stderr
