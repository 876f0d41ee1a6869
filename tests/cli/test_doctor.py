"""`glassformer doctor`: the machine, and a recipe before it runs."""

from small_run import write_recipe


def test_the_machine(cli):
    code, out, _ = cli("doctor")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} >= {"python", "torch", "cuda", "cpu", "disk"}


def test_a_recipe(cli, tmp_path):
    recipe = write_recipe(tmp_path)
    train, valid = ((tmp_path / f"{name}.en").read_text(encoding="utf-8").splitlines() for name in ("train", "valid"))
    both = len({*train} & {*valid})
    before = sorted(tmp_path.iterdir())
    code, out, err = cli("doctor", recipe)
    assert code == 0, err
    assert f"of the sources of valid, {both} in train too: its scores will flatter" in out
    assert all(words in out for words in ("300 pairs", "parameters", "an epoch of"))
    assert sorted(tmp_path.iterdir()) == before
    code, _, err = cli("doctor", "nmerals")
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean `numerals`?" in err
