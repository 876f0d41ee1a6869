"""A start that fails leaves everything as it was, and the next one works at once."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
from small_run import digest, train_here

from glassformer.common.errors import ConfigError, DataError, GlassformerError, RunError, WeightsError
from glassformer.data.tokenizer import Tokenizer
from glassformer.train import run

# What a start calls, from its first file to its last, and in which starts: a new one, and one that goes on.
CALLS = [
    *[(run, name, "new begun") for name in ("check_memory", "load_vocabulary", "check_lengths", "prepare", "describe")],
    *[(run.Setup, name, "new begun") for name in ("tokenizer", "store")],
    *[(run.Recipe, "check_files", "new begun"), (run.checkpoint, "newest", "new begun")],
    *[(run.Setup, "make_vocabulary", "new"), (run.bundle, "save_tokenizer", "new"), (run.Trainer, "restore", "begun")],
    (run, "write_text", "new begun"),
]  # fmt: skip
ERRORS = [ConfigError, DataError, RunError, WeightsError, OSError, MemoryError, KeyError]


def tree(folder: Path) -> dict[Path, bytes | None]:
    return {path: None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize(("place", "name", "starts"), CALLS, ids=[name for _, name, _ in CALLS])
def test_wherever_a_start_fails_nothing_is_left_of_it(
    recipe: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: object, name: str, starts: str
) -> None:
    shutil.copytree(whole, tmp_path / "begun" / "run")
    before, call = tree(tmp_path), getattr(place, name)
    for start, after in itertools.product(starts.split(), (False, True) if name != "write_text" else (False,)):
        kind = ERRORS[(len(name + start) + after) % len(ERRORS)]

        def fail(*words: object, after: bool = after, kind: type[Exception] = kind, **options: object) -> None:
            if after:
                call(*words, **options)
            raise kind("on purpose")

        monkeypatch.setattr(place, name, fail)
        again = start == "begun"
        with pytest.raises(GlassformerError if kind is OSError else kind, match="on purpose"):
            train_here(None if again else recipe, tmp_path / start / "run", "train.steps=61", resume=again)
        assert tree(tmp_path) == before


@pytest.mark.parametrize("theirs", [False, True])
def test_what_a_killed_start_leaves_is_in_no_way(recipe: Path, whole: Path, tmp_path: Path, theirs: bool) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole / "prepared", out / "prepared")
    (out / "prepared" / ".train.partial-1").mkdir()
    for name in (".glassformer.lock", ".glassformer-01.partial", "tokenizer.json", "labels.json", "source_words.txt"):
        (out / name).write_text("half a file")
    if theirs:
        (out / "thesis.txt").write_text("mine")
        before = tree(out)
        with pytest.raises(RunError, match="holds no run of ours"):
            train_here(recipe, out)
        assert tree(out) == before
    else:
        train_here(recipe, out)
        assert digest(out) == digest(whole)


@pytest.mark.parametrize(
    ("size", "joint", "kind"), [(5, False, "words"), (9, False, "words"), (10, True, "words"), (280, True, "bpe")]
)
def test_the_share_of_unknown_tokens_is_told_and_bounded(
    recipe: Path, tmp_path: Path, size: int, joint: bool, kind: str
) -> None:
    options = (f"tokenizer.vocab_size={size}", f"tokenizer.joint={str(joint).lower()}", f"tokenizer.kind={kind}")
    options += ("model.tied=false", "train.steps=1", "train.batch_tokens=512")
    told = train_here(recipe, tmp_path / "run", *options, "data.max_unknown=1")
    tokenizer, shares = Tokenizer.load(tmp_path / "run"), {}
    for name in ("train", "valid"):  # counted word by word
        for side, end, known in (("source", "en", tokenizer.pieces[0]), ("target", "de", tokenizer.pieces[1])):
            words = (recipe.parent / f"{name}.{end}").read_text(encoding="utf-8").split()
            found = sum(word not in known.values() for word in words) / len(words) if kind == "words" else 0
            shares |= {(name, side): found} if found else {}
    assert told.count("in no vocabulary") == len({name for name, _ in shares})
    assert all(f"{share:.2%} of the {side} tokens" in told for (_, side), share in shares.items())
    if not shares:
        train_here(recipe, tmp_path / "other", *options, "data.max_unknown=0")
        return
    worst = max(shares.values())
    train_here(recipe, tmp_path / "other", *options, f"data.max_unknown={worst + 1e-9}")
    for bound in (
        (),
        (f"data.max_unknown={max(share for (name, _), share in shares.items() if name == 'train') - 1e-9}",),
    ):
        with pytest.raises(
            DataError, match=r"train: .* are in no vocabulary .* tokenizer.kind = 'bpe', .* data.max_unk"
        ):
            train_here(recipe, tmp_path / "refused", *options, *bound)
    assert not (tmp_path / "refused").exists()
