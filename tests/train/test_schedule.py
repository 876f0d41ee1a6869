"""The learning rate at each step, against values worked out by hand."""

from __future__ import annotations

import pytest

from glassformer.train.options import Train
from glassformer.train.tuning import lr_factor


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
