"""One model for both directions: tags from the recipe to the translator, and a score for each language."""

import pytest
from small_run import WORDS

import glassformer as gf
from glassformer.common.errors import ConfigError, GlassformerError
from glassformer.common.report import Report
from glassformer.train import train
from glassformer.train.recipe import parse, read_recipe
from glassformer.train.step import should_compile


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A model of six words that learns each in either language, packed."""
    folder = tmp_path_factory.mktemp("both")
    lines = [(a, b) for a in WORDS.items() for b in WORDS.items()]
    (folder / "a.en").write_text("".join(f"{a[0]} `x{i}` {b[0]}\n" for i, (a, b) in enumerate(lines)), encoding="utf-8")
    (folder / "a.de").write_text("".join(f"{a[1]} `x{i}` {b[1]}\n" for i, (a, b) in enumerate(lines)), encoding="utf-8")
    there = {"src": "a.en", "tgt": "a.de", "from": "en", "to": "de", "protect": 0.5}
    back = {"src": "a.de", "tgt": "a.en", "from": "de", "to": "en", "protect": 0.5}
    recipe = parse(
        {
            "data": {"train": [there, back], "test": [there, back], "max_tokens": 60},
            "tokenizer": {"vocab_size": 320, "placeholders": 2},
            "model": {"d_model": 64, "heads": 4, "d_ff": 128, "layers": 1, "max_length": 64, "dropout": 0.0},
            "train": {"steps": 90, "batch_tokens": 512, "pack": True, "lr": 5e-3, "schedule": "cosine"}
            | {"warmup_steps": 10, "label_smoothing": 0.0, "precision": "fp32"},
        },
        folder,
    )
    train(recipe, folder / "run", device="cpu", report=Report(quiet=True))
    return folder / "run"


def test_a_model_translates_in_both_directions(both):
    there = gf.Translator.load(both, to="de")
    back = there.toward("en")
    assert (there.to, back.to) == ("de", "en")
    assert there.engine is back.engine
    assert [there(word) for word in WORDS] != [back(word) for word in WORDS]
    assert there("two `x9` three").split()[0] == "zwei"
    assert back("zwei `x9` drei").split()[0] == "two"
    assert there("") == ""
    mark = there.tokenizer.placeholders[0]
    assert mark in there(f"two {mark} three")


def test_the_target_must_be_a_language_of_the_model(both):
    with pytest.raises(GlassformerError, match="translates into de and en; say into which: to='de'"):
        gf.Translator.load(both)
    with pytest.raises(GlassformerError, match="no tag for `fr`"):
        gf.Translator.load(both, to="fr")


def test_each_language_has_its_own_score(both):
    evaluation = gf.evaluate(both, split="test", to="de")
    assert evaluation.name == "test en-de"
    assert all("`" in source for source in evaluation.sources)
    assert evaluation.references[0].startswith("eins")
    assert gf.evaluate(both, split="test", to="en").references[0].startswith("one")
    with pytest.raises(ConfigError, match="into de and en; say which"):
        gf.evaluate(both, split="test")
    with pytest.raises(ConfigError, match="no pairs into `zh`"):
        gf.evaluate(both, split="test", to="zh")


PAIR = {"src": "a", "tgt": "b"}


@pytest.mark.parametrize(
    ("train_on", "test_on", "error"),
    [
        ([PAIR | {"to": "de"}, PAIR], [], "others have not"),
        ([PAIR | {"to": "de"}], [PAIR | {"to": "zh"}], "data.test: a corpus has to = 'zh', but data.train learns `de`"),
        ([PAIR], [PAIR | {"to": "zh"}], "names no language"),
        ([PAIR | {"protect": 0.5}], [], "set tokenizer.placeholders"),
        ([PAIR | {"protect": 1.5}], [], "share between 0 and 1"),
        ([PAIR | {"to": "de", "form": "en"}], [], "did you mean `from`"),
    ],
)
def test_mistakes_in_the_directions_of_a_recipe(train_on, test_on, error):
    with pytest.raises(ConfigError, match=error):
        parse({"data": {"train": train_on, "test": test_on}})


def test_long_runs_compile():
    import torch

    def compiles(device: str, *changes: str) -> bool:
        packed = ('train.compile="auto"', "train.pack=true", *changes)
        return should_compile(read_recipe("multi30k", packed).train, torch.device(device))

    assert compiles("cuda", "train.steps=34000")
    assert not compiles("cpu", "train.steps=34000")
    assert not compiles("cuda", "train.steps=500")
    assert not compiles("cuda", "train.steps=20000", "train.pack=false")
    assert compiles("cpu", "train.steps=1", "train.compile=true")


def test_the_commands_take_a_direction(both, cli, tmp_path):
    (tmp_path / "a").write_text("two\n", encoding="utf-8")
    (tmp_path / "b").write_text("zwei\n", encoding="utf-8")
    files = ("--src", tmp_path / "a", "--tgt", tmp_path / "b")
    for command in (["translate", both, "two"], ["trace", both, "two"], ["score", both, *files]):
        assert "say into which" in cli.fails(*command)
        code, _, err = cli(*command, "--to", "de")
        assert code == 0, err
    assert "say into which" in cli.fails("trace", both, "two", "--from", "en")
