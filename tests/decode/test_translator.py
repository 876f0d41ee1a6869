"""The translator on a trained model: order, empty lines, and independence of what else is translated."""

import pickle
import random
import shutil
import warnings
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from small_run import WORDS
from tiny_translators import write_marian

from glassformer.common.errors import ConfigError, InputError, WeightsError
from glassformer.data.tokenizer import stream_decode
from glassformer.decode import Sampling
from glassformer.pipelines.translator import Translator

TEXTS = ["one two three", "", "six", "four four one six two five three", "two two", "   ", "five"]


@pytest.fixture(scope="module")
def folder():
    return Path(__file__).parents[1] / "page" / "bundle"  # a small model that has learnt these words


@pytest.fixture(scope="module")
def translator(folder):
    return Translator.load(folder)


def test_a_loaded_translator_with_rounded_weights_keeps_these_alone(folder, tmp_path):
    """What needs the plain model, here alignments, has it loaded again, if the folder still holds the same."""
    place = shutil.copytree(folder, tmp_path / "model")
    rounded = Translator.load(place, precision="int8")
    plain = [weakref.ref(weight) for name, weight in rounded.engine._plain.named_parameters() if "feed_forward" in name]
    before = rounded.translate(TEXTS)
    assert not any(weight() is not None and weight().dim() == 2 for weight in plain)
    (place / "model.safetensors").touch()
    with pytest.raises(WeightsError, match="is not what it was when it was loaded; load it again"):
        rounded.translate(TEXTS, alignments=True)
    assert rounded.translate(TEXTS) == before
    rounded = Translator.load(place, precision="int8")
    assert rounded.translate(TEXTS) == before
    aligned = rounded.translate(TEXTS, alignments=True)
    assert [one.text for (one,) in aligned] == [one.text for (one,) in before]
    assert pickle.loads(pickle.dumps(rounded)).translate(TEXTS) == before


@pytest.mark.parametrize("beam", [1, 4])
def test_the_order_is_kept_and_a_batch_is_as_good_as_single_sentences(translator, beam):
    together = [best[0] for best in translator.translate(TEXTS, beam=beam)]
    alone = [translator.translate([text], beam=beam)[0][0] for text in TEXTS]
    assert [one.text for one in together] == [one.text for one in alone]
    assert [one.tokens for one in together] == [one.tokens for one in alone]
    assert [one.score for one in together] == pytest.approx([one.score for one in alone], abs=1e-4)
    assert len({one.text for one in together}) > 3
    again = [best[0].text for best in translator.translate(TEXTS[::-1], beam=beam)]
    assert again == [one.text for one in together][::-1]


def test_an_empty_line_stays_empty(translator):
    assert translator("") == ""
    assert translator.translate([]) == []
    assert translator.translate(["", "one"])[0][0].text == ""
    assert translator.translate(["", "one"])[1][0].text != ""


def test_n_best_are_sorted_and_the_first_is_the_best(translator):
    (found,) = translator.translate(["one two three"], beam=4, nbest=3)
    assert len(found) == 3
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len({one.text for one in found}) == 3
    assert found[0].text == translator.translate(["one two three"], beam=4)[0][0].text


def test_a_text_has_as_many_translations_as_are_possible(translator):
    text = "one two three four " * 5
    limit = 12
    first = translator.split([text], limit)[0][0]
    prefix = ""
    while len(translator.tokenizer.encode_target([prefix])[0]) < translator.max_target_length(len(first.ids)):
        prefix = f"{prefix} zwei".strip()
    (found,) = translator.translate([text], beam=3, nbest=3, prefix=prefix, max_length=limit)
    assert found[0].parts > 1
    assert len(found) == 1  # the first part has no room for a second one
    assert found[0].text.startswith(prefix)


def test_many_sentences_in_many_batches(translator):
    texts = [" ".join(["one", "two", "six"][: 1 + n % 3] * (1 + n % 4)) for n in range(40)]
    whole = [best[0].text for best in translator.translate(texts)]
    told: list[int] = []
    assert [best[0].text for best in translator.translate(texts, batch_tokens=16, progress=told.append)] == whole
    assert told == sorted(told)
    assert told[-1] == 40
    assert len(told) > 5


def test_unknown_words_and_very_long_lines_are_no_trouble(translator):
    assert isinstance(translator("nothing known here 中文"), str)
    assert isinstance(translator("one " * 200), str)


def test_a_prefix_is_kept_for_each_text_or_for_all(translator):
    texts = ["one two three", "", "six"]
    found = [best[0].text for best in translator.translate(texts, prefix=["vier fünf", "eins", ""], beam=2)]
    assert found[0].startswith("vier fünf")
    assert found[1] == ""
    assert found[2] == translator.translate(["six"], beam=2)[0][0].text
    for space in ("", " ", "\n"):  # what follows the prefix brings its own space
        assert translator.translate(texts, prefix=["zwei" + space] * 3) == translator.translate(texts, prefix="zwei")
    long = "one two three four five six. " * 60
    (split,) = translator.translate([long], prefix="sechs sechs")[0]
    assert split.parts > 1
    assert split.tokens[:2] == ["sechs", "sechs"]
    rest = translator(translator.split([long], 272)[0][-1].text)
    assert rest
    assert split.text.endswith(" " + rest)  # the other parts are as they were
    with pytest.raises(InputError, match="2 prefixes for 3 texts"):
        translator.translate(texts, prefix=["eins", "zwei"])
    with pytest.raises(InputError, match=r"has 99 tokens, but the translation of 'one two three' may have 52"):
        translator.translate(texts, prefix=" ".join(["eins"] * 99))


@pytest.mark.parametrize("sampling", [None, Sampling(temperature=2.0, seed=3)])
def test_a_stream_joined_is_the_translation(translator, sampling):
    for text in [*TEXTS, "one two three four. " * 60]:
        for prefix in ("", "drei eins"):
            pieces = list(translator.stream(text, sampling=sampling, prefix=prefix))
            assert "".join(pieces) == translator.translate([text], sampling=sampling, prefix=prefix)[0][0].text
    assert len(list(translator.stream("one two three"))) > 1


def test_a_letter_is_streamed_when_all_its_bytes_are_there():
    class Bytes:
        def decode_target(self, batch):
            return [bytes(ids).decode("utf-8", "replace") for ids in batch]

    assert list(stream_decode(Bytes(), "aé中👧".encode())) == ["a", "é", "中", "👧"]
    assert list(stream_decode(Bytes(), b"a\xe4\xb8")) == ["a", "\ufffd"]
    assert list(stream_decode(Bytes(), b"\xe4a")) == ["\ufffda"]


def test_same_seed_same_sample_whatever_else_is_drawn(translator):
    draw = Sampling(temperature=3.0, seed=1)
    together = [best[0].text for best in translator.translate(TEXTS, sampling=draw)]
    assert together == [translator.translate([text], sampling=draw)[0][0].text for text in TEXTS]
    assert together != [best[0].text for best in translator.translate(TEXTS, sampling=Sampling(3.0, seed=2))]


def test_alternatives_are_sorted_and_lead_on(translator):
    text = "one two three"
    best = translator.translate([text])[0][0]
    for said in range(3):
        begun = " ".join(best.tokens[:said])
        found = translator.alternatives(text, begun, count=4)
        assert [one.log_probability for one in found] == sorted((one.log_probability for one in found), reverse=True)
        assert found[0].token == best.tokens[said]
        assert found[0].translation.text == best.text
        assert found[0].translation.score == pytest.approx(best.score, abs=1e-4)
        for one in found:
            ending = one.token == "</s>"
            assert one.translation.tokens[: said + 1] == best.tokens[:said] + ([] if ending else [one.token])
    ends = translator.alternatives(text, best.text, count=1)[0]
    assert ends.translation.text == best.text
    with pytest.raises(InputError, match="the text is empty"):
        translator.alternatives(" ")
    with pytest.raises(InputError, match="longer than the 272 tokens"):
        translator.alternatives("one " * 400)


@pytest.mark.parametrize("rule", ["average", "gnmt"])
def test_scoring_a_translation_gives_its_score(translator, rule):
    options: dict[str, Any] = {"length_penalty": 0.6, "length_rule": rule}
    found = [best[0] for best in translator.translate(TEXTS, beam=2, **options)]
    scores = translator.score(TEXTS, [one.text for one in found], batch_tokens=40, **options)
    assert scores == pytest.approx([one.score for one in found], abs=1e-4)
    assert translator.score(["", "one"], ["eins", ""])[0] == float("-inf")
    one = translator.likelihoods(["one"], ["eins"])[0]
    assert one.tokens == 2
    assert translator.score(["one"], ["eins"])[0] == pytest.approx(one.log_probability / 2)
    with pytest.raises(InputError, match="2 texts but 1 targets"):
        translator.score(["a", "b"], ["c"])
    with pytest.raises(InputError, match=r"targets\[1\] has 300 tokens, the model takes 271"):
        translator.score(["one", "two"], ["eins", "eins " * 299 + "eins"])


def test_alignment_finds_the_word_that_was_translated(translator):
    chance = random.Random(5)
    texts = [" ".join(chance.sample(sorted(WORDS), 5)) for _ in range(20)]
    right = whole = 0
    for best in translator.translate(texts, alignments=True):
        assert best[0].source_tokens is not None
        assert best[0].alignment is not None
        for t, s in best[0].alignment:
            right += WORDS[best[0].source_tokens[s]] == best[0].tokens[t]
            whole += 1
    assert whole > 80
    assert right > 0.6 * whole  # by chance it would be a fifth; of the rest the toy has translated some wrongly
    long = "one two three four five six. " * 60
    (split,), (empty,), (two, _) = (
        *translator.translate([long, ""], alignments=True),
        translator.translate(["one two"], beam=2, nbest=2, alignments=True)[0],
    )
    assert split.parts > 1
    assert split.alignment is not None
    assert split.source_tokens is not None
    assert [t for t, _ in split.alignment] == list(range(len(split.tokens)))
    assert all(0 <= s < len(split.source_tokens) for _, s in split.alignment)
    assert max(s for _, s in split.alignment) > 272
    assert empty.alignment == []
    assert translator.translate(["one"])[0][0].alignment is None
    assert two.alignment is not None
    assert not any(module._forward_hooks for module in translator.model.modules())


@pytest.mark.parametrize("precision", ["fp32", "int8", "auto"])
def test_the_plain_model_stays_plain_whatever_runs(translator, precision):
    other = Translator(translator.model, translator.tokenizer, precision=precision)
    texts = ["one two three", "six", "five four"]
    found = [best[0] for best in other.translate(texts)]
    plain = translator.score(texts, [one.text for one in found])
    assert [one.score for one in found] == pytest.approx(plain, abs=0.05 if precision == "int8" else 1e-4)
    assert other.model is translator.model
    assert other.engine.ready is not other.model
    assert all(weight.dtype == torch.float32 for weight in other.model.state_dict().values())
    with pytest.raises(ConfigError, match="precision='int4'"):
        Translator(translator.model, translator.tokenizer, precision="int4")


def test_a_marian_folder_can_be_begun_streamed_scored_and_aligned(tmp_path):
    from transformers import MarianTokenizer

    folder = write_marian(tmp_path / "marian", shared=False)
    translator = Translator.load(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a library that it does not use
        peer = MarianTokenizer.from_pretrained(folder)
    targets = ["THE SMALL DOG", "A CAT. ß 中", "", ">>xyz<< TWO"]
    ours = translator.tokenizer.encode_target(targets)
    assert ours == [peer(text_target=target)["input_ids"][:-1] for target in targets]  # without the end mark
    (best,) = translator.translate(["The small dog."], prefix="A RED HOUSE ", alignments=True)[0]
    assert best.text.startswith("A RED HOUSE")
    assert "".join(translator.stream("The small dog.", prefix="A RED HOUSE")) == best.text
    assert best.source_tokens is not None
    assert best.source_tokens[-1] == "</s>"
    assert all(s < len(best.source_tokens) - 1 for _, s in best.alignment or [(0, 99)])
    assert translator.alternatives("A cat.")[0].translation.tokens == translator.translate(["A cat."])[0][0].tokens
    assert len(translator.score(["A cat.", "Two."], ["A", "B"])) == 2
