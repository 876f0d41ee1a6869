"""`glassformer translate` on words that the model's training never met."""

import pytest
from tiny_translators import tiny_bundle

from glassformer.cli import main


def test_words_that_training_never_met_are_told_once_on_stderr(tmp_path, capsys, monkeypatch):
    model = tiny_bundle(tmp_path / "model")
    (model / "recipe.toml").write_text('[about]\npurpose = "dogs and houses"\n', encoding="utf-8")
    for words, told in (
        (["the dog"], ""),
        (["Hello, the dog", "how is the dog? hello"], "Hello, how, is"),
        ([" ".join(f"{letter}q" for letter in "abcdefghij")], "aq, bq, cq, dq, eq, fq, gq, hq and 2 more"),
    ):
        monkeypatch.setattr("sys.argv", ["glassformer", "translate", str(model), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert not ended.value.code
        assert len(out.splitlines()) == len(words)
        learnt = "this model learnt dogs and houses; it may not know: "
        assert [line for line in err.splitlines() if "know" in line] == ([learnt + told] if told else [])
