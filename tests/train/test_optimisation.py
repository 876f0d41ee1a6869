"""What a run ships: accumulation, moving average, checkpoint averaging, the best, and when it stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_run import WORDS, digest, metrics, train_here
from torch import Tensor

from glassformer.common.errors import RunError
from glassformer.pipelines.translator import Translator
from glassformer.train import checkpoint
from glassformer.train.step import crashes_in_bf16

PLAIN = ("model.dropout=0.0", "train.ema=0.0", "data.valid=[]", "train.steps=20", "train.keep_last=100")


def shipped(out: Path) -> dict[str, Tensor]:
    return load_file(out / "model.safetensors")


def saved(out: Path, part: str) -> list[dict[str, Tensor]]:
    """One part of every checkpoint, oldest first."""
    found = [checkpoint.read(path) for path in checkpoint.listing(out / "checkpoints")]
    assert None not in found
    return [
        {name.removeprefix(f"{part}/"): value for name, value in one.tensors.items() if name.startswith(f"{part}/")}
        for one in found
    ]


def furthest(first: dict[str, Tensor], second: dict[str, Tensor]) -> float:
    assert first.keys() == second.keys()
    return max((first[name].double() - second[name].double()).abs().max().item() for name in first)


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_accumulation_changes_nothing(recipe: Path, tmp_path: Path, clip: float) -> None:
    # A key's bias has no gradient but rounding, which the optimizer's division would blow up to full steps.
    changes = (*PLAIN, "train.steps=10", "model.bias=false", f"train.clip={clip}")
    for portions in (1, 2, 4):
        train_here(recipe, tmp_path / str(portions), *changes, f"train.accumulate={portions}")
    one = shipped(tmp_path / "1")
    for portions in (2, 4):
        assert furthest(shipped(tmp_path / str(portions)), one) < 2e-6
        losses = [[row["loss"] for row in metrics(tmp_path / str(n))] for n in (portions, 1)]
        assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def test_the_moving_average_is_the_slow_one(recipe: Path, tmp_path: Path) -> None:
    train_here(recipe, tmp_path / "run", *PLAIN, "train.ema=0.8", "train.save_every=1")
    weights, averages = saved(tmp_path / "run", "model"), saved(tmp_path / "run", "ema")
    average = {name: value.double() for name, value in averages[0].items()}
    for step in range(1, 20):
        average = {name: 0.8 * average[name] + 0.2 * weights[step][name].double() for name in average}
        assert furthest(averages[step], average) < 1e-6
    assert furthest({name: shipped(tmp_path / "run")[name] for name in average}, averages[-1]) == 0
    assert furthest(averages[-1], weights[-1]) > 1e-3


def test_averaged_checkpoints_are_their_mean(recipe: Path, tmp_path: Path) -> None:
    changes = (*PLAIN, "train.save_every=5", "train.average=3", "train.keep_last=3")
    train_here(recipe, tmp_path / "run", *changes)
    last = saved(tmp_path / "run", "model")
    assert len(last) == 3
    mean = {name: sum(one[name].double() for one in last) / 3 for name in last[0]}
    assert furthest({name: shipped(tmp_path / "run")[name] for name in mean}, mean) < 1e-6
    assert furthest(last[-1], mean) > 1e-3


# The learning rate is far too high on purpose: validation gets worse after a good start.
WORSENING = ("train.lr=0.3", "train.clip=0.0", "train.schedule=constant", "train.ema=0.0", "train.valid_every=5")


def test_the_best_is_shipped_when_asked_for(recipe: Path, tmp_path: Path) -> None:
    changes = ("train.steps=40", "train.save_every=5", "train.keep_last=100", *WORSENING)
    train_here(recipe, tmp_path / "best", *changes, "train.ship=best")
    train_here(recipe, tmp_path / "last", *changes)
    losses = {row["step"]: row["valid_loss"] for row in metrics(tmp_path / "best") if "valid_loss" in row}
    best = min(losses, key=losses.__getitem__)
    assert best < 40
    states = dict(zip(losses, saved(tmp_path / "best", "model"), strict=True))
    assert furthest({name: shipped(tmp_path / "best")[name] for name in states[best]}, states[best]) == 0
    assert furthest({name: shipped(tmp_path / "last")[name] for name in states[40]}, states[40]) == 0
    assert digest(tmp_path / "best") != digest(tmp_path / "last")


@pytest.mark.parametrize(
    ("metric", "patience", "best", "stops"), [("loss", 3, min, [7, 10, 22]), ("bleu", 2, max, [12, 15])]
)
def test_patience_ships_the_best_says_why_and_stays_ended_over_interruptions(
    recipe: Path, tmp_path: Path, metric: str, patience: int, best: Callable[[list[float]], float], stops: list[int]
) -> None:
    changes = (*WORSENING, f"train.patience={patience}", f"train.metric={metric}", "train.keep_last=100")
    said = train_here(recipe, tmp_path / "run", *changes, "train.steps=200", "train.save_every=5")
    rows = {row["step"]: row[f"valid_{metric}"] for row in metrics(tmp_path / "run") if f"valid_{metric}" in row}
    step = max(rows) - 5 * patience
    assert rows[step] == best(list(rows.values()))
    assert (
        f"training stopped at step {max(rows)}: no better {metric} in {patience} validations (train.patience = "
        f"{patience}); best {metric} {rows[step]:.4f} at step {step}, whose weights are shipped"
    ) in said
    state = dict(zip(rows, saved(tmp_path / "run", "model"), strict=True))[step]
    assert furthest({name: shipped(tmp_path / "run")[name] for name in state}, state) == 0
    before = digest(tmp_path / "run")
    assert "to train on, add: --set train.patience=MORE" in train_here(None, tmp_path / "run", resume=True)
    assert digest(tmp_path / "run") == before
    for number, stop in enumerate(stops):
        every = "train.save_every=3"  # no validation comes with a checkpoint
        train_here(recipe, tmp_path / str(number), *changes, every, f"train.steps={stop}")
        train_here(None, tmp_path / str(number), "train.steps=200", resume=True)
        assert digest(tmp_path / str(number)) == before


def test_patience_that_comes_later_ships_the_best_from_then_on(recipe: Path, tmp_path: Path) -> None:
    told = train_here(recipe, tmp_path / "run", *WORSENING, "train.steps=10")
    assert "stopped at step 10: train.steps = 10; best loss" in told
    assert "the weights of the last are shipped" in told
    told = train_here(None, tmp_path / "run", "train.patience=2", "train.steps=200", resume=True)
    assert "the best weights up to step 10 were not kept; later ones are" in told
    rows = {row["step"]: row["valid_loss"] for row in metrics(tmp_path / "run") if "valid_loss" in row}
    step = min((step for step in rows if step > 10), key=rows.__getitem__)
    assert f"{rows[step]:.4f} at step {step}, whose weights are shipped" in told


def test_the_model_learns_the_task(recipe: Path, tmp_path: Path) -> None:
    train_here(recipe, tmp_path / "run", "train.steps=200", "train.metric=bleu", "train.valid_every=100")
    scores = [row["valid_bleu"] for row in metrics(tmp_path / "run") if "valid_bleu" in row]
    assert scores[-1] > max(25, scores[0])
    assert set(Translator.load(tmp_path / "run")("one two").split()) <= set(WORDS.values())


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains(recipe: Path, tmp_path: Path, precision: str) -> None:
    if precision == "bf16" and crashes_in_bf16():
        pytest.skip("PyTorch 2.8 on ARM crashes in it, so it is refused")
    few = ("train.steps=14", "train.warmup_steps=3", "train.batch_tokens=128")  # not every processor is quick at it
    train_here(recipe, tmp_path / "run", *few, f"train.precision={precision}", "data.valid=[]", "train.log_every=1")
    losses = [row["loss"] for row in metrics(tmp_path / "run")]
    assert losses[-1] < 0.9 * losses[0]
    assert all(value.dtype == torch.float32 for value in shipped(tmp_path / "run").values())


def test_r_drop_trains(recipe: Path, tmp_path: Path) -> None:
    train_here(recipe, tmp_path / "run", "train.steps=30", "train.r_drop=1.0", "train.accumulate=2", "data.valid=[]")
    losses = [row["loss"] for row in metrics(tmp_path / "run")]
    assert losses[-1] < 0.8 * losses[0]


def test_divergence_is_told(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"training has diverged; start again with a lower train.lr"):
        train_here(recipe, tmp_path / "run", "train.lr=1e30", "train.warmup_steps=0", "train.clip=0.0")
