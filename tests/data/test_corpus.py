"""Reading pairs, and what a user is told about files that cannot be read."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
import types
from pathlib import Path

import pytest

from glassformer.common.errors import ConfigError, DataError
from glassformer.data import Corpus, read_pairs


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def message(corpus: Corpus) -> str:
    with pytest.raises(DataError) as caught:
        list(read_pairs(corpus))
    assert "\n" not in str(caught.value)
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


def test_damaged_archive(tmp_path: Path) -> None:
    packed = gzip.compress(b"one\ttwo\n" * 5000)
    assert "damaged" in message(Corpus(tsv=write(tmp_path / "a.gz", packed[: len(packed) // 2])))


@pytest.mark.parametrize("kind", ["tsv", "jsonl"])
def test_empty_corpus(tmp_path: Path, kind: str) -> None:
    assert "empty" in message(Corpus(**{kind: write(tmp_path / "a", "")}))  # type: ignore[arg-type]


def test_tsv_errors(tmp_path: Path) -> None:
    assert "a.tsv, line 2: no tab" in message(Corpus(tsv=write(tmp_path / "a.tsv", "a\tb\nc\n")))
    said = message(Corpus(tsv=write(tmp_path / "b.tsv", "a\tb\nc\td\te\n")))
    assert "b.tsv, line 2: 3 columns" in said


def test_jsonl_errors(tmp_path: Path) -> None:
    good = '{"src": "a", "tgt": "b"}\n'
    assert "line 2, column 9: not JSON" in message(Corpus(jsonl=write(tmp_path / "a", good + '{"src": }\n')))
    assert "line 2: no `tgt`" in message(Corpus(jsonl=write(tmp_path / "b", good + '{"src": "a"}\n')))
    assert "did you mean `srcs`" in message(Corpus(jsonl=write(tmp_path / "c", '{"srcs": "a"}\n')))
    assert "must be a string, got 3" in message(Corpus(jsonl=write(tmp_path / "d", '{"src": 3, "tgt": "b"}\n')))
    assert "expected an object" in message(Corpus(jsonl=write(tmp_path / "e", "[1]\n")))


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
