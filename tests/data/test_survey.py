"""What a corpus is like before training: counted by hand here."""

from __future__ import annotations

from pathlib import Path

from glassformer.data import Corpus
from glassformer.data.survey import survey


def write(path: Path, lines: list[str]) -> Corpus:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Corpus(tsv=path)


def test_a_survey_counts_what_stands_out(tmp_path: Path) -> None:
    lines = ["one\teins", "two\tzwei", "one\teins", "\tleer", "x\t" + "y" * 90, "one\tein"]
    found = survey([write(tmp_path / "a.tsv", lines)])
    assert (found.pairs, found.empty, found.outliers, found.repeated) == (6, 1, 1, 1)
    assert (found.longest, found.longest_at) == (90, 5)
    assert found.mean_length == sum(len(line) - 1 for line in lines) / 12


def test_sources_shared_by_two_splits_are_found(tmp_path: Path) -> None:
    train = survey([write(tmp_path / "a.tsv", ["one\teins", "two\tzwei", "three\tdrei"])])
    valid = survey([write(tmp_path / "b.tsv", ["two\tzwo", "four\tvier", "one\teins"])])
    assert train.shared(valid) == valid.shared(train) == 2


def test_plain_texts_are_counted_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("one two\n\nthree\none two\n")
    found = survey([Corpus(text=tmp_path / "texts")])
    assert (found.pairs, found.empty, found.outliers, found.repeated, found.longest) == (4, 1, 0, 1, 7)
    assert found.mean_length == 19 / 4
    assert found.shared(survey([Corpus(text=tmp_path / "texts")])) == 3
