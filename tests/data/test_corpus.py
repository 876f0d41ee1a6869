"""Reading pairs and images, what a survey counts of them, and what a user is told about files that cannot be read."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
import tempfile
import types
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.common.errors import ConfigError, DataError
from glassformer.data import Corpus, read_pairs
from glassformer.data.readers import read_images
from glassformer.data.survey import survey


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def message(corpus: Corpus) -> str:
    with pytest.raises(DataError) as caught:
        list(read_pairs(corpus))
    assert "\n" not in str(caught.value).replace("\n  ", "")
    return str(caught.value)


def aligned(folder: Path, src: str | bytes, tgt: str | bytes) -> Corpus:
    return Corpus(src=write(folder / "a.en", src), tgt=write(folder / "a.de", tgt))


def test_two_files(tmp_path: Path) -> None:
    corpus = aligned(tmp_path, "one\r\n\ntwo\n", "eins\n \nzwei")
    assert list(read_pairs(corpus)) == [("one", "eins"), ("", " "), ("two", "zwei")]


def test_only_newlines_end_lines(tmp_path: Path) -> None:
    odd = "a\u2028b\x85c\x0bd\x0ce\u2029f\rg"
    assert list(read_pairs(aligned(tmp_path, f"{odd}\nz\n", "1\n2\n"))) == [(odd, "1"), ("z", "2")]


def test_byte_order_mark_is_dropped_only_at_the_start(tmp_path: Path) -> None:
    corpus = aligned(tmp_path, "\ufeffone\n\ufefftwo\n", "\ufeffeins\nzwei\n")
    assert list(read_pairs(corpus)) == [("one", "eins"), ("\ufefftwo", "zwei")]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_whatever_the_name(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    corpus = aligned(tmp_path, pack(b"one\ntwo\n"), b"eins\nzwei\n")
    assert list(read_pairs(corpus)) == [("one", "eins"), ("two", "zwei")]


def test_tsv_takes_the_first_two_columns(tmp_path: Path) -> None:
    corpus = Corpus(tsv=write(tmp_path / "a.tsv", "one\teins\tCC-BY\n\ntwo\tzwei\tCC-BY\n"))
    assert list(read_pairs(corpus)) == [("one", "eins"), ("", ""), ("two", "zwei")]


def test_jsonl(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"src": "a\\nb", "tgt": "ü", "id": 3}\n')
    assert list(read_pairs(Corpus(jsonl=path))) == [("a\nb", "ü")]
    other = write(tmp_path / "b.jsonl", json.dumps({"en": "a", "de": "b"}))
    assert list(read_pairs(Corpus(jsonl=other, src_key="en", tgt_key="de"))) == [("a", "b")]


def test_reading_is_lazy(tmp_path: Path) -> None:
    pairs = read_pairs(aligned(tmp_path, b"one\n\xff\n", "eins\nzwei\n"))
    assert next(pairs) == ("one", "eins")


@pytest.mark.parametrize(("src", "tgt", "counts"), [(5, 2, ("5", "2", "a.de")), (2, 5, ("2", "5", "a.en"))])
def test_unequal_line_counts(tmp_path: Path, src: int, tgt: int, counts: tuple[str, str, str]) -> None:
    said = message(aligned(tmp_path, "x\n" * src, "y\n" * tgt))
    assert f"a.en has {counts[0]} lines" in said
    assert f"a.de has {counts[1]}" in said
    assert "line 3 has no partner" in said
    assert f"in {tmp_path / counts[2]};" in said


def test_not_utf8(tmp_path: Path) -> None:
    said = message(aligned(tmp_path, "one\ntwo\n", b"eins\nf\xfcnf\n"))
    assert "a.de, line 2" in said
    assert "byte 2 of the line is 0xfc" in said
    assert "UTF-16" in message(aligned(tmp_path, "one\n".encode("utf-16"), "eins\n"))


def test_missing_file(tmp_path: Path) -> None:
    write(tmp_path / "train.de", "x\n")
    said = message(Corpus(tsv=tmp_path / "trian.de"))
    assert "trian.de does not exist; did you mean `train.de`?" in said
    assert "neither does the folder" in message(Corpus(tsv=tmp_path / "no" / "train.de"))
    assert "is a folder" in message(Corpus(tsv=tmp_path))


GOOD = '{"src": "a", "tgt": "b"}\n'
PACKED = gzip.compress(b"one\ttwo\n" * 5000, mtime=0)


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("tsv", PACKED[: len(PACKED) // 2], "damaged"),
        ("tsv", "", "empty"),
        ("jsonl", "", "empty"),
        ("tsv", "a\tb\nc\n", "rows, line 2: no tab"),
        ("tsv", "a\tb\nc\td\te\n", "rows, line 2: 3 columns"),
        ("jsonl", GOOD + '{"src": }\n', "line 2, column 9: not JSON"),
        ("jsonl", GOOD + '{"src": "a"}\n', "line 2: no `tgt`"),
        ("jsonl", '{"srcs": "a"}\n', "did you mean `srcs`"),
        ("jsonl", '{"src": 3, "tgt": "b"}\n', "must be a string, got 3"),
        ("jsonl", "[1]\n", "expected an object"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_fault(
    tmp_path: Path, kind: str, content: str | bytes, said: str
) -> None:
    assert said in message(Corpus(**{kind: write(tmp_path / "rows", content)}))  # type: ignore[arg-type]


# Lines of each kind of file: good ones, and bad ones with what is said of them.
LINES: dict[str, tuple[list[bytes], dict[bytes, str]]] = {
    "text": ([b"one", "z\u2028\u00f6".encode(), b"a\tb"], {b"f\xfcnf": "byte 2 of the line", b"\xff\xff": "not UTF-8"}),
    "tsv": ([b"a\tb", b"c\t"], {b"a": "no tab", b"a\tb\tc": "3 columns", b"\xc3\tb": "not UTF-8"}),
    "jsonl": (
        [b'{"src": "a", "tgt": "b"}', b'{"tgt": "", "src": "\\n", "x": 1}'],
        {b"{": "not JSON", b"[1]": "expected an object", b'{"src": "a"}': "no `tgt`", b"[" * 9999: "nested too deeply",
         b'{"src": 1, "tgt": "b"}': "must be a string", b"\xe4": "not UTF-8"},
    ),
}  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(data=st.data(), kind=st.sampled_from([*LINES, "aligned"]))
def test_all_bad_lines_are_told_and_can_be_left_out(data: st.DataObject, kind: str) -> None:
    good, bad = LINES["text" if kind == "aligned" else kind]
    sides = 2 if kind == "aligned" else 1
    row = st.tuples(*[st.one_of(st.sampled_from(good), st.sampled_from(list(bad)))] * sides)
    rows = [(good[0],) * sides, *data.draw(st.lists(row, max_size=40))]
    wrong = [(side, number, line) for number, row in enumerate(rows, 1) for side, line in enumerate(row) if line in bad]
    whole = [row for row in rows if not any(line in bad for line in row)]
    with tempfile.TemporaryDirectory() as folder:
        files = [write(Path(folder) / str(i), b"".join(row[i] + b"\n" for row in rows)) for i in range(sides)]
        clean = write(Path(folder) / "clean", b"".join(row[0] + b"\n" for row in whole))
        corpus = Corpus(src=files[0], tgt=files[1]) if sides == 2 else Corpus(**{kind: files[0]})  # type: ignore[arg-type]
        counts, skipping = Counter[str](), replace(corpus, skip_bad=True)
        if len(wrong) > len(whole):
            assert f"{len(wrong):,} bad lines" in message(skipping) or len(wrong) == 1
        else:
            pairs = list(read_pairs(skipping, counts))
            same = corpus if sides == 2 else Corpus(**{kind: clean})  # type: ignore[arg-type]
            assert pairs == (
                [tuple(part.decode() for part in row) for row in whole] if sides == 2 else [*read_pairs(same)]
            )
            assert counts["bad"] == len(wrong)
        if wrong:
            first, *told = ["", message(corpus)] if len(wrong) == 1 else message(corpus).split("\n  ")
            assert first.startswith(f"{len(wrong)} bad lines and {len(whole)} good ones; skip_bad = true") or not first
            for said, (side, number, line) in zip(told, wrong[:10], strict=True):
                assert said.startswith((f"{files[side]}, line {number}:", f"{files[side]}, line {number}, column"))
                assert bad[line] in said


def test_hub_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert "pip install 'glassformer[hub]'" in message(Corpus(hub="someone/pairs"))


def test_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    library = types.ModuleType("datasets")

    def load_dataset(name: str, config: str | None, split: str, streaming: bool) -> list[dict[str, object]]:
        if name == "offline":
            raise ConnectionError("no route to the hub\nand more")
        assert streaming
        return [{"translation": {"en": "one", "de": "eins"}}]

    library.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", library)
    assert list(read_pairs(Corpus(hub="x", src_key="en", tgt_key="de"))) == [("one", "eins")]
    assert "no route to the hub; check the name" in message(Corpus(hub="offline"))
    assert "no `src`" in message(Corpus(hub="x"))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"src": "a"},
        {"tgt": "a"},
        {"tsv": "a", "jsonl": "b"},
        {"builtin": "numeral"},
        {"tsv": "a", "weight": 0},
        {"tsv": "a", "weight": float("nan")},
    ],
)
def test_a_corpus_has_one_source(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Corpus(**wrong)  # type: ignore[arg-type]


IMAGES = np.arange(4 * 16, dtype=np.uint8).reshape(4, 4, 4)


@pytest.mark.parametrize("labels", [["a", "b", "a", "b"], [b"a", b"b", b"a", b"b"], [0, 1, 0, 1], [True, False] * 2])
def test_labels_are_texts_or_whole_numbers(labels: list[object], tmp_path: Path) -> None:
    np.savez(tmp_path / "some.npz", images=IMAGES, labels=np.array(labels))
    images, names = read_images(tmp_path / "some.npz")
    assert images.shape == (4, 1, 4, 4)
    assert names == [one.decode() if isinstance(one, bytes) else str(one) for one in labels]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([["a"], ["b"], ["a"], ["b"]], r"labels of shape \(4, 1\) and <U1; they are a row of texts or whole numbers"),
        ([0.5, 1.0, 0.5, 1.0], r"labels of shape \(4,\) and float64"),
        (["a\tb", "c", "c", "c"], r"the label 'a\\tb' has signs that cannot be printed"),
    ],
)
def test_other_labels_are_refused(labels: list[object], said: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "some.npz", images=IMAGES, labels=np.array(labels))
    with pytest.raises(DataError, match=said):
        read_images(tmp_path / "some.npz")


def test_a_file_that_is_cut_short_or_another_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    np.savez(path, images=IMAGES, labels=np.array(list("abab")))
    whole = path.read_bytes()
    np.save(tmp_path / "one.npy", IMAGES)
    for content in (
        b"",
        whole[:100],
        whole[: len(whole) // 2],
        whole[:-1],
        b"a text\n",
        (tmp_path / "one.npy").read_bytes(),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"some.npz is no .npz with `images` and `labels`: ") as told:
            read_images(path)
        assert "pickle" not in str(told.value)
    path.write_bytes(whole)
    assert len(read_images(path)[1]) == 4


def tsv(path: Path, lines: list[str]) -> Corpus:
    return Corpus(tsv=write(path, "".join(f"{line}\n" for line in lines)))


def test_a_survey_counts_what_stands_out(tmp_path: Path) -> None:
    lines = ["one\teins", "two\tzwei", "one\teins", "\tleer", "x\t" + "y" * 90, "one\tein"]
    found = survey([tsv(tmp_path / "a.tsv", lines)])
    assert (found.pairs, found.empty, found.outliers, found.repeated) == (6, 1, 1, 1)
    assert (found.longest, found.longest_at) == (90, 5)
    assert found.mean_length == sum(len(line) - 1 for line in lines) / 12


def test_sources_shared_by_two_splits_are_found(tmp_path: Path) -> None:
    train = survey([tsv(tmp_path / "a.tsv", ["one\teins", "two\tzwei", "three\tdrei"])])
    valid = survey([tsv(tmp_path / "b.tsv", ["two\tzwo", "four\tvier", "one\teins"])])
    assert train.shared(valid) == valid.shared(train) == 2


def test_plain_texts_are_counted_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("one two\n\nthree\none two\n")
    found = survey([Corpus(text=tmp_path / "texts")])
    assert (found.pairs, found.empty, found.outliers, found.repeated, found.longest) == (4, 1, 0, 1, 7)
    assert found.mean_length == 19 / 4
    assert found.shared(survey([Corpus(text=tmp_path / "texts")])) == 3
