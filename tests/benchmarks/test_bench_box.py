"""A whole translator is measured beside CTranslate2, on the texts that are named."""

import pytest
import torch

import glassformer as gf
from benchmarks.box import HELD, SAMPLE, compared, levels, short_enough, texts_of
from glassformer.common.errors import DataError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.decode.kernels import LEVELS, load_kernels
from glassformer.weights import bundle

WORDS = ["one two three", "four five", "six seven eight nine"]


def test_texts_are_those_of_a_folder_or_a_few_of_our_own(tmp_path):
    assert texts_of(None, "en") == list(SAMPLE)
    with pytest.raises(DataError, match=r"holds no test\.en, test\.en\.xz or test\.en\.gz"):
        texts_of(tmp_path, "en")
    (tmp_path / "test.en").write_text("one\ntwo\n", encoding="utf-8")
    assert texts_of(tmp_path, "en") == ["one", "two"]


def test_every_level_can_be_held_on_both_sides():
    assert set(HELD) == {level.name for level in LEVELS}


@pytest.mark.long
def test_both_translate_and_are_compared(tmp_path):
    pytest.importorskip("ctranslate2")
    if isinstance(load_kernels(), str):
        pytest.skip(f"no kernels: {load_kernels()}")
    tokenizer = Tokenizer.train([(text, text) for text in WORDS * 5], TokenizerOptions(kind="words", vocab_size=40))
    sizes = {"d_model": 32, "heads": 4, "d_ff": 64, "layers": 2, "decoder_layers": 1, "max_length": 40}
    model = gf.EncoderDecoder(gf.ModelConfig(vocab_size=13, **sizes)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        model.head.weight[2] *= 3  # an end that comes
    bundle.save(tmp_path / "model", model, bundle.weights(model), tokenizer, "int8")
    texts = short_enough(str(tmp_path / "model"), None, [*WORDS, "one " * 50])
    assert texts == WORDS  # the last is cut
    one = compared(str(tmp_path / "model"), texts, levels()[-1], beam=2, rounds=1)
    assert one.speed == pytest.approx(one.ours.sentences / one.theirs.sentences)
    assert one.latency == pytest.approx(one.theirs.latency / one.ours.latency)
    assert 0 <= one.equal <= 1
