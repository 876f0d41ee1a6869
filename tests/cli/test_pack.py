"""`glassformer pack`: a model in int8, which every command takes as it took the other."""

import re

from small_run import OLD


def test_a_packed_model_translates(cli, tmp_path):
    code, out, err = cli("pack", OLD, "--out", tmp_path / "small")
    assert (code, err) == (0, "")
    assert re.fullmatch(rf"{tmp_path / 'small'}: \d+ kB, of \d+ kB\n", out)
    for precision in ("auto", "int8", "fp32"):
        code, out, err = cli("translate", tmp_path / "small", "three two one two four", "--precision", precision)
        assert (code, out) == (0, "vier zwei eins zwei drei\n"), err
    assert not (tmp_path / "small" / "scores.json").exists()  # of other weights


def test_nothing_is_written_over(cli, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "kept.txt").write_text("kept")
    assert "there exists already" in cli.fails("pack", OLD, "--out", tmp_path / "there")
    assert "is not a trained model" in cli.fails("pack", tmp_path, "--out", tmp_path / "small")
    assert not (tmp_path / "small").exists()
