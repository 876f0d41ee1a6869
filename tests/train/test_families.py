"""Training goes on from every published family that brings its tokenizer, and ends as a folder of that family."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from small_run import metrics
from tokenizers import models, pre_tokenizers, processors
from torch import Tensor

import glassformer as gf
from glassformer.common.errors import ConfigError, WeightsError
from glassformer.common.report import Report
from glassformer.train import parallel
from glassformer.train.feed import local_rows
from glassformer.train.folder import saved_recipe
from glassformer.train.recipe import Recipe, parse
from glassformer.train.run import prepare_run, train
from glassformer.weights.parity import cases, random_model
from glassformer.weights.pretrained.tokenizer import FastTokenizer, MarianTokenizer

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"}
SEQ2SEQ = ["<s>", "<pad>", "</s>", "<unk>"]
# The special pieces by their ids, and those that the tokenizer puts before and after a text.
SPECIAL: dict[str, tuple[list[str], str, str]] = {
    "bart": (SEQ2SEQ, "<s>", "</s>"),
    "pegasus": (["<pad>", "</s>", "<unk>"], "", "</s>"),
    "t5": (["<pad>", "</s>", "<unk>"], "", "</s>"),
    "bert": (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], "[CLS]", "[SEP]"),
    "roberta": ([*SEQ2SEQ, "<mask>"], "<s>", "</s>"),
    "xlm-roberta": ([*SEQ2SEQ, "<mask>"], "<s>", "</s>"),
    "distilbert": (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], "[CLS]", "[SEP]"),
    "gpt2": (["<|endoftext|>"], "", ""),
    "llama": (["<unk>", "<s>", "</s>"], "<s>", ""),
    "mistral": (["<unk>", "<s>", "</s>"], "<s>", ""),
    "qwen2": (["<unk>", "<s>", "</s>"], "", ""),
}
PAIRS, FILLERS = ("marian", "bart", "pegasus", "t5"), ("bert", "roberta", "xlm-roberta", "distilbert")
FAMILIES = ("marian", *SPECIAL)


def texts(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices([*WORDS], k=chance.randint(2, 7))) for _ in range(count)]


def write_tokenizer(family: str, folder: Path) -> None:
    if family == "marian":
        write_pieces(folder)
        return
    special, before, after = SPECIAL[family]
    known = [*special, *WORDS, *WORDS.values()]
    vocabulary = {piece: id for id, piece in enumerate(known)}
    unknown = next((piece for piece in special if "unk" in piece.lower()), special[0])
    rust = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    rust.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    marks = [mark for mark in (before, after) if mark]
    if marks:
        single = " ".join(filter(None, (before, "$A", after)))
        rust.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=[(m, vocabulary[m]) for m in marks]
        )
    rust.add_special_tokens(special)
    rust.save(str(folder / "tokenizer.json"))


def write_pieces(folder: Path) -> None:
    import sentencepiece

    pieces = ["</s>", "<unk>"]
    for side in ("source", "target"):
        lines = [line if side == "source" else translated(line) for line in texts(200, 9)]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(folder / side),
            vocab_size=28,
            minloglevel=2,
            hard_vocab_limit=False,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        table = (folder / f"{side}.vocab").read_text(encoding="utf-8").splitlines()
        pieces += [piece for line in table if (piece := line.split("\t")[0]) not in (*pieces, "<s>")]
    assert len(pieces) < 60
    numbers = {piece: id for id, piece in enumerate(pieces)} | {"<pad>": 60}
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")


def translated(text: str) -> str:
    return " ".join(WORDS[word] for word in text.split())


@pytest.mark.parametrize("family", FAMILIES)
def test_special_pieces_are_no_text(family: str, tmp_path: Path) -> None:
    write_tokenizer(family, tmp_path)
    tokenizer = MarianTokenizer.load(tmp_path, 61, 61) if family == "marian" else FastTokenizer.load(tmp_path, 61)
    special = [id for id in range(61) if re.fullmatch(r"<.+>|\[.+\]|>>.*<<", tokenizer.target_pieces([id])[0])]
    assert set(tokenizer.decode_target([[id] for id in special])) == {""}
    every = tokenizer.decode_target([range(61)])[0].split()
    assert {*WORDS.values()}.issubset(every) or family == "marian"
    assert not any(re.fullmatch(r"<.+>|\[.+\]|>>.*<<", word) for word in every)


def published(family: str, folder: Path) -> Any:
    """A random model of a family with a tokenizer, and what transformers has made."""
    peer: Any = random_model(next(case for case in cases() if case.family == family))
    peer.save_pretrained(folder)
    write_tokenizer(family, folder)
    return peer


def recipe(family: str, folder: Path, start: Path, **changes: Any) -> Recipe:
    data = {}
    for split, count, seed in (("train", 40, 1), ("valid", 12, 2)):
        english = texts(count, seed)
        if family in PAIRS:
            rows = [f"{text}\t{translated(text)}\n" for text in english]
            (folder / f"{split}.tsv").write_text("".join(rows), encoding="utf-8")
            data[split] = [{"tsv": str(folder / f"{split}.tsv")}]
        else:
            (folder / f"{split}.txt").write_text("\n".join(english) + "\n")
            data[split] = [{"text": str(folder / f"{split}.txt")}]
    objective = "translate" if family in PAIRS else "masked" if family in FILLERS else "language"
    settings = {"start": str(start), "objective": objective, "steps": 1, "lr": 1e-12, "batch_tokens": 256}
    settings |= {"log_every": 1, "valid_every": 1, "save_every": 1, "precision": "fp32"}
    return parse({"data": {**data, "max_tokens": 40}, "model": {"dropout": 0.0}, "train": settings | changes})


def seen(made: Recipe, folder: Path) -> list[dict[str, Tensor]]:
    """The batches of validation."""
    folder.mkdir()
    world = parallel.init_distributed("cpu")
    valid = prepare_run(made, folder, world, Report(quiet=True)).valid
    assert valid is not None
    return [local_rows(batch, world, objective=made.train.objective).rows for batch in valid.epoch(0)]


def own_loss(peer: Any, batches: list[dict[str, Tensor]]) -> float:
    """What transformers makes of them."""
    total, count = 0.0, 0
    for rows in batches:
        given = {"input_ids": rows["src" if "src" in rows else "ids"]}
        if "src_mask" in rows or "mask" in rows:
            given["attention_mask"] = rows["src_mask" if "src_mask" in rows else "mask"].long()
        if "tgt" in rows:
            given["decoder_input_ids"] = rows["tgt"]
        with torch.no_grad():
            logits = peer(**given).logits.double()
        asked = rows["labels"] != -100
        likely = logits.log_softmax(-1)[asked].gather(1, rows["labels"][asked].unsqueeze(1))
        total, count = total - float(likely.sum()), count + int(asked.sum())
    return total / count


@pytest.mark.parametrize("family", FAMILIES)
def test_training_starts_at_the_models_own_loss_and_ends_as_its_family(family: str, tmp_path: Path) -> None:
    peer = published(family, tmp_path / "start")
    made = recipe(family, tmp_path, tmp_path / "start")
    folder = train(made, tmp_path / "run", report=Report(quiet=True))
    (found,) = (row["valid_loss"] for row in metrics(folder) if "valid_loss" in row)
    batches = seen(made, tmp_path / "again")
    wanted = own_loss(peer, batches)
    assert found == pytest.approx(wanted, abs=1e-6)
    with torch.no_grad():
        for p in peer.parameters():  # which is no loss that any weights would have
            p.mul_(1.5)
    assert own_loss(peer, batches) != pytest.approx(wanted, abs=1e-4)
    before, after = gf.load_model(tmp_path / "start"), gf.load_model(folder)
    assert after.config == before.config
    torch.testing.assert_close(dict(after.state_dict()), dict(before.state_dict()), atol=1e-6, rtol=0)
    if family == "gpt2":
        assert gf.TextGenerator.load(folder).generate(["one two"], max_new_tokens=3)[0][0].prompt == "one two"
    elif family in FILLERS:
        assert len(gf.MaskFiller.load(folder).fill(["one [MASK]"])[0]) == 1
    elif family in PAIRS:
        assert gf.Translator.load(folder).translate(["one two"], max_new_tokens=4)[0][0].source_tokens is None


def test_what_is_read_and_asked_is_what_the_familys_tokenizer_says(tmp_path: Path) -> None:
    """BART reads <s> text </s>, and writes after </s> the same marks; its numbers are not ours."""
    published("bart", tmp_path / "start")
    made = recipe("bart", tmp_path, tmp_path / "start")
    rust = tokenizers.Tokenizer.from_file(str(tmp_path / "start" / "tokenizer.json"))
    wanted = {(tuple(rust.encode(text).ids), tuple(rust.encode(translated(text)).ids)) for text in texts(12, 2)}
    found = set()
    for rows in seen(made, tmp_path / "run"):
        for src, mask, tgt, labels in zip(*(rows[n] for n in ("src", "src_mask", "tgt", "labels")), strict=True):
            if mask.any():
                asked = labels[labels != -100].tolist()
                assert tgt[: len(asked)].tolist() == [2, *asked[:-1]]
                found.add((tuple(src[mask].tolist()), tuple(asked)))
    assert found == wanted


def test_a_family_learns_resumes_without_its_start_and_takes_an_adapter(tmp_path: Path) -> None:
    published("t5", tmp_path / "start")
    made = recipe("t5", tmp_path, tmp_path / "start", steps=6, lr=0.01, warmup_steps=0, lora_rank=2, valid_every=6)
    whole = train(made, tmp_path / "run", report=Report(quiet=True))
    base, merged = gf.load_model(tmp_path / "start"), gf.load_model(whole)
    gf.load_adapter(base, whole)
    for name, tensor in merged.state_dict().items():
        torch.testing.assert_close(base.state_dict()[name], tensor, atol=1e-6, rtol=0)
    assert not torch.equal(gf.load_model(tmp_path / "start").state_dict()[name], tensor) or name.startswith("head")
    files = sorted((whole / "checkpoints").glob("step-*"))
    files[-1].unlink()
    (whole / "model.safetensors").unlink()
    (tmp_path / "start").rename(tmp_path / "gone")
    train(saved_recipe(whole), whole, resume=True, report=Report(quiet=True))
    for name, tensor in gf.load_model(whole).state_dict().items():
        assert torch.equal(tensor, merged.state_dict()[name])


def test_what_cannot_be_trained_on_is_told(tmp_path: Path) -> None:
    published("bart", tmp_path / "start")
    (tmp_path / "start" / "tokenizer.json").unlink()
    with pytest.raises(WeightsError, match=r"holds no tokenizer.json"):
        train(recipe("bart", tmp_path, tmp_path / "start"), tmp_path / "run", report=Report(quiet=True))
    peer = random_model(next(case for case in cases() if case.family == "mbart"))
    peer.save_pretrained(tmp_path / "many")
    with pytest.raises(ConfigError, match=r"told the languages of each sentence; give the corpus .* both"):
        train(recipe("bart", tmp_path, tmp_path / "many"), tmp_path / "run", report=Report(quiet=True))
    published("gpt2", tmp_path / "decoder")
    with pytest.raises(ConfigError, match="this recipe trains another kind of model"):
        train(recipe("bart", tmp_path, tmp_path / "decoder"), tmp_path / "other", report=Report(quiet=True))
