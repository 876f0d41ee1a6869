"""Gaps filled: as Hugging Face's own model and tokenizer fill them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from small_run import Cli
from tiny_published import bert, gpt2

import glassformer as gf
from glassformer.common.errors import ConfigError, InputError, WeightsError

TEXT = "Paris is the [MASK] of France."


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, object]:
    folder = tmp_path_factory.mktemp("bert")
    return folder, bert(folder)


def test_probabilities_are_those_of_hugging_face(published: tuple[Path, object]) -> None:
    from transformers import PreTrainedTokenizerFast

    folder, theirs = published
    read = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), mask_token="[MASK]")
    ids = read(TEXT, return_tensors="pt")["input_ids"]
    (gap,) = torch.nonzero(ids[0] == read.mask_token_id)[0].tolist()
    with torch.inference_mode():
        told = theirs(ids).logits[0].softmax(-1)
    values, tokens = told[gap].topk(5)
    filler = gf.MaskFiller.load(folder)
    ((ranked,),) = filler.fill([TEXT])
    assert [one.probability for one in ranked] == pytest.approx(values.tolist(), abs=1e-5)
    assert [one.token for one in ranked] == [read.decode([token]).strip() for token in tokens.tolist()]
    assert told[gap - 1].topk(5).values.tolist() != pytest.approx(values.tolist(), abs=1e-3)


def test_each_gap_is_filled_by_itself_and_the_texts_show_it(published: tuple[Path, object]) -> None:
    filler = gf.MaskFiller.load(published[0])
    text = "Paris is [MASK] capital of [MASK]."
    (gaps,) = filler.fill([text], top=3)
    assert [len(ranked) for ranked in gaps] == [3, 3]
    assert all("[MASK]" not in one.text for ranked in gaps for one in ranked)
    assert filler(text) == gaps[0][0].text == gaps[1][0].text
    assert filler.fill([TEXT, text], top=3)[1] == gaps or [  # in a batch the sums are added in another order
        one.token for one in filler.fill([TEXT, text], top=3)[1][0]
    ] == [one.token for one in gaps[0]]


def test_a_piece_of_a_word_joins_the_word_before_it(published: tuple[Path, object]) -> None:
    text = gf.MaskFiller.load(published[0]).tokenizer
    inside = next(id for id in range(90) if text.target_pieces([id])[0].startswith("##"))
    piece = text.target_pieces([inside])[0].removeprefix("##")
    assert text.filled("Paris [MASK] long", [inside]) == f"Paris{piece} long"


def test_recovering_hides_one_token_at_a_time(published: tuple[Path, object]) -> None:
    filler = gf.MaskFiller.load(published[0])
    texts = ["Paris is the capital", "The river"]
    for text, found in zip(texts, filler.recover(texts), strict=True):  # beside the slow way, written out
        (ids,) = filler.tokenizer.encode_source([text])
        total, right = 0.0, 0
        for place in range(1, len(ids) - 1):
            hidden = [filler.tokenizer.mask_id if k == place else id for k, id in enumerate(ids)]
            with torch.inference_mode():
                told = filler.model(torch.tensor([hidden]))[0, place].log_softmax(-1)
            total += float(told[ids[place]])
            right += int(told.argmax()) == ids[place]
        assert found.likelihood.tokens == len(ids) - 2
        assert found.likelihood.log_probability == pytest.approx(total, abs=1e-5)
        assert found.right == right


def test_recovering_in_batches_is_recovering_one_by_one(published: tuple[Path, object]) -> None:
    """Texts of many lengths; the control: the totals of two texts are not the same to that precision."""
    filler = gf.MaskFiller.load(published[0])
    texts = [" ".join(["Paris", "is", "the", "capital", "of", "the", "long", "river"][: 1 + n % 8]) for n in range(24)]
    assert len({len(ids) for ids in filler.tokenizer.encode_source(texts)}) > 4
    alone = [filler.recover([text], batch_tokens=1)[0] for text in texts]
    for budget in (64, 4096):
        for one, other in zip(alone, filler.recover(texts, batch_tokens=budget), strict=True):
            total = one.likelihood.log_probability
            assert other.likelihood.log_probability == pytest.approx(total, rel=1e-6)
            assert (other.each, other.likelihood.tokens) == (one.each, one.likelihood.tokens)
    totals = [one.likelihood.log_probability for one in filler.recover(texts)]
    assert totals[1:] != pytest.approx(totals[:-1], abs=1e-3)


def test_what_cannot_be_filled_is_told(published: tuple[Path, object], tmp_path: Path) -> None:
    filler = gf.MaskFiller.load(published[0])
    with pytest.raises(InputError, match=r"texts\[1\] has no gap: 'Paris'; write \[MASK\]"):
        filler.fill([TEXT, "Paris"])
    with pytest.raises(ConfigError, match=r"top=0 must be at least 1"):
        filler.fill([TEXT], top=0)
    with pytest.raises(InputError, match=r"has .* tokens, and the model reads at most 40"):
        filler.fill(["the [MASK] " * 30])
    gpt2(tmp_path / "gpt2")
    with pytest.raises(WeightsError, match=r"is a decoder alone, which continues texts: `glassformer generate`"):
        gf.MaskFiller.load(tmp_path / "gpt2")


def test_the_command(published: tuple[Path, object], cli: Cli) -> None:
    ((ranked,),) = gf.MaskFiller.load(published[0]).fill([TEXT], top=2)
    asked = ["fill", str(published[0]), "--top", "2", "--device", "cpu"]
    plain = cli(*asked, TEXT)[1].splitlines()
    assert [line.split()[0] for line in plain] == [f"{one.probability:.1%}" for one in ranked]
    assert [line.endswith(one.text) for line, one in zip(plain, ranked, strict=True)] == [True, True]
    told = json.loads(cli(*asked, "--json", stdin=TEXT + "\n")[1])
    assert told["text"] == TEXT
    assert [one["token"] for one in told["gaps"][0]] == [one.token for one in ranked]
    said = "glassformer: line 1 has no gap: 'no gap'; write [MASK] where something is missing\n"
    assert cli(*asked, "no gap") == (2, "", said)
    late = cli(*asked, stdin=f"{TEXT}\n" * 40 + "no gap\n")
    assert (late[0], late[2]) == (2, said.replace("line 1", "line 41"))
