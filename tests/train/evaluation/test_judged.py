"""Models that do not translate are judged by what fits them, and each figure is that of a plain computation."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from small_run import Cli
from tiny_published import bert, gpt2

import glassformer as gf
from glassformer.common.errors import ConfigError, DataError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import DecoderOnly, EncoderOnly, ModelConfig
from glassformer.pipelines.loading import BundleTokenizer
from glassformer.train.evaluation.metrics import GapScores, LabelScores, TextScores, wilson_interval
from glassformer.weights import bundle

TEXTS = ["twenty-one", "one hundred and two", "zwölf of them"]
SIZES = {"d_model": 32, "heads": 4, "d_ff": 64, "layers": 1, "max_length": 40}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("kinds")
    words = Tokenizer.train([("", text) for text in TEXTS * 3], TokenizerOptions(vocab_size=285))
    size = words.tgt_size
    image = {"vocab_size": 1, "image_size": 8, "patch_size": 4, "channels": 1, "pad_id": None, "start_id": None}
    models = {
        "decoder": DecoderOnly(ModelConfig(vocab_size=size, **SIZES)),
        "labels": EncoderOnly(ModelConfig(vocab_size=size, labels=2, tied=False, **SIZES)),
        "image": EncoderOnly(ModelConfig(**image, end_id=None, labels=2, tied=False, **SIZES)),
    }
    for name, model in models.items():
        labels = ("even", "odd") if name != "decoder" else ()
        bundle.save(root / name, model, bundle.weights(model), None if name == "image" else words, labels=labels)
    bert(root / "bert")
    gpt2(root / "gpt2")
    return {path.name: path for path in root.iterdir()}


@pytest.mark.parametrize("name", ["decoder", "gpt2"])
def test_a_decoder_has_the_perplexity_of_its_own_log_probabilities(folders: dict[str, Path], name: str) -> None:
    found = gf.evaluate(folders[name], TEXTS, device="cpu").scores
    assert isinstance(found, TextScores)
    generator = gf.TextGenerator.load(folders[name])
    total, count = 0.0, 0
    for text in TEXTS:
        ids = [generator.model.config.start_id, *generator.tokenizer.encode_target([text])[0]]
        labels = torch.tensor([*ids[1:], generator.model.config.end_id])
        with torch.inference_mode():
            total += float(
                torch.nn.functional.cross_entropy(generator.model(torch.tensor([ids]))[0], labels, reduction="sum")
            )
        count += len(labels)
    assert found.tokens == count
    assert found.loss == pytest.approx(total / count, abs=1e-5)
    assert found.perplexity == pytest.approx(math.exp(total / count), rel=1e-5)
    size = len("".join(TEXTS).encode())
    assert size == len("".join(TEXTS)) + 1  # an umlaut has two bytes
    assert found.bits_per_byte == pytest.approx(total / math.log(2) / size, rel=1e-5)
    assert found.bits_per_byte != pytest.approx(total / math.log(2) / (size - 1), rel=1e-5)


def test_a_filler_is_judged_by_each_token_hidden_in_turn(folders: dict[str, Path]) -> None:
    texts = ["Paris is the capital of France.", "The river is long."]
    found = gf.evaluate(folders["bert"], texts, device="cpu").scores
    assert isinstance(found, GapScores)
    told = gf.MaskFiller.load(folders["bert"]).recover(texts)
    tokens = sum(one.likelihood.tokens for one in told)
    assert found.tokens == tokens
    assert found.accuracy == pytest.approx(100 * sum(one.right for one in told) / tokens)
    assert found.pseudo_perplexity == pytest.approx(
        math.exp(-sum(one.likelihood.log_probability for one in told) / tokens)
    )
    assert "hidden in turn" in found.measured


def test_a_classifier_has_the_accuracy_and_f1_of_scikit_learn(folders: dict[str, Path], tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (24, 1, 8, 8), dtype=np.uint8)
    right = np.array(["even", "odd"])[rng.integers(0, 2, 24)]
    np.savez(tmp_path / "some.npz", images=images, labels=right)
    found = gf.evaluate(folders["image"], tmp_path / "some.npz", device="cpu")
    assert isinstance(found.scores, LabelScores)
    told = [best[0].name for best in gf.Classifier.load(folders["image"]).classify(list(images))]
    assert list(found.hypotheses) == told
    assert found.scores.accuracy == pytest.approx(100 * metrics.accuracy_score(right, told))
    assert found.scores.macro_f1 == pytest.approx(100 * metrics.f1_score(right, told, average="macro"))
    assert found.scores.accuracy_low < found.scores.accuracy < found.scores.accuracy_high
    by_text = gf.evaluate(folders["labels"], TEXTS, ["odd", "even", "odd"], device="cpu")
    assert by_text.references == ("odd", "even", "odd")


def test_the_interval_of_a_share_is_right_at_its_ends_too() -> None:
    assert wilson_interval(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson_interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)  # as statsmodels gives it
    assert wilson_interval(0, 10)[0] == 0.0


def test_what_cannot_be_judged_is_told(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"beam=4 is for translations, and .*decoder does not translate"):
        gf.evaluate(folders["decoder"], TEXTS, beam=4)
    with pytest.raises(ConfigError, match=r"ref=.* a decoder is judged by texts alone"):
        gf.evaluate(folders["decoder"], TEXTS, TEXTS, device="cpu")
    with pytest.raises(ConfigError, match=r"tells labels: give the right ones too"):
        gf.evaluate(folders["labels"], TEXTS, device="cpu")
    with pytest.raises(DataError, match=r"the label 'blue' is not one that the model knows: even, odd"):
        gf.evaluate(folders["labels"], TEXTS, ["odd", "blue", "odd"], device="cpu")
    with pytest.raises(DataError, match=r"3 items but 1 labels"):
        gf.evaluate(folders["labels"], TEXTS, ["odd"], device="cpu")
    with pytest.raises(DataError, match=r"holds no recipe that would name `test` pairs"):
        gf.evaluate(folders["decoder"], device="cpu")
    (tmp_path / "no.npz").write_text("nothing")
    with pytest.raises(DataError, match=r"is no .npz with `images` and `labels`"):
        gf.evaluate(folders["image"], tmp_path / "no.npz", device="cpu")


def test_the_command_prints_and_records(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folders["decoder"], tmp_path / "model")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    asked = ["evaluate", str(tmp_path / "model"), "--src", str(tmp_path / "texts.txt"), "--device", "cpu"]
    scores = gf.evaluate(folders["decoder"], TEXTS, device="cpu").scores
    command = Cli(monkeypatch, capsys)
    code, out, _ = command(*asked)
    assert (code, out) == (0, f"{scores}\n{scores.measured}\n")
    assert json.loads(command(*asked, "--json")[1])["tokens"] == scores.tokens
    kept = bundle.read_scores(tmp_path / "model")["texts.txt"]
    assert kept["perplexity"] == pytest.approx(scores.perplexity)
    assert "beam" not in kept


def test_a_gap_in_an_own_text_is_one_piece_of_it() -> None:
    """With the space before it, where it has one; all else is cut as in the whole text."""
    words = ["twenty-one of them", "one hundred and two", "€5 of them"] * 4
    tokenizer = Tokenizer.train([("", word) for word in words], TokenizerOptions(vocab_size=290), reserved=["[MASK]"])
    text = BundleTokenizer(tokenizer, continues=False)
    for before, token, after in (("twenty-", "one", " of them"), ("", "one", " hundred and two"), ("€", "5", "")):
        (whole,), (gap,) = text.encode_source([before + token + after]), text.encode_gaps([f"{before}[MASK]{after}"])
        first = gap.index(text.mask_id)
        hidden = whole[first : len(whole) - (len(gap) - first - 1)]
        assert whole == [*gap[:first], *hidden, *gap[first + 1 :]]
        assert tokenizer.decode_target([hidden])[0] == token
        if len(hidden) == 1:
            assert text.filled(f"{before}[MASK]{after}", hidden) == before + token + after
