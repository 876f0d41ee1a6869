"""Training that goes on from a trained model: all of it, or frozen weights, rates by layer, adapters, a new head."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_run import by_hand, metrics
from torch import Tensor

import glassformer as gf
from glassformer.common.errors import ConfigError, InputError, WeightsError
from glassformer.common.report import Report
from glassformer.model import EncoderDecoder, EncoderOnly, ModelConfig
from glassformer.train import checkpoint
from glassformer.train.folder import saved_recipe
from glassformer.train.options import Train
from glassformer.train.recipe import Recipe, parse
from glassformer.train.run import train
from glassformer.train.start import copy_base_weights
from glassformer.train.tuning import layer_distance, lr_factor, select_trainable
from glassformer.weights import bundle
from glassformer.weights import lora as adapter

MODEL = {"d_model": 32, "heads": 2, "d_ff": 64, "layers": 2, "dropout": 0.1, "max_length": 272}
TRAIN = {"batch_tokens": 512, "log_every": 1, "valid_every": 2, "save_every": 2, "precision": "fp32", "lr": 0.01}
DATA = {
    "train": [{"builtin": "numerals", "size": 300}],
    "valid": [{"builtin": "numerals", "split": "valid", "size": 60}],
}
LORA = {"lora_rank": 4, "lora_on": ["*attention.*", "*feed_forward.up"]}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = parse({"data": DATA, "tokenizer": {"vocab_size": 400}, "model": MODEL, "train": TRAIN | {"steps": 6}})
    return train(made, tmp_path_factory.mktemp("begun") / "run")


@pytest.fixture(scope="module")
def adapted(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(going_on(begun, 4, **LORA), tmp_path_factory.mktemp("adapted") / "run")


def going_on(begun: Path, steps: int = 2, model: dict[str, Any] | None = None, **changes: Any) -> Recipe:
    settings = TRAIN | {"start": str(begun), "steps": steps, "warmup_steps": 1} | changes
    return parse({"data": DATA, "model": model or {}, "train": settings})


def valid_losses(folder: Path) -> list[float]:
    return [row["valid_loss"] for row in metrics(folder) if "valid_loss" in row]


def weights(folder: Path) -> dict[str, Tensor]:
    return {name: p.detach() for name, p in bundle.load(folder).model.named_parameters()}


def told(recipe: Recipe, folder: Path) -> str:
    stream = io.StringIO()
    train(recipe, folder, report=Report(stream))
    return stream.getvalue()


def test_shape_vocabulary_and_weights_are_those_of_the_start(begun: Path, tmp_path: Path) -> None:
    made = going_on(begun, model={"dropout": 0.3}, lr=1e-12)
    assert made.model["d_model"] == 32
    assert made.model["dropout"] == 0.3
    folder = train(made, tmp_path / "run")
    before, after = bundle.load(begun), bundle.load(folder)
    assert after.tokenizer.pieces == before.tokenizer.pieces
    kept = before.model.state_dict()
    for name, tensor in kept.items():
        torch.testing.assert_close(after.model.state_dict()[name], tensor, atol=1e-9, rtol=0)
    assert valid_losses(folder)[0] == pytest.approx(
        valid_losses(begun)[-1], abs=1e-6
    )  # it starts at the loaded model's own loss
    fresh = EncoderDecoder(before.model.config).state_dict()  # which no fresh model has
    assert not all(torch.equal(fresh[name], tensor) for name, tensor in kept.items())


def test_a_language_that_the_start_does_not_know_is_refused(begun: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("one\teins\n")
    french = [{"tsv": str(tmp_path / "pairs.tsv"), "from": "en", "to": "fr"}]
    with pytest.raises(InputError, match="no tag for `fr`"):
        train(parse({"data": {"train": french}, "train": TRAIN | {"start": str(begun)}}), tmp_path / "run")


def test_what_is_frozen_stays_and_the_rest_learns(begun: Path, tmp_path: Path) -> None:
    said = told(going_on(begun, freeze=["encoder.blocks.*", "*embedding*"], ema=0.5), tmp_path / "run")
    before, after = weights(begun), weights(tmp_path / "run")
    frozen = {name for name in before if name.startswith("encoder.blocks.") or "embedding" in name}
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]) == (name in frozen), name
    learning = sum(p.numel() for name, p in before.items() if name not in frozen)
    assert f"{learning:,} of {sum(p.numel() for p in before.values()):,} parameters learn" in said
    assert "with them head.weight, tied to one" in said


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"lora_rank": 2, "freeze": ["encoder.*"]}, "leave train.freeze out"),
        ({"lora_rank": 2, "start": ""}, "set train.start"),
        ({"layer_decay": 1.5}, "train.layer_decay = 1.5"),
        ({"lora_alpha": 0.0}, "train.lora_alpha = 0.0"),
        ({"freeze": "encoder.*"}, "train.freeze = 'encoder.*' must be a list of texts"),
    ],
)
def test_what_does_not_go_together_is_refused(begun: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told.replace(".", r"\.").replace("*", r"\*")):
        going_on(begun, **changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": {"layers": 3}}, r"model.layers = 3, but the model to go on from has 2"),
        ({"start": "/nowhere"}, "is not a trained model"),
        ({"freeze": ["encoder.block.*"]}, r"train.freeze: `encoder.block.\*` fits no name.*`encoder.blocks.0"),
        ({"lora_rank": 2, "lora_on": ["attention.q"]}, r"train.lora_on: `attention.q` fits no name.*attention"),
        ({"lora_rank": 33}, r"train.lora_rank = 33 is more than a matrix of 96 x 32 has"),
    ],
)
def test_what_does_not_fit_is_refused(begun: Path, tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        train(going_on(begun, **changes), tmp_path / "run")
    assert not (tmp_path / "run" / "recipe.toml").exists()


def test_the_distance_from_the_head() -> None:
    config = ModelConfig(vocab_size=11, d_model=8, heads=2, d_ff=8, layers=3, decoder_layers=2, output_bias=True)
    pair = EncoderDecoder(config)
    found = {name: layer_distance(name, pair) for name, _ in pair.named_parameters()}
    assert found["head.bias"] == found["decoder.norm.weight"] == 0
    assert [found[f"decoder.blocks.{i}.feed_forward.up.bias"] for i in (1, 0)] == [1, 2]
    assert [found[f"encoder.blocks.{i}.feed_forward.up.bias"] for i in (2, 1, 0)] == [2, 3, 4]
    assert found["encoder.norm.weight"] == 1
    assert found["encoder.embedding.tokens.weight"] == 5
    alone = EncoderOnly(config)
    assert layer_distance("encoder.blocks.2.feed_forward.up.bias", alone) == 1


def test_the_first_step_goes_as_far_as_the_layer_allows(begun: Path, tmp_path: Path) -> None:
    """Adam's first step is the rate itself, whatever the gradient."""
    once = {"steps": 1, "schedule": "constant", "warmup_steps": 0, "clip": 0.0, "valid_every": 1}
    for decay in (1.0, 0.5):
        folder = train(going_on(begun, layer_decay=decay, **once), tmp_path / str(decay))
        before, after = weights(begun), weights(folder)
        for name, away in (("decoder.blocks.1", 1), ("decoder.blocks.0", 2), ("encoder.blocks.0", 3)):
            name += ".feed_forward.down.weight"
            moved = float((after[name] - before[name]).abs().max())
            assert moved == pytest.approx(0.01 * decay**away, rel=1e-3), (decay, name)


@pytest.mark.parametrize(
    "changes",
    [{"freeze": ["encoder.*"], "layer_decay": 0.7, "ema": 0.9}, LORA | {"layer_decay": 0.7, "average": 2}],
    ids=["frozen", "adapter"],
)
def test_a_resumed_run_is_the_same_and_needs_the_start_no_more(
    begun: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    moved = tmp_path / "begun"
    moved.symlink_to(begun)
    whole = train(going_on(moved, 4, **changes), tmp_path / "whole")
    moved.unlink()
    halves = Path(shutil.copytree(whole, tmp_path / "halves"))
    checkpoint.listing(halves / "checkpoints")[-1].unlink()
    for name in ("model.safetensors", *((adapter.TENSORS,) if "lora_rank" in changes else ())):
        (halves / name).unlink()
    train(saved_recipe(halves), halves, resume=True)
    one, two = weights(whole), weights(halves)
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
    for name in ("adapter.safetensors",) if "lora_rank" in changes else ():
        assert (whole / name).read_bytes() == (halves / name).read_bytes()


def test_an_adapter_starts_at_the_loss_of_its_base_and_learns(begun: Path, tmp_path: Path) -> None:
    said = told(going_on(begun, lr=1e-12, **LORA), tmp_path / "still")
    assert "an adapter of rank 4 on 16 matrices; " in said
    start = valid_losses(begun)[-1]
    still = valid_losses(tmp_path / "still")[0]
    assert still == pytest.approx(start, abs=1e-6)
    train(going_on(begun, 4, **LORA), tmp_path / "run")
    losses = valid_losses(tmp_path / "run")
    assert losses[-1] < start - 0.01
    assert losses[0] != pytest.approx(start, abs=1e-3)


def test_merged_is_unmerged_and_neither_is_the_base(begun: Path, adapted: Path) -> None:
    base, merged = bundle.load(begun).of_kind(EncoderDecoder), bundle.load(adapted).of_kind(EncoderDecoder)
    saved = checkpoint.read(checkpoint.listing(adapted / "checkpoints")[-1])
    assert saved is not None
    unmerged = EncoderDecoder(base.config)
    select_trainable(unmerged, going_on(begun, **LORA).train)
    unmerged.load_state_dict({n[6:]: t for n, t in saved.tensors.items() if n.startswith("model/")}, strict=False)
    src, tgt = torch.randint(4, 300, (3, 9)), torch.randint(4, 300, (3, 7))
    with torch.no_grad():
        ours, theirs, plain = merged(src, tgt), unmerged.eval()(src, tgt), base(src, tgt)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert (plain - theirs).abs().max() > 1e-2  # the comparison can tell them apart
    # The definition, with what was added kept beside: x W^T + alpha / r (x A^T) B^T.
    name = "encoder.blocks.0.self_attention.projection"
    x, old = torch.randn(5, 32), saved.tensors[f"model/{name}{adapter.ORIGINAL}"]
    a, b = (saved.tensors[f"model/{name}{adapter.ADDED}{part}"] for part in "ab")
    written = x @ old.T + 16 / 4 * (x @ a.T) @ b.T
    new = merged.get_parameter(f"{name}.weight").detach()
    torch.testing.assert_close(x @ new.T, written, atol=1e-5, rtol=0)
    torch.testing.assert_close(old, base.get_parameter(f"{name}.weight").detach(), atol=0, rtol=0)


def test_an_adapter_loads_on_its_base_and_on_no_other(begun: Path, adapted: Path, tmp_path: Path) -> None:
    alone = tmp_path / "adapter"
    alone.mkdir()
    for name in (adapter.NUMBERS, adapter.TENSORS):
        shutil.copy(adapted / name, alone)
    assert (alone / adapter.TENSORS).stat().st_size < (begun / "model.safetensors").stat().st_size / 2
    wanted = weights(adapted)
    for name, tensor in bundle.load(begun, adapter=alone).model.named_parameters():
        torch.testing.assert_close(tensor, wanted[name], atol=1e-6, rtol=0)
    translator = gf.Translator.load(begun)
    before = translator.translate(["twenty-one"])
    gf.load_adapter(translator.model, alone)
    assert translator.score(["twenty-one"], ["einundzwanzig"]) != gf.Translator.load(begun).score(
        ["twenty-one"], ["einundzwanzig"]
    )
    after, shipped = translator.translate(["twenty-one"]), gf.Translator.load(adapted).translate(["twenty-one"])
    assert after[0][0].tokens == shipped[0][0].tokens
    assert before[0][0].score != after[0][0].score
    with pytest.raises(WeightsError, match="was made for other weights"):
        gf.load_adapter(translator.model, alone)  # it has one already
    with pytest.raises(WeightsError, match=f"for those of '{begun}'"):
        gf.load_adapter(bundle.load(adapted).model, alone)
    with pytest.raises(WeightsError, match="holds no adapter"):
        gf.load_adapter(bundle.load(begun).model, begun)
    told = json.loads((alone / adapter.NUMBERS).read_text())
    (alone / adapter.NUMBERS).write_text(json.dumps(told | {"format_version": 9}))
    with pytest.raises(WeightsError, match="is of version 9"):
        gf.load_adapter(bundle.load(begun).model, alone)


def test_bleu_is_judged_of_the_merged_model(begun: Path, tmp_path: Path) -> None:
    from glassformer.train.evaluation.evaluate import validation_bleu

    judged = going_on(begun, metric="bleu", **LORA)
    train(judged, tmp_path / "run", make_judge=validation_bleu)
    assert any("valid_bleu" in row for row in metrics(tmp_path / "run"))


@pytest.fixture
def encoder(begun: Path, tmp_path: Path) -> tuple[Path, EncoderOnly]:
    """A model that fills gaps, as a bundle."""
    vocabulary = bundle.load(begun).tokenizer
    model = EncoderOnly(ModelConfig(vocab_size=400, d_model=16, heads=2, d_ff=32, layers=1, output_bias=True))
    bundle.save(tmp_path / "fills", model, bundle.weights(model), vocabulary)
    return tmp_path / "fills", model


def test_an_adapter_brings_its_head(encoder: tuple[Path, EncoderOnly], begun: Path, tmp_path: Path) -> None:
    folder, old = encoder
    model = EncoderOnly(replace(old.config, labels=3, tied=False))
    copy_base_weights(model, str(folder))
    select_trainable(model, going_on(begun, lora_rank=2).train)
    learns = [name for name, p in model.named_parameters() if p.requires_grad]
    assert {name.partition(".")[0] for name in learns} == {"head", "encoder"}
    with torch.no_grad():
        for name in learns:
            model.get_parameter(name).normal_()
    adapter.save(tmp_path / "adapter", model, bundle.weights(model), 16.0, "fills", ("a", "b", "c"))
    loaded = bundle.load(folder, adapter=tmp_path / "adapter")
    assert loaded.labels == ("a", "b", "c")
    ids = torch.randint(4, 300, (2, 6))
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(ids), model.eval()(ids), atol=1e-5, rtol=0)


def test_a_head_of_labels_is_new_and_that_is_said(encoder: tuple[Path, EncoderOnly]) -> None:
    folder, old = encoder
    model = EncoderOnly(replace(old.config, labels=3, tied=False, seed=5))
    fresh = model.head.weight.detach().clone()
    said = copy_base_weights(model, str(folder))
    assert "a new head, at random: head.weight (3, 16), head.bias (3,)" in said
    assert torch.equal(model.head.weight, fresh)
    for name, tensor in old.encoder.named_parameters():
        assert torch.equal(tensor, model.encoder.get_parameter(name))
    with pytest.raises(ConfigError, match=r"model.layers = 2, but"):
        copy_base_weights(EncoderOnly(replace(old.config, labels=3, tied=False, layers=2)), str(folder))
    with pytest.raises(ConfigError, match=r"model.tied = False, but"):  # over a vocabulary it is no new head
        copy_base_weights(EncoderOnly(replace(old.config, tied=False)), str(folder))


@pytest.mark.long
def test_two_processes_train_an_adapter_as_one_does(begun: Path, tmp_path: Path) -> None:
    model, changes = {"dropout": 0.0}, LORA | {"layer_decay": 0.7, "steps": 4, "start": str(begun)}
    made = parse({"data": DATA, "model": model, "train": TRAIN | {"warmup_steps": 1} | changes})
    one = train(made, tmp_path / "one", report=Report(quiet=True))
    (tmp_path / "recipe.toml").write_text((one / "recipe.toml").read_text(encoding="utf-8"), encoding="utf-8")
    words = ("train", tmp_path / "recipe.toml", "--out", tmp_path / "two", "--device", "cpu")
    by_hand(*words)
    ours, theirs = ([row["loss"] for row in metrics(folder) if "loss" in row] for folder in (one, tmp_path / "two"))
    assert len(ours) == 4
    assert ours == pytest.approx(theirs, abs=1e-4)
    both = weights(one), weights(tmp_path / "two")
    assert max(float((tensor - both[1][name]).abs().max()) for name, tensor in both[0].items()) < 1e-4
    assert any(not torch.equal(tensor, both[0][name]) for name, tensor in weights(begun).items())


def test_inverse_sqrt_is_the_papers_formula() -> None:
    d_model, warmup = 512, 4000
    train = Train(schedule="inverse_sqrt", warmup_steps=warmup, lr=d_model**-0.5 * warmup**-0.5)
    for step in (1, 2, 100, 3999, 4000, 4001, 10_000, 100_000):
        paper = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert train.lr * lr_factor(train, step - 1) == pytest.approx(paper, rel=1e-12)


HALF = 0.5**0.5
AFTER = (4, 6, 8, 10, 12, 20)
FALLS = {
    "linear": [1.0, 0.75, 0.5, 0.25, 0.0, 0.0],
    "cosine": [1.0, (1 + HALF) / 2, 0.5, (1 - HALF) / 2, 0.0, 0.0],
    "constant": [1.0] * 6,
    "inverse_sqrt": [(4 / (step + 1)) ** 0.5 for step in AFTER],
}


@pytest.mark.parametrize("schedule", FALLS)
def test_a_straight_warm_up_then_the_schedules_fall(schedule: str) -> None:
    train = Train(schedule=schedule, warmup_steps=4, steps=12)
    assert [lr_factor(train, step) for step in range(4)] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert [lr_factor(train, step) for step in AFTER] == pytest.approx(FALLS[schedule], abs=1e-12)
    assert lr_factor(Train(schedule=schedule, warmup_steps=0, steps=10), 0) == 1.0
