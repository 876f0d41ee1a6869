"""`glassformer doctor`: the machine, and a recipe before it runs."""

import pytest

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


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_machine(cli):
    code, out, _ = cli("doctor")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} >= {"python", "torch", "cuda", "cpu", "disk"}


def test_a_recipe(cli, tmp_path):
    pairs = [f"the house number {i}\tdas Haus Nummer {i}" for i in range(300)]
    (tmp_path / "train.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("\n".join([pairs[7], "a tree\tein Baum"]) + "\n", encoding="utf-8")
    (tmp_path / "r.toml").write_text(RECIPE, encoding="utf-8")
    code, out, err = cli("doctor", "r.toml")
    assert code == 0, err
    for line in ("300 pairs", "of the sources of valid, 1 in train too: its scores will flatter", "parameters"):
        assert line in out
    assert "an epoch of" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.toml", "train.tsv", "valid.tsv"]
    code, _, err = cli("doctor", "nmerals")
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean `numerals`?" in err
