"""Every objective: what it sees, what it is asked, and that the two never meet."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from small_run import RECIPE, digest, metrics, train_here, write_recipe

from glassformer import bundle
from glassformer.errors import ConfigError
from glassformer.model import DecoderOnly
from glassformer.text import END, PAD, START, Batches, BatchOptions, Corpus, FilterOptions, Tokenizer, prepare
from glassformer.train import read_recipe
from glassformer.train.objective import OBJECTIVES

PAIRS = '{name}.en"\ntgt = "{name}.de"'


def lone(recipe: str = RECIPE) -> str:
    """The small run's recipe on the English of its pairs: a file of texts, and one side of two."""
    texts = recipe.replace('src = "train.en"\ntgt = "train.de"', 'text = "train.en"')
    return texts.replace('tgt = "valid.de"', 'tgt = "valid.de"\nonly = "src"')


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("texts"), lone().replace("[train]", '[train]\nobjective = "language"'))


def test_a_language_model_is_trained_packed_and_resumed(texts: Path, tmp_path: Path) -> None:
    packed = ("train.pack=true", "data.max_tokens=15")
    told = train_here(texts, tmp_path / "whole", *packed)
    assert "train: 300 texts, " in told
    assert "source" not in told
    assert "valid perplexity" in told
    made = bundle.load(tmp_path / "whole").of_kind(DecoderOnly)
    assert made.config.vocab_size == 10  # four special pieces and the six words of the English side
    losses = [row["valid_loss"] for row in metrics(tmp_path / "whole") if "valid_loss" in row]
    assert losses[-1] < losses[0]
    train_here(texts, tmp_path / "half", *packed, "train.steps=35")
    train_here(None, tmp_path / "half", "train.steps=60", resume=True)
    assert digest(tmp_path / "half") == digest(tmp_path / "whole")


def test_texts_side_by_side_do_not_see_each_other(texts: Path, tmp_path: Path) -> None:
    """The loss of packed rows is that of each text alone; with the borders forgotten, it is another."""
    corpus = [Corpus(text=texts.parent / "train.en")]
    lines = (texts.parent / "train.en").read_text().splitlines()
    recipe = read_recipe(str(texts))
    tokenizer = Tokenizer.train((("", line) for line in lines), recipe.tokenizer)
    store = prepare(corpus, tokenizer, tmp_path / "store", FilterOptions(max_tokens=15))
    batches = Batches(store, BatchOptions(tokens=256, pack=True, width=16))
    assert (batches.shapes[0].src, batches.shapes[0].tgt) == (0, 16)
    assert batches.epoch(0).padding_share < 0.25
    assert sum(batch.pairs for batch in batches.epoch(0)) == len(lines)
    rows = {name: torch.from_numpy(x) for name, x in OBJECTIVES["language"].rows(batches.epoch(0)[0]).items()}
    labels = rows.pop("labels")
    model = DecoderOnly(recipe.model_config(tokenizer)).eval()
    seen = model(**rows)
    forgotten = model(rows["ids"])
    alone, ids = torch.zeros_like(seen), rows["ids"]
    for row in range(len(ids)):
        starts = [*(ids[row] == START).nonzero().flatten().tolist(), int((ids[row] != PAD).sum())]
        for begin, end in itertools.pairwise(starts):
            alone[row, begin:end] = model(ids[row, begin:end][None])[0]
            assert labels[row, end - 1] == END
            assert torch.equal(labels[row, begin : end - 1], ids[row, begin + 1 : end])
    real = labels != PAD
    assert (seen - alone)[real].abs().max() < 1e-5
    assert (forgotten - alone)[real].abs().max() > 1e-2


def test_texts_may_be_compressed_and_empty_ones_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one two\n\nthree\n"))
    tokenizer = Tokenizer.train([("", "one two three")], read_recipe("numerals", ('tokenizer.kind="words"',)).tokenizer)
    store = prepare([Corpus(text=tmp_path / "a.gz")], tokenizer, tmp_path / "store")
    assert (store.report["kept"], store.report["empty"]) == (2, 1)
    assert [lengths.tolist() for lengths in store.lengths()] == [[0, 0], [2, 1]]
    assert store.pair(0) == ([], tokenizer.encode_target(["one two"])[0])
    assert np.array_equal(store.gather_tgt([1], 1)[0], tokenizer.encode_target(["three"]))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            ["train.objective=language"],
            r"numerals \(train\) has pairs, and train.objective = 'language' learns from plain",
        ),
        (['data.train=[{text="a"}]'], r"has plain texts, and train.objective = 'translate' learns from pairs: give"),
        (['data.train=[{text="a", only="src"}]'], r"a corpus with `text` has one side; `only = 'src'` is for pairs"),
        (["train.objective=langage"], r"train.objective = 'langage' must be one of .*did you mean `language`"),
    ],
)
def test_a_corpus_of_the_other_kind_is_told(changes: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_recipe("numerals", tuple(changes))
