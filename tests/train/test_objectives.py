"""Every objective: what it sees, what it is asked, and that the two never meet."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from small_run import RECIPE, metrics, train_here, write_recipe
from test_distributed import assert_two_processes_equal_one
from test_resume import assert_same, assert_survives_a_kill
from torch import Tensor

from glassformer import load_model
from glassformer.common.errors import ConfigError
from glassformer.data import PAD, Batch, Batches, BatchOptions, Corpus, FilterOptions, Store, Tokenizer, prepare
from glassformer.model import Model, ModelConfig
from glassformer.model.loss import IGNORED
from glassformer.train import Recipe, read_recipe
from glassformer.train.feed import local_rows
from glassformer.train.objective import OBJECTIVES
from glassformer.train.parallel import World
from glassformer.train.step import Stepper
from glassformer.weights import bundle
from glassformer.weights.parity import cases, random_model, saved

ALONE = World(0, 1, torch.device("cpu"))
# Each objective by its name, and what else its recipe says.
GOALS = {
    "language": ("train.objective=language",),
    "masked": ("train.objective=masked",),
    "spans": ("train.objective=denoise",),
    "infill": ("train.objective=denoise", "train.noise=infill", "train.noise_share=0.3"),
}
every_goal = pytest.mark.parametrize("goal", GOALS)


def lone(recipe: str = RECIPE) -> str:
    """The small run's recipe on the English of its pairs: a file of texts, and one side of two."""
    texts = recipe.replace('src = "train.en"\ntgt = "train.de"', 'text = "train.en"')
    texts = texts.replace('tgt = "valid.de"', 'tgt = "valid.de"\nonly = "src"')
    return texts.replace("[train]", '[train]\nobjective = "language"\npack = true') + "[data]\nmax_tokens = 30\n"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("texts"), lone())


def asked(goal: str, lines: list[str], folder: Path) -> tuple[Recipe, Tokenizer, Store]:
    """A recipe of the objective, a vocabulary of 61 words, and these lines as the objective has them."""
    words = [f"w{number}" for number in range(40)]
    recipe = read_recipe("numerals", (*GOALS[goal], *LONE, "data.max_tokens=40"))
    pieces = recipe.special_pieces
    tokenizer = Tokenizer.train([("", " ".join(words))], recipe.tokenizer, reserved=pieces)
    folder.mkdir(exist_ok=True)
    (folder / "texts").write_text("\n".join(lines) + "\n")
    store = prepare([Corpus(text=folder / "texts")], tokenizer, folder / "store", FilterOptions(max_tokens=40))
    noise = recipe.objective.noise
    return (
        recipe,
        tokenizer,
        store if noise is None else store.with_noise(noise(recipe.train, tokenizer, pieces), seed=5),
    )


SPLITS = ("train", "valid", "test")
LONE = ('tokenizer.kind="words"', *(f'data.{split}=[{{builtin="numerals", only="src"}}]' for split in SPLITS))
SETTINGS = {"d_model": 32, "heads": 2, "d_ff": 64, "layers": 2, "dropout": 0.0, "max_length": 64}
PEERS = (("language", "gpt2"), ("masked", "bert"), ("spans", "t5"), ("infill", "bart"))


def some_lines(count: int) -> list[str]:
    chance = random.Random(0)
    return [" ".join(f"w{chance.randrange(40)}" for _ in range(chance.randint(1, 25))) for _ in range(count)]


def total(model: Model, recipe: Recipe, batches: Batches, spoil: Callable[[dict[str, Tensor]], None]) -> Tensor:
    """The loss of an epoch's texts, and how many labels are the likeliest."""
    stepper = Stepper(model, recipe.train, ALONE)
    found = torch.zeros(2)
    for batch in batches.epoch(3):
        inputs = local_rows(batch, ALONE, objective=recipe.train.objective)
        spoil(inputs.rows)
        found += stepper.evaluate(inputs)
    return found


@every_goal
def test_packed_texts_cost_what_they_cost_alone(goal: str, tmp_path: Path) -> None:
    """And with their borders forgotten, something else."""
    recipe, tokenizer, store = asked(goal, some_lines(60), tmp_path / "a")
    model = recipe.objective.model(ModelConfig(vocab_size=tokenizer.tgt_size, **SETTINGS)).eval()
    packed = Batches(store, BatchOptions(tokens=256, pack=True, width=recipe.row_width))
    apart = Batches(store, BatchOptions(tokens=256))
    assert sum(batch.pairs for batch in packed.epoch(3)) == 60
    assert packed.epoch(3).padding_share < 0.4

    def forget(rows: dict[str, Tensor]) -> None:
        for name, places in rows.items():
            if name.endswith("places"):
                rows[name] = torch.arange(places.shape[1]).expand_as(places)

    expected = total(model, recipe, apart, lambda rows: None)
    assert torch.allclose(total(model, recipe, packed, lambda rows: None), expected, rtol=1e-5)
    assert not torch.allclose(total(model, recipe, packed, forget), expected, rtol=1e-3)


@pytest.mark.parametrize("wide", [5, 6, 7])
def test_gaps_stand_where_their_labels_do_whatever_the_padding(wide: int) -> None:
    src, labels = np.array([[1, 9, 8, 2, 0, 0]]), np.array([[0, 7, 0, 2, *[0] * (wide - 4)]])
    rows = OBJECTIVES["masked"].rows(Batch(src, src != PAD, labels, labels, 1, 1))
    assert rows["labels"].tolist() == [[0, 7, 0, 0, 0, 0]]


@pytest.mark.parametrize(("goal", "family"), PEERS)
def test_the_loss_is_hugging_faces(goal: str, family: str, tmp_path: Path) -> None:
    recipe, _, store = asked(goal, some_lines(12), tmp_path / "a")
    batch = Batches(store, BatchOptions(tokens=1000, shapes=1)).epoch(0)[0]
    case = next(case for case in cases() if case.family == family)
    peer = random_model(case)
    with saved(peer, case) as folder:
        model = load_model(folder)
    inputs = local_rows(batch, ALONE, objective=recipe.train.objective)
    ours = Stepper(model, recipe.train, ALONE).evaluate(inputs)[0] / inputs.count
    rows = inputs.rows
    labels = rows["labels"].clone()
    if "src" in rows:
        given = {"input_ids": rows["src"], "attention_mask": rows["src_mask"].long(), "decoder_input_ids": rows["tgt"]}
    else:
        given = {"input_ids": rows["ids"]} | ({"attention_mask": rows["mask"].long()} if "mask" in rows else {})
    with torch.no_grad():
        if goal == "language":  # GPT-2 shifts labels itself: each is asked of the token before it
            labels = torch.cat((torch.full_like(labels[:, :1], -100), labels), 1)
            given["input_ids"] = torch.cat((given["input_ids"], torch.zeros_like(labels[:, :1])), 1)
        theirs = peer(**given, labels=labels).loss
        assert abs(float(ours - theirs)) < 1e-5
        labels[labels == -100] = 5  # what is not asked must not count
        assert abs(float(ours - peer(**given, labels=labels).loss)) > 1e-3


def packed_rows(goal: str, words: list[str], folder: Path) -> tuple[Recipe, Tokenizer, dict[str, Tensor]]:
    recipe, tokenizer, store = asked(goal, [" ".join(words), "w3 w4"], folder)
    batch = Batches(store, BatchOptions(tokens=256, pack=True)).epoch(0)[0]
    return recipe, tokenizer, local_rows(batch, ALONE, objective=recipe.train.objective).rows


@every_goal
@torch.no_grad()
def test_no_answer_is_seen(goal: str, tmp_path: Path) -> None:
    """Another word in a text changes its label, and nothing of the logits that are asked for it; with the mask broken,
    it does."""
    words = [f"w{number}" for number in range(1, 21)]
    recipe, tokenizer, rows = packed_rows(goal, words, tmp_path / "a")
    model = recipe.objective.model(ModelConfig(vocab_size=tokenizer.tgt_size, **SETTINGS)).eval()
    source = rows.get("src", rows.get("ids"))

    def logits(given: dict[str, Tensor]) -> Tensor:
        return model(**{name: x for name, x in given.items() if name != "labels"})

    pairs = []
    for place in range(len(words)):
        other = packed_rows(goal, [*words[:place], "w39", *words[place + 1 :]], tmp_path / f"{place}")[2]
        differ = (rows["labels"] != other["labels"]).nonzero()
        # A word that is not asked, or that stands in the source for all to see, is no secret.
        if len(differ) and (goal == "language" or torch.equal(source, other.get("src", other.get("ids")))):
            assert len(differ) == 1
            pairs.append((tuple(differ[0].tolist()), other))
    assert pairs
    assert all(torch.equal(logits(rows)[at], logits(other)[at]) for at, other in pairs)
    if goal == "masked":  # the gaps are filled again
        for given in (rows, *(other for _, other in pairs)):
            given["ids"] = torch.where(given["labels"] == IGNORED, given["ids"], given["labels"])
    else:  # every token sees what follows it
        model.decoder.causal = False
    assert all((logits(rows)[at] - logits(other)[at]).abs().max() > 1e-4 for at, other in pairs)


@pytest.mark.parametrize(
    "goal", ["language", *(pytest.param(goal, marks=pytest.mark.long) for goal in GOALS if goal != "language")]
)
def test_an_objective_survives_a_kill_and_runs_on_two_processes(goal: str, texts: Path, tmp_path: Path) -> None:
    changes = (*GOALS[goal], "train.steps=14", "train.log_every=1", "train.valid_every=7", "train.ema=0.0")
    assert_survives_a_kill(texts, tmp_path, *changes)
    assert_two_processes_equal_one(texts, tmp_path, *changes, "model.dropout=0.0")
    assert metrics(tmp_path / "one")[-1]["valid_loss"] < metrics(tmp_path / "one")[0]["loss"]


@every_goal
def test_an_objective_trains_and_goes_on_as_if_uninterrupted(goal: str, texts: Path, tmp_path: Path) -> None:
    changes = (*GOALS[goal], "train.log_every=1", "train.valid_every=3", "train.save_every=2", "train.ema=0.0")
    told = train_here(texts, tmp_path / "whole", *changes, "train.steps=6")
    assert "train: 300 texts, " in told
    assert ("valid accuracy" if goal == "masked" else "valid perplexity") in told
    assert type(bundle.load(tmp_path / "whole").model) is read_recipe(str(texts), changes).objective.model
    train_here(texts, tmp_path / "run", *changes, "train.steps=3")
    train_here(None, tmp_path / "run", "train.steps=6", resume=True)
    assert_same(tmp_path / "run", tmp_path / "whole")


def test_texts_may_be_compressed_and_empty_ones_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one two\n\nthree\n"))
    tokenizer = Tokenizer.train([("", "one two three")], read_recipe("numerals", ('tokenizer.kind="words"',)).tokenizer)
    store = prepare([Corpus(text=tmp_path / "a.gz")], tokenizer, tmp_path / "store")
    assert (store.report["kept"], store.report["empty"]) == (2, 1)
    assert [lengths.tolist() for lengths in store.lengths()] == [[0, 0], [2, 1]]
    assert store.pair(0) == ([], tokenizer.encode_target(["one two"])[0])
    assert np.array_equal(store.gather("tgt", [1], 1)[0], tokenizer.encode_target(["three"]))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["train.objective=language"], r"numerals \(train\) has pairs, and .* 'language' learns from plain texts"),
        (['data.train=[{text="a"}]'], r"has plain texts, and train.objective = 'translate' learns from pairs: give"),
        (['data.train=[{text="a", only="src"}]'], r"a corpus with `text` has one side; `only = 'src'` is for pairs"),
        (["train.objective=langage"], r"train.objective = 'langage' must be one of .*did you mean `language`"),
    ],
)
def test_a_corpus_of_the_other_kind_is_told(changes: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_recipe("numerals", tuple(changes))
