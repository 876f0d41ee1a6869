"""The source whose law is known: its probabilities are those of its draws, and all of them add up to one."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from glassformer.common.errors import ConfigError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.data import exact_source as known
from glassformer.data.numerals import TYPING_STYLES, type_like_people

SMALL = 2_500  # things of a kind that can all be looked at


def test_probabilities_are_those_of_all_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the small kinds alone, every draw is made once; their masses are the probabilities, string by string."""
    small = tuple(row for row in known._table() if row[0].size <= SMALL)
    monkeypatch.setattr(known, "_table", lambda: small)
    assert len(small) >= 9
    total = sum(kind.share for kind, _, _ in small)
    masses: Counter[str] = Counter()
    for kind, _, _ in small:
        for number in range(kind.size):
            for way in TYPING_STYLES:
                masses[type_like_people(kind.pair(number, "de")[0], way)] += (
                    kind.share / total / kind.size / len(TYPING_STYLES)
                )
    assert math.isclose(sum(masses.values()), 1.0)
    texts = [*masses][:: max(1, len(masses) // 1000)]
    assert all(math.isclose(known.log_probability(text), math.log(masses[text]), rel_tol=1e-9) for text in texts)


def test_every_text_that_is_drawn_has_a_probability() -> None:
    texts = known.draw("train", seed=4, size=1000)
    total = sum(kind.share for kind, _, _ in known._table())
    least = min(kind.share / total / kind.size for kind, _, _ in known._table()) / len(TYPING_STYLES)
    assert min(map(known.log_probability, texts)) >= math.log(least) - 1e-9
    numbers = ("", "seven hundred and", "one thousand thousand", "forty two two")
    for other in (*numbers, "February 30, 2001", "13:00 PM", "$5.001"):
        assert known.log_probability(other) == -math.inf
    # "5,000" may come of the grouped digits, of four ways as written; "5000" of those that lose the comma too.
    assert known.log_probability("5000") > known.log_probability("5,000")


def test_the_mean_of_samples_is_the_entropy() -> None:
    """Two samples agree within their errors, and one of another law costs more."""
    one, two = (known.draw(split, seed=1, size=700) for split in ("train", "valid"))
    costs = [[-known.log_probability(text) for text in texts] for texts in (one, two)]
    means = [sum(cost) / len(cost) for cost in costs]
    error = math.sqrt(sum((c - means[0]) ** 2 for c in costs[0]) / len(one) ** 2)
    assert abs(means[0] - means[1]) < 5 * error
    assert math.isclose(known.least_loss(one), sum(costs[0]))


def test_no_text_of_two_splits_however_typed() -> None:
    assert known.draw("valid", size=50) == known.draw("valid", size=60)[:50] != known.draw("valid", seed=1, size=50)
    held = {known.normalized(text) for split in ("valid", "test") for text in known.draw(split, size=300)}
    assert not held & {known.normalized(text) for text in known.draw("train", size=5000)}
    with pytest.raises(ConfigError, match="numerals-text has no split `dev`"):
        known.draw("dev")


def test_what_the_rest_determines() -> None:
    tokenizer = Tokenizer.train(
        (("", text) for text in known.draw("train", size=4000)), TokenizerOptions(vocab_size=420)
    )
    pieces = range(260, tokenizer.tgt_size)

    def told(text: str) -> dict[str, bool]:
        (ids,) = tokenizer.encode_target([text])
        return dict(zip(tokenizer.target_pieces(ids), known.determined_tokens(ids, tokenizer, pieces), strict=True))

    time = told("9:34 PM")
    assert time[":"]
    assert not time["4"]
    assert told("seven hundred and twenty-one")["-"]
    assert not told("seven hundred and twenty-one")["▁seven"]
    assert not told("March 3, 2021")[","]  # it may be the 30th or the 31st, typed without one
