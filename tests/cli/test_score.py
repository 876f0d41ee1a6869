"""`glassformer score` on files."""

import gzip
import json
import math

import pytest
import torch
from tiny_translators import sentences


@pytest.fixture
def score(cli, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(sources: list[str], targets: list[str], *words: str) -> tuple[int, str, str]:
        (tmp_path / "a.en").write_text("".join(line + "\n" for line in sources), encoding="utf-8")
        (tmp_path / "a.de").write_bytes(gzip.compress("".join(line + "\n" for line in targets).encode()))
        return cli("score", model, "--src", "a.en", "--tgt", "a.de", *words)

    return run


@pytest.mark.parametrize("rule", [[], ["--length-rule", "gnmt", "--length-penalty", "0.6"]])
@torch.no_grad()
def test_scores_are_sums_of_log_probabilities_over_length(translator, score, rule):
    sources = [*sentences(20, seed=4), "", "中文 👧"]
    targets = [*sentences(20, seed=5), "", "émoji 👧"]
    code, out, err = score(sources, targets, "--precision", "fp32", *rule)
    assert code == 0
    scores = [float(line) for line in out.splitlines()]
    target_ids = translator.tokenizer.encode_target(targets)
    for i, ids in enumerate(target_ids):
        if not sources[i]:
            assert scores[i] == 0
            continue
        src = torch.tensor(translator.tokenizer.encode_source([sources[i]]))
        log_probabilities = translator.model(src, torch.tensor([[1, *ids]]))[0].log_softmax(-1)
        total = sum(float(log_probabilities[t, token]) for t, token in enumerate([*ids, 2]))
        length = len(ids) + 1
        assert scores[i] == pytest.approx(total / (((5 + length) / 6) ** 0.6 if rule else length), abs=1e-4)
    assert err.startswith("perplexity ")
    code, out, err = score(sources, targets, "--precision", "fp32", "--json", *rule)
    *rows, last = [json.loads(line) for line in out.splitlines()]
    assert [row["score"] for row in rows] == pytest.approx(scores, abs=1e-5)
    lengths = [len(ids) + 1 if source else 0 for source, ids in zip(sources, target_ids, strict=True)]
    assert [row["tokens"] for row in rows] == lengths
    assert last["lines"] == len(sources)
    assert last["tokens"] == sum(row["tokens"] for row in rows)
    assert last["log_probability"] == pytest.approx(sum(row["log_probability"] for row in rows))
    assert last["perplexity"] == pytest.approx(math.exp(-last["log_probability"] / last["tokens"]))
    assert err == ""


def test_impossible_scores_are_null_and_mistakes_one_line(score):
    code, out, _ = score(["", "a cat"], ["something", ""], "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert rows[0]["score"] is None
    assert rows[1]["tokens"] == 1
    assert rows[2]["perplexity"] is None
    for sources, targets, words, error in (
        (["a", "b", "c"], ["x"], [], "a.en has 3 lines but a.de has 1"),
        ([], [], [], "empty"),
        (["a", "the dog " * 50], ["x", "y"], [], "a.en, line 2: has "),
        (["a"], ["the dog " * 50], [], "a.de, line 1: has "),
        (["a"], ["x"], ["--length-rule", "mean"], "--length-rule 'mean'"),
        (["a"], ["x"], ["--batch-tokens", "0"], "--batch-tokens 0"),
        (["a"], ["x"], ["--precision", "int4"], "--precision 'int4'"),
        (["a"], ["x"], ["--tgt", "nowhere"], "nowhere does not exist"),
    ):
        code, out, err = score(sources, targets, *words)
        assert (code, out) == (2, "")
        assert error in err
        assert err.count("\n") == 1
