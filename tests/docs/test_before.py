"""What came before Transformers: the model of chapter 0 is sound, and its words are what was measured."""

import random
import statistics
from pathlib import Path
from typing import Any

import before_rows
import measure
import pytest
import torch
import trials
from recurrent import Recurrent
from transformer import PAD, START

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("attention", [True, False])
def test_padding_and_later_tokens_change_nothing(attention):
    torch.manual_seed(0)
    model = Recurrent(20, 8, attention).eval()
    src, tgt = torch.tensor([[5, 6, 7]]), torch.tensor([[START, 8, 9]])
    padded = torch.tensor([[5, 6, 7, PAD, PAD], [3, 4, 5, 6, 7]])
    with torch.no_grad():
        alone, beside = model(src, tgt), model(padded, tgt.expand(2, -1))
        earlier = model(src, tgt[:, :2])
    assert torch.allclose(alone[0], beside[0], atol=1e-6)
    assert torch.allclose(alone[:, :2], earlier, atol=1e-6)


def test_only_attention_lets_the_decoder_see_the_states():
    torch.manual_seed(0)
    src, tgt = torch.tensor([[5, 6, 7]]), torch.tensor([[START, 8]])
    for attention in (True, False):
        model = Recurrent(20, 8, attention).eval()
        states, last = model.encode(src)
        with torch.no_grad():
            moved = (model.decode(tgt, (states + 1, last), src) - model.decode(tgt, (states, last), src)).abs().max()
        assert (moved > 1e-3) == attention


def test_models_are_of_one_size(task):
    sizes = [sum(w.numel() for w in make(task.tokenizer.tgt_size).parameters()) for make in trials.MODELS.values()]
    assert max(sizes) < 1.02 * min(sizes)
    assert list(before_rows.kept()["weights"].values()) == sizes


@pytest.mark.long
def test_each_model_trains(task):
    sample = task.train[:64]
    for kind in trials.MODELS:
        before, after = (trials.learn(kind, task, lambda chance, size: sample[:size], steps, 1)[0] for steps in (1, 20))
        src, tgt, labels = task.batch(sample[:32])
        with torch.no_grad():
            losses = [float(trials.loss(model(src, tgt), labels)) for model in (before, after)]
        assert losses[1] < losses[0] - 0.3, kind


def test_length_of_lists(task):
    lists = trials.Lists(task)
    source, target = lists.pair(random.Random(0), 5)
    assert len(source) == len(target) == 5
    (german,) = task.tokenizer.decode_target([[target[0]]])
    (english,) = task.tokenizer.source_pieces([source[0]])
    assert trials.DIGITS[english.strip("▁")] == german.strip()


def test_the_measurement_gives_every_table(task, monkeypatch):
    monkeypatch.setattr(measure, "Task", lambda: task)
    monkeypatch.setattr(measure, "LENGTHS", (4, 8))
    monkeypatch.setattr(measure, "LISTS", (1, 2))
    reported = []
    found = measure.measured([3], steps=2, tell=reported.append)
    assert len(reported) == len(trials.MODELS)
    for table in before_rows.TABLES:
        for language in ("en", "zh"):
            lines = before_rows.markdown(found, table, language).splitlines()
            assert len({line.count("|") for line in lines}) == 1
    with pytest.raises(LookupError, match="measures no `nothing`"):
        before_rows.markdown(found, "nothing", "en")


def test_the_words_of_the_chapter_are_what_was_measured():
    found = before_rows.kept()

    def mean(trial: str, kind: str, what: str) -> float:
        return statistics.fmean(run[what] for run in found[trial][kind])

    def kept(kind: str) -> dict[int, float]:
        runs = found["keep"][kind]
        return {n: statistics.fmean(run["right"][i] for run in runs) for i, n in enumerate(found["lists"])}

    runs: list[list[dict[str, Any]]] = [runs for trial in ("translate", "keep") for runs in found[trial].values()]
    assert {len(one) for one in runs} == {3}, "the chapter says how many seeds"
    plain_loss, attending_loss, our_loss = (mean("translate", kind, "loss") for kind in trials.MODELS)
    assert plain_loss > 2 * max(attending_loss, our_loss), "without attention it stays far behind"
    assert attending_loss < 1.2 * our_loss, "with attention it learns as much"
    assert mean("translate", "with attention", "right") > mean("translate", "transformer", "right") - 0.02
    assert mean("translate", "with attention", "seconds") < 1.1 * mean("translate", "transformer", "seconds")
    ratios = [times["recurrent"] / times["self-attention"] for times in found["layer"]]  # of 16, 32 ... 1024 tokens
    assert all(1 / 2 < ratio < 2 for ratio in ratios[:5]), "up to 256 neither is ahead by much"
    assert max(ratios[5:]) < 0.9, "beyond, recurrence is faster"
    plain, attending, ours = map(kept, trials.MODELS)
    assert plain[4] > 0.8, "short lists go through the state"
    assert plain[10] < 0.3 < 0.8 < attending[10], "long ones do not, but with attention they are kept"
    assert attending[12] > ours[12], "the Transformer keeps somewhat less"
    page = (DOCS / "en" / "00-before-transformers.md").read_text(encoding="utf-8")
    assert f"{found['steps']} steps" in page
