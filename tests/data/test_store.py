"""A corpus is encoded once, kept as it was, and made again when anything about it changes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from glassformer.common.errors import ConfigError, DataError
from glassformer.data import Corpus, FilterOptions, Store, Tokenizer, TokenizerOptions, preparation, prepare
from glassformer.data.preparation import Encoder

SERVE = preparation.SERVE
PAIRS = [(f"the number {n} is {n * n} .", f"die Zahl {n} ist {n * n} .") for n in range(200)]
TOKENIZER = Tokenizer.train(PAIRS, TokenizerOptions("bpe", 310))


def corpus(path: Path, pairs: list[tuple[str, str]] = PAIRS, weight: float = 1.0) -> Corpus:
    path.write_text("".join(json.dumps({"src": src, "tgt": tgt}) + "\n" for src, tgt in pairs), encoding="utf-8")
    return Corpus(jsonl=path, weight=weight)


def test_what_goes_in_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassformer.data.preparation.CHUNK", 64)  # several chunks, the last one not full
    told: list[int] = []
    store = prepare([corpus(tmp_path / "a")], TOKENIZER, tmp_path / "store", progress=told.append)
    assert len(store) == 200
    assert told == [64, 128, 192, 200]
    sources, targets = TOKENIZER.encode_source([s for s, _ in PAIRS]), TOKENIZER.encode_target([t for _, t in PAIRS])
    assert [store.pair(i) for i in range(200)] == list(zip(sources, targets, strict=True))
    src, tgt = store.lengths()
    assert src.tolist() == list(map(len, sources))
    assert tgt.tolist() == list(map(len, targets))
    none = ("bad", "empty", "too_long", "too_short", "mismatched", "src_unknown", "tgt_unknown")
    tokens = {"src_tokens": sum(map(len, sources)), "tgt_tokens": sum(map(len, targets))}
    assert store.report == {"read": 200, "kept": 200, **dict.fromkeys(none, 0), **tokens}
    with pytest.raises(IndexError):
        store.pair(200)


@pytest.mark.parametrize("serve", [SERVE, "raise SystemExit"])
def test_other_processes_make_the_same_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: str) -> None:
    monkeypatch.setattr("glassformer.data.preparation.CHUNK", 32)
    tokenizer = Tokenizer.train(PAIRS, TokenizerOptions("bpe", 315, placeholders=4), languages=["de", "en"])
    corpora = [
        replace(corpus(tmp_path / "a", [*PAIRS, ("", "x"), ("a " * 999, "b")]), to="de", protect=0.5),
        replace(corpus(tmp_path / "b", PAIRS[:50]), to="en"),
    ]
    monkeypatch.setattr(preparation, "cores", lambda: 1)
    here = prepare(corpora, tokenizer, tmp_path / "here")
    done_here: list[int] = []
    encode = Encoder.__call__
    monkeypatch.setattr(Encoder, "__call__", lambda self, job: (done_here.append(job[0]), encode(self, job))[1])
    monkeypatch.setattr(preparation, "cores", lambda: 4)
    monkeypatch.setattr(preparation, "SERVE", serve)
    there = prepare(corpora, tokenizer, tmp_path / "there")
    assert bool(done_here) == (serve != SERVE)  # dead ones are stood in for
    assert here.report == there.report
    for file in (tmp_path / "here").iterdir():
        assert file.read_bytes() == (tmp_path / "there" / file.name).read_bytes(), file.name


def test_filters_count_what_they_drop(tmp_path: Path) -> None:
    pairs = [
        *PAIRS[:20],
        ("", "x"),
        ("x", " \t"),
        ("word " * 100_000, "x"),
        ("x " * 60, "y " * 60),
        ("the number 1 is 1 .", "die Zahl ist " * 12),
        ("the", "die Zahl 1 ist 1 ."),  # short ones may differ
    ]
    options = FilterOptions(max_tokens=50, max_ratio=2.0)
    report = prepare([corpus(tmp_path / "a", pairs)], TOKENIZER, tmp_path / "s", options).report
    dropped = {key: report[key] for key in ("read", "kept", "empty", "too_long", "too_short", "mismatched")}
    assert dropped == {"read": 26, "kept": 21, "empty": 2, "too_long": 2, "too_short": 0, "mismatched": 1}


def test_nothing_left(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no pair is left of the 3 read: 2 with an empty side, 1 longer than 5 tokens"):
        prepare([corpus(tmp_path / "a", [("", "a"), ("b", ""), PAIRS[0]])], TOKENIZER, tmp_path / "s", FilterOptions(5))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_reused_when_unchanged_and_made_again_when_changed(tmp_path: Path) -> None:
    def made(source: Corpus, tokenizer: Tokenizer = TOKENIZER, options: FilterOptions | None = None) -> bool:
        chunks: list[int] = []
        prepare([source], tokenizer, tmp_path / "store", options, chunks.append)
        return bool(chunks)

    source = corpus(tmp_path / "a")
    assert made(source)
    assert not made(source)
    assert not made(Corpus(jsonl=tmp_path / "a", weight=3.0))
    assert made(source, options=FilterOptions(99))
    assert made(source)
    assert made(source, tokenizer=Tokenizer.train(PAIRS, TokenizerOptions("bpe", 311)))
    assert made(source)
    os.utime(tmp_path / "a", ns=(1, 1))
    assert made(source)
    assert made(corpus(tmp_path / "a", PAIRS[:50]))
    assert len(Store(tmp_path / "store")) == 50
    # A damaged store is not taken for a good one.
    (tmp_path / "store" / "tgt.bin").write_bytes(b"")
    assert made(source)


def test_an_interrupted_preparation_leaves_the_old_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glassformer.data.preparation.CHUNK", 10)
    prepare([corpus(tmp_path / "a")], TOKENIZER, tmp_path / "store")

    def interrupt(read: int) -> None:
        if read > 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare([corpus(tmp_path / "a", PAIRS[:100])], TOKENIZER, tmp_path / "store", progress=interrupt)
    assert len(Store(tmp_path / "store")) == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "store"]


def test_leftovers_of_a_killed_preparation_are_removed(tmp_path: Path) -> None:
    old, new = tmp_path / ".store.partial-old", tmp_path / ".store.partial-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "src.bin").write_bytes(b"x")
    for path in (old / "src.bin", old):
        os.utime(path, (1, 1))
    prepare([corpus(tmp_path / "a")], TOKENIZER, tmp_path / "store")
    assert not old.exists()
    assert new.exists()


def test_large_vocabularies_take_wider_ids(tmp_path: Path) -> None:
    pairs = [(" ".join(f"w{n}" for n in range(k, k + 200)), "x " * 200) for k in range(0, 66_000, 200)]
    words = Tokenizer.train(pairs, TokenizerOptions("words", 100_000))
    store = prepare([corpus(tmp_path / "a", pairs)], words, tmp_path / "s")
    assert (tmp_path / "s" / "src.bin").stat().st_size == 4 * store.report["src_tokens"]
    assert words.decode_source([store.pair(329)[0]]) == [pairs[329][0]]


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    (tmp_path / "mine" / "meta.json").write_text("{}")  # a name that a prepared corpus has too
    with pytest.raises(DataError, match="holds other files"):
        prepare([corpus(tmp_path / "a")], TOKENIZER, tmp_path / "mine")
    with pytest.raises(DataError, match="cannot be written"):
        prepare([corpus(tmp_path / "a")], TOKENIZER, tmp_path / "a" / "store")
    with pytest.raises(DataError, match="not a prepared corpus"):
        Store(tmp_path)
    with pytest.raises(ConfigError, match="no corpus"):
        prepare([], TOKENIZER, tmp_path / "s")
    with pytest.raises(ConfigError, match="max_tokens"):
        FilterOptions(max_tokens=0)
    with pytest.raises(DataError, match="does not exist"):
        prepare([Corpus(tsv=tmp_path / "aa")], TOKENIZER, tmp_path / "s")
    assert not (tmp_path / "s").exists()
