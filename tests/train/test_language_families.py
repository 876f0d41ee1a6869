"""Training goes on from NLLB, M2M100 and mBART, which are told the languages of each sentence, as transformers does."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import tiny_languages
import torch
from small_run import metrics

import glassformer as gf
from glassformer.cli.trace import load_subject
from glassformer.common.errors import ConfigError, InputError
from glassformer.common.report import Report
from glassformer.data import Corpus
from glassformer.train.evaluation.evaluate import validation_bleu
from glassformer.train.evaluation.references import directions
from glassformer.train.recipe import Recipe, parse
from glassformer.train.run import train
from glassformer.weights.pretrained.fine_tuning import PublishedTokenizer

WAYS = {
    "nllb": ("eng_Latn", "deu_Latn", "fra_Latn"),
    "m2m100": ("en", "de", "fr"),
    "mbart": ("en_XX", "de_DE", "fr_XX"),
    "mbart50": ("en_XX", "de_DE", "fr_XX"),
}
Lines = list[tuple[str, str]]


def lines(count: int, seed: int) -> Lines:
    sources = tiny_languages.sentences(count, seed=seed)
    return [(source, " ".join(reversed(source.split()))) for source in sources]


def corpus(folder: Path, name: str, rows: Lines, source: str | None, to: str | None) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    told = {"from": source, "to": to}
    return {"tsv": str(folder / name)} | {key: value for key, value in told.items() if value is not None}


def recipe(start: Path, data: dict[str, Any], **changes: Any) -> Recipe:
    settings = {"start": str(start), "steps": 1, "lr": 1e-12, "batch_tokens": 256, "log_every": 1, "valid_every": 1}
    settings |= {"save_every": 1, "precision": "fp32"}
    return parse({"data": {**data, "max_tokens": 40}, "model": {"dropout": 0.0}, "train": settings | changes})


def own_loss(peer: Any, tokenizer: Any, rows: Lines, source: str, to: str) -> tuple[float, int]:
    """What transformers' tokenizer and model make of a corpus, one pair at a time: the sum and the tokens asked for."""
    tokenizer.src_lang, tokenizer.tgt_lang = source, to
    total, count = 0.0, 0
    for text, target in rows:
        given = tokenizer(text, text_target=target, return_tensors="pt")
        with torch.no_grad():
            loss = peer.double()(**given).loss
        total, count = total + float(loss) * given["labels"].numel(), count + given["labels"].numel()
    return total, count


@pytest.mark.parametrize("kind", WAYS)
def test_training_starts_at_transformers_own_loss_and_ends_as_its_family(kind: str, tmp_path: Path) -> None:
    """The tokens, their marks and the loss are those of transformers; the folder then translates without being told."""
    tokenizer, peer = tiny_languages.write_multilingual(kind, tmp_path / "start")
    source, to, other = WAYS[kind]
    rows = lines(12, 2)
    data = {"train": [corpus(tmp_path, "train.tsv", lines(30, 1), source, to)]}
    data["valid"] = [corpus(tmp_path, "valid.tsv", rows, source, to)]
    folder = train(recipe(tmp_path / "start", data), tmp_path / "run", report=Report(quiet=True))
    (found,) = (row["valid_loss"] for row in metrics(folder) if "valid_loss" in row)
    total, count = own_loss(peer, tokenizer, rows, source, to)
    assert found == pytest.approx(total / count, abs=1e-6)
    told_otherwise, more = own_loss(peer, tokenizer, rows, other, to)
    assert found != pytest.approx(told_otherwise / more, abs=1e-4)
    before, after = gf.load_model(tmp_path / "start"), gf.load_model(folder)
    torch.testing.assert_close(dict(after.state_dict()), dict(before.state_dict()), atol=1e-6, rtol=0)
    texts = tiny_languages.sentences(3, seed=5)
    told = gf.Translator.load(tmp_path / "start", source=source, to=to).translate(texts, max_new_tokens=6)
    again = gf.Translator.load(folder).translate(texts, max_new_tokens=6)
    assert [best[0].tokens for best in again] == [best[0].tokens for best in told]
    if kind == "mbart":
        assert json.loads((folder / "config.json").read_text())["decoder_start_token_id"] == after.config.start_id


def test_one_run_learns_several_ways_and_is_judged_by_each(tmp_path: Path) -> None:
    tokenizer, peer = tiny_languages.write_multilingual("nllb", tmp_path / "start")
    english, german, french = WAYS["nllb"]
    both = ((english, german), (french, german))
    data: dict[str, Any] = {"train": [], "valid": []}
    total, count = 0.0, 0
    for number, (source, to) in enumerate(both):
        data["train"].append(corpus(tmp_path, f"train{number}.tsv", lines(20, number), source, to))
        data["valid"].append(corpus(tmp_path, f"valid{number}.tsv", rows := lines(8, 10 + number), source, to))
        one = own_loss(peer, tokenizer, rows, source, to)
        total, count = total + one[0], count + one[1]
    made = recipe(tmp_path / "start", data, metric="bleu", patience=1, steps=2)
    folder = train(made, tmp_path / "run", report=Report(quiet=True), make_judge=validation_bleu)
    first = next(row for row in metrics(folder) if "valid_loss" in row)
    assert first["valid_loss"] == pytest.approx(total / count, abs=1e-6)
    assert 0 <= first["valid_bleu"] <= 100
    assert directions(folder, made.data.valid) == [(english, german), (french, german)]
    judged = gf.evaluate(folder, split="valid", source=french)
    assert gf.evaluate(folder, split="valid", source="French").hypotheses == judged.hypotheses
    assert isinstance(load_subject(folder, "cpu", None, None), gf.Translator)  # what `glassformer trace` follows
    assert judged.sources == tuple(source for source, _ in lines(8, 11))
    told = gf.Translator.load(folder, source=french).translate(list(judged.sources))
    assert judged.hypotheses == tuple(best[0].text for best in told)
    with pytest.raises(ConfigError, match=r"from eng_Latn and fra_Latn; say which are judged: source='eng_Latn'"):
        gf.evaluate(folder, split="valid")
    with pytest.raises(ConfigError, match=r"no pairs from `xx`: they are from `eng_Latn`, `fra_Latn`"):
        gf.evaluate(folder, split="valid", source="xx")


def test_what_is_not_told_or_not_known_is_refused(tmp_path: Path) -> None:
    tiny_languages.write_multilingual("mbart", tmp_path / "start")
    source, to, other = WAYS["mbart"]

    def tried(*ways: tuple[str | None, str | None], **changes: Any) -> None:
        tables = [corpus(tmp_path, f"{i}.tsv", lines(5, i), *way) for i, way in enumerate(ways)]
        train(recipe(tmp_path / "start", {"train": tables}, **changes), tmp_path / "run", report=Report(quiet=True))

    with pytest.raises(ConfigError, match=r"told the languages of each sentence; give the corpus .*0\.tsv both"):
        tried((None, None))
    with pytest.raises(ConfigError, match=r"give the corpus .*1\.tsv both, such as from = 'en' and to = 'de'"):
        tried((source, to), (None, to))
    with pytest.raises(InputError, match="this model knows no language `Klingon`"):
        tried(("Klingon", to))
    with pytest.raises(ConfigError, match=r"1\.tsv has to = 'fr_XX'.* which is de_DE in this run; train it for one"):
        tried((source, to), (source, other))
    (tmp_path / "plain.txt").write_text("a small house\n")
    made = recipe(tmp_path / "start", {"train": [{"text": str(tmp_path / "plain.txt")}]}, objective="denoise")
    with pytest.raises(ConfigError, match="it learns from pairs, objective = 'translate'"):
        train(made, tmp_path / "run", report=Report(quiet=True))
    assert not [*(tmp_path / "run").glob("*.json")]  # nothing is left of a run that could not start


def test_a_text_side_survives_the_way_to_another_process(tmp_path: Path) -> None:
    """Corpora are encoded in processes of their own; a mark that a text spells out stays text there."""
    tiny_languages.write_multilingual("nllb", tmp_path / "start")
    (tmp_path / "start" / "sentencepiece.bpe.model").unlink(missing_ok=True)  # by tokenizer.json then
    told = Corpus(tsv="any.tsv", from_="eng_Latn", to="deu_Latn")
    text = PublishedTokenizer(tmp_path / "start", told).for_corpus(told)
    assert text.encode_source(["a </s> b"]) == pickle.loads(pickle.dumps(text)).encode_source(["a </s> b"])
    assert text.encode_source(["a </s> b"])[0].count(2) == 1
