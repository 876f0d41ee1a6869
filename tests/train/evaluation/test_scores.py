"""Scores: sacrebleu's own figures, with what makes them comparable."""

from __future__ import annotations

import pytest
import sacrebleu

from glassformer.common.errors import DataError, InputError
from glassformer.train.evaluation.metrics import score

REFERENCES = ["Ein Hund läuft durch den Park.", "Zwei Katzen schlafen heute .", "Guten Morgen!", "Es regnet."]
OUTPUTS = ["Ein Hund läuft im Park.", "zwei Katzen schlafen heute .", "Guten Morgen!", "Es regnet nicht mehr."]


@pytest.mark.parametrize(("tokenize", "lowercase"), [("13a", False), ("13a", True), ("none", False), ("zh", False)])
def test_bleu_and_chrf_are_sacrebleus(tokenize: str, lowercase: bool) -> None:
    ours = score(OUTPUTS, REFERENCES, tokenize, lowercase)
    theirs = sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES], tokenize=tokenize, lowercase=lowercase)
    assert ours.bleu == pytest.approx(theirs.score, abs=1e-9)
    assert ours.chrf == pytest.approx(sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score, abs=1e-9)
    assert f"tok:{tokenize}" in ours.bleu_signature
    assert f"case:{'lc' if lowercase else 'mixed'}" in ours.bleu_signature
    assert f"version:{sacrebleu.__version__}" in ours.bleu_signature
    assert "nc:6" in ours.chrf_signature


def test_any_iterable_is_scored_and_a_string_is_not() -> None:
    assert score(iter(OUTPUTS), (text for text in REFERENCES)) == score(OUTPUTS, REFERENCES)
    with pytest.raises(InputError, match="it must be a list of str"):
        score("one", ["one"])


def test_exact_match_counts_whole_sentences() -> None:
    assert score(OUTPUTS, REFERENCES).exact == 25.0
    perfect = score(REFERENCES, REFERENCES)
    assert (perfect.exact, perfect.exact_interval, perfect.sentences) == (100.0, 0.0, 4)
    assert perfect.bleu == pytest.approx(100.0)
    assert score(["x"], ["y"], interval=False).exact == 0.0


def test_intervals_are_given_where_they_mean_something() -> None:
    scores = score(OUTPUTS, REFERENCES)
    assert scores.bleu_interval is not None
    assert scores.bleu_interval > 0
    assert " ± " in str(scores)
    single = score(OUTPUTS[:1], REFERENCES[:1])
    assert single.bleu_interval is None
    assert single.chrf_interval is None
    assert scores.to_dict()["bleu"] == scores.bleu


def test_hopeless_translations_can_be_scored() -> None:
    scores = score([*["eins"] * 12, "Hund"], [*["zwei drei vier"] * 12, "Hund"])
    assert scores.chrf_interval is not None
    assert scores.exact == pytest.approx(100 / 13)
    nothing = score(["", "", ""], ["eins", "zwei", "drei"])
    assert (nothing.bleu, nothing.chrf, nothing.bleu_interval, nothing.chrf_interval) == (0, 0, 0, 0)


def test_lines_that_do_not_pair_and_nothing_at_all() -> None:
    with pytest.raises(DataError, match="3 translations but 4 references"):
        score(OUTPUTS[:3], REFERENCES)
    with pytest.raises(DataError, match="nothing to score"):
        score([], [])
