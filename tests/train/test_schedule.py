"""The learning rate at each step, against values worked out by hand."""

from __future__ import annotations

import pytest

from glassformer.train.options import Train
from glassformer.train.tuning import lr_factor


def lr_factors(train: Train, *steps: int) -> list[float]:
    return [lr_factor(train, step) for step in steps]


def test_inverse_sqrt_is_the_papers_formula() -> None:
    d_model, warmup = 512, 4000
    train = Train(schedule="inverse_sqrt", warmup_steps=warmup, lr=d_model**-0.5 * warmup**-0.5)
    for step in (1, 2, 100, 3999, 4000, 4001, 10_000, 100_000):
        paper = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert train.lr * lr_factor(train, step - 1) == pytest.approx(paper, rel=1e-12)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "linear", "cosine", "constant"])
def test_the_warm_up_is_a_straight_line(schedule: str) -> None:
    train = Train(schedule=schedule, warmup_steps=4, steps=12)
    assert lr_factors(train, 0, 1, 2, 3) == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_linear_falls_to_nothing() -> None:
    train = Train(schedule="linear", warmup_steps=4, steps=12)
    assert lr_factors(train, 4, 6, 8, 10, 12, 20) == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0, 0.0])


def test_cosine_falls_in_half_a_wave() -> None:
    train = Train(schedule="cosine", warmup_steps=4, steps=12)
    half = 0.5**0.5
    wave = [1.0, (1 + half) / 2, 0.5, (1 - half) / 2, 0.0, 0.0]
    assert lr_factors(train, 4, 6, 8, 10, 12, 20) == pytest.approx(wave, abs=1e-12)


def test_constant_stays() -> None:
    assert lr_factors(Train(schedule="constant", warmup_steps=2, steps=10), 1, 2, 9, 99) == [1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "linear", "cosine", "constant"])
def test_without_warm_up_the_first_step_is_full(schedule: str) -> None:
    assert lr_factor(Train(schedule=schedule, warmup_steps=0, steps=10), 0) == 1.0
