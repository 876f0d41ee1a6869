"""The demo as a newcomer meets it: what the benchmark asks is what the corpus teaches, and it reports what it saw."""

from benchmarks.demo import FIRST_TRIES, demos
from glassformer.data import numerals
from glassformer.data.numerals import generate

TINY = (
    "train.steps=1",
    "model.d_model=16",
    "model.d_ff=16",
    "model.layers=1",
    'data.train=[{builtin="numerals", size=2000}]',
    "data.valid=[]",
    'data.test=[{builtin="numerals", split="test", size=4}]',
)


def test_the_first_tries_are_answered_as_the_corpus_answers():
    taught = {source: answer for split in ("train", "valid", "test") for source, answer in generate(split)}
    known = FIRST_TRIES.keys() & taught.keys()
    assert {source: taught[source] for source in known} == {source: FIRST_TRIES[source] for source in known}
    assert len(FIRST_TRIES) >= 40
    assert 10 < len(known) < len(FIRST_TRIES)  # some must be got right without having been seen


def test_a_model_that_learnt_nothing_is_wrong_on_all(monkeypatch):
    monkeypatch.setattr(numerals, "POOL", 12_500)
    (found,) = demos([3], TINY)
    assert found.seed == 3
    assert found.seconds > 0
    assert found.exact == 0
    assert found.wrong.keys() == FIRST_TRIES.keys()
