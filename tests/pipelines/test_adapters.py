"""An adapter beside its base: every use of a model takes it, in Python and on the command line, and none on another."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from small_run import Cli
from tiny_published import bert, gpt2

import glassformer as gf
from glassformer.common.errors import WeightsError
from glassformer.model import Model
from glassformer.weights import bundle
from glassformer.weights import lora as adapter
from glassformer.weights.quantized import weights

PAIR = Path(__file__).parent.parent / "page" / "bundle"
TEXT = "Paris is the [MASK] of France."


def learnt(model: Model, folder: Path) -> None:
    """An adapter with something in it, as a run would leave it."""
    adapter.attach(model, 2, 8.0, ["*attention.*"], seed=1)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if adapter.is_added(name):
                tensor.normal_(std=0.5, generator=torch.Generator().manual_seed(len(name)))
    folder.mkdir()
    adapter.save(folder, model, weights(model), 8.0, "the base")


def test_a_generator_with_an_adapter(tmp_path: Path, cli: Cli) -> None:
    gpt2(tmp_path / "base")
    model = gf.load_model(tmp_path / "base")
    learnt(model, tmp_path / "learnt")
    plain = gf.TextGenerator.load(tmp_path / "base")
    found = gf.TextGenerator.load(tmp_path / "base", adapter=tmp_path / "learnt")
    ids = torch.randint(0, 200, (2, 7), generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        torch.testing.assert_close(found.model(ids), model(ids), atol=1e-5, rtol=0)
        assert not torch.allclose(plain.model(ids), model(ids), atol=1e-3)
    asked = ["generate", str(tmp_path / "base"), "Paris is", "--max-new-tokens", "8", "--device", "cpu"]
    said = cli(*asked, "--adapter", str(tmp_path / "learnt"), "--json", "--precision", "fp32")[1]
    told = json.loads(said)["continuations"][0]
    (((best),),) = found.generate(["Paris is"], max_new_tokens=8)
    assert (told["text"], told["score"]) == (best.text, pytest.approx(best.score, abs=1e-5))
    assert cli(*asked)[1] != cli(*asked, "--adapter", str(tmp_path / "learnt"))[1]


def test_a_filler_with_an_adapter(tmp_path: Path, cli: Cli) -> None:
    bert(tmp_path / "base")
    learnt(gf.load_model(tmp_path / "base"), tmp_path / "learnt")
    ((ranked,),) = gf.MaskFiller.load(tmp_path / "base", adapter=tmp_path / "learnt").fill([TEXT])
    assert ranked != gf.MaskFiller.load(tmp_path / "base").fill([TEXT])[0][0]
    asked = ["fill", str(tmp_path / "base"), TEXT, "--json", "--device", "cpu"]
    told = json.loads(cli(*asked, "--adapter", str(tmp_path / "learnt"))[1])
    assert [one["token"] for one in told["gaps"][0]] == [one.token for one in ranked]
    scores = [
        gf.evaluate(tmp_path / "base", ["Paris is the capital"], device="cpu", adapter=one).scores.to_dict()
        for one in (None, tmp_path / "learnt")
    ]
    assert scores[0] != scores[1]


def test_a_translator_with_an_adapter(tmp_path: Path, cli: Cli) -> None:
    base = Path(shutil.copytree(PAIR, tmp_path / "base"))
    learnt(bundle.load(base).model, tmp_path / "learnt")
    plain, found = gf.Translator.load(base), gf.Translator.load(base, adapter=tmp_path / "learnt")
    assert found.score(["one"], ["eins"]) != pytest.approx(plain.score(["one"], ["eins"]), abs=1e-3)
    rounded = gf.Translator.load(base, precision="int8", adapter=tmp_path / "learnt")
    rounded("one")
    assert all(torch.equal(a, b) for a, b in zip(rounded.model.parameters(), found.model.parameters(), strict=True))
    asked = ["translate", str(base), "one", "two", "--json", "--device", "cpu", "--precision", "fp32"]
    told = [json.loads(line) for line in cli(*asked, "--adapter", str(tmp_path / "learnt"))[1].splitlines()]
    best = [ranked[0] for ranked in found.translate(["one", "two"])]
    assert [one["translations"][0]["score"] for one in told] == pytest.approx([one.score for one in best], abs=1e-5)
    evaluated = gf.evaluate(base, ["one"], ["eins"], device="cpu", adapter=tmp_path / "learnt", record=True)
    assert evaluated.name == "given sentences with the adapter learnt"
    assert evaluated.name in bundle.read_scores(base)


def test_on_another_base_it_is_refused(tmp_path: Path, cli: Cli) -> None:
    gpt2(tmp_path / "base")
    learnt(gf.load_model(tmp_path / "base"), tmp_path / "learnt")
    bert(tmp_path / "other")
    for load in (gf.MaskFiller.load, gf.Classifier.load):
        with pytest.raises(
            WeightsError, match=r"was made for other weights than this model's: for those of 'the base'"
        ):
            load(tmp_path / "other", adapter=tmp_path / "learnt")
    with pytest.raises(WeightsError, match=r"was made for other weights"):
        gf.Translator.load(PAIR, adapter=tmp_path / "learnt")
    code, _, said = cli("translate", str(PAIR), "one", "--adapter", str(tmp_path / "base"))
    assert (code, "holds no adapter (adapter.json); a run with train.lora_rank writes one" in said) == (2, True)
    code, _, said = cli("translate", "one", "--to", "de", "--adapter", str(tmp_path / "learnt"))
    assert (code, "--adapter goes with a model, such as en-de" in said) == (2, True)
