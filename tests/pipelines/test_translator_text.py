"""Any text in: odd characters, texts of any length, threads, and Marian folders as Hugging Face reads them."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
import random
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_translators import LIMIT, WORDS, sentences, tiny_bundle, write_marian

from glassformer.common.errors import ConfigError, InputError, WeightsError
from glassformer.decode import Hypothesis
from glassformer.pipelines.language.sentences import Part, split_by_length
from glassformer.pipelines.translator import TooLong, Translator, join_hypotheses


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return Translator.load(tiny_bundle(tmp_path_factory.mktemp("text") / "model"))


def texts_of(translator: Translator, texts: list[str], **options: Any) -> list[str]:
    return [best[0].text for best in translator.translate(texts, **options)]


ODD = [
    "",
    "   ",
    "\t\u3000\u00a0",
    "null\0byte",
    "\0",
    "מה שלומך היום",
    "\u202eright to left\u202c",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "half \ud83d of a pair",
    "\udfff",
    "line\nbreak",
    "﷽" * 9,
]


def test_odd_text_never_crashes_and_no_text_is_lost(translator: Translator) -> None:
    together = texts_of(translator, ODD)
    assert together == [translator(text) for text in ODD]
    assert together[:3] == ["", "", ""]
    assert all(isinstance(text, str) for text in together)
    assert [len(best) for best in translator.translate(ODD, beam=3, nbest=2)] == [2] * len(ODD)


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(alphabet=st.characters(codec=None), max_size=60), max_size=5))
def test_any_text_is_translated(translator: Translator, texts: list[str]) -> None:
    found = texts_of(translator, texts)
    assert len(found) == len(texts)
    assert all(out == "" for text, out in zip(texts, found, strict=True) if not text.strip())


def test_any_iterable_of_texts_is_taken(translator: Translator, tmp_path: Path) -> None:
    """Each of these was once read to its end by the check, and came back as `[]`."""
    texts = ["the dog", "", "a red house"]
    (tmp_path / "lines").write_text("\n".join(texts), encoding="utf-8")
    wanted = translator.translate(texts)
    for any_kind in ((text for text in texts), iter(texts), map(str, texts), tuple(texts), dict.fromkeys(texts).keys()):
        assert translator.translate(any_kind) == wanted
    with (tmp_path / "lines").open(encoding="utf-8") as file:  # a line's end is no part of it
        assert translator.translate(file) == wanted
    assert translator.translate(iter(texts), prefix=iter(texts)) == translator.translate(texts, prefix=texts)
    assert translator.score(iter(texts), iter(texts)) == translator.score(texts, texts)


def test_what_is_no_list_of_texts_is_refused(translator: Translator) -> None:
    with pytest.raises(InputError, match=r"write \[text\]"):
        translator.translate("one sentence")
    refused = [
        ({"a": "b"}, "texts=.* is of type dict"),
        ({"a", "b"}, "texts=.* is of type set"),
        (5, "texts=5 is of type int"),
        (None, "texts=None is of type NoneType"),
        (b"bytes", "texts=b'bytes' is of type bytes"),
        ([b"bytes"], r"texts\[0\]=b'bytes' is of type bytes"),
    ]
    for wrong, said in refused:
        with pytest.raises(InputError, match=said):
            translator.translate(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=said.replace("texts", "targets")):
            translator.score(["one"], wrong)  # type: ignore[arg-type]
        if wrong is not None:
            with pytest.raises(InputError, match=said.replace("texts", "prefix")):
                translator.translate(["one"], prefix=wrong)  # type: ignore[arg-type]
    for call in (translator.stream, translator.alternatives):
        with pytest.raises(InputError, match="of type list; it must be str"):
            call(["one"])  # type: ignore[arg-type]
        with pytest.raises(InputError, match="of type list; it must be str"):
            call("one", prefix=["two"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="of type list; it must be str"):
        translator(["one"])  # type: ignore[arg-type]


def test_options_that_cannot_be_met_are_told(translator: Translator) -> None:
    with pytest.raises(ConfigError, match="beam=2"):
        translator.translate([""], beam=2, nbest=3)
    with pytest.raises(InputError, match="max_length=3"):
        translator.translate(["one"], max_length=3)
    with pytest.raises(ConfigError, match="gpu"):
        Translator(translator.model, translator.tokenizer, "gpu")


def by_letter(texts: Any) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]


def cut_texts(text: str, limit: int) -> list[str]:
    return [part.text for part in split_by_length(text, limit, by_letter)]


def test_a_long_text_is_cut_where_it_hurts_least() -> None:
    assert cut_texts("One two. Three four? Five.", 14) == ["One two.", "Three four?", "Five."]
    assert cut_texts("One two. Three four? Five.", 20) == ["One two. Three four?", "Five."]
    assert cut_texts("你好吗？我很好。再见！", 5) == ["你好吗？", "我很好。", "再见！"]
    assert cut_texts("first, second part. Third", 14) == ["first,", "second part.", "Third"]
    assert cut_texts("no mark at all in here", 10) == ["no mark at", "all", "in here"]
    assert cut_texts("abcdefghijkl", 7) == ["abcde", "fghij", "kl"]
    assert [part.spaced for part in split_by_length("A. C。DE", 3, by_letter)] == [False, True, False]


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(alphabet="ab .,!?。、\n\u3000é👧", min_size=1, max_size=120),
    limit=st.integers(1, 30),
    wide=st.booleans(),
)
def test_the_parts_fit_and_nothing_but_white_space_is_lost(text: str, limit: int, wide: bool) -> None:
    """`wide`: letters that need two tokens, as a vocabulary that spells in bytes would have them."""

    def encode(texts: Any) -> list[list[int]]:
        return [list(text.encode("utf-16-le" if wide else "utf-8")) for text in texts]

    parts = split_by_length(text, limit, encode)
    assert "".join("".join(part.text for part in parts).split()) == "".join(text.split())
    assert all(len(part.ids) <= limit and part.text == part.text.strip() for part in parts)


def test_a_long_text_is_its_parts_joined(translator: Translator) -> None:
    parts = sentences(30, seed=5)
    limit = max(map(len, translator.tokenizer.encode_source(parts)))
    (best,) = translator.translate([" ".join(parts)], max_length=limit)[0]
    halves = translator.split([" ".join(parts)], limit)[0]
    assert best.parts == len(halves) > 5
    assert best.text == " ".join(filter(None, (translator(half.text) for half in halves)))
    weights = [len(half.ids) for half in halves]
    scores = [translator.translate([half.text])[0][0].score for half in halves]
    mean = sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights)
    assert best.score == pytest.approx(mean, abs=1e-4)


def test_a_translation_stopped_by_the_limit_is_told_from_a_finished_one(translator: Translator) -> None:
    texts = [*sentences(60, seed=12), ""]
    seen = set()
    for text, (best,) in zip(texts, translator.translate(texts, beam=2), strict=True):
        (ids,) = translator.tokenizer.encode_source([text])
        assert best.finished == (len(best.tokens) < translator.max_target_length(len(ids)))
        seen.add(best.finished)
    assert seen == {True, False}
    long = " ".join(texts)
    for size in (LIMIT, 8):
        (best,) = translator.translate([long], max_length=size)[0]
        parts = [part.text for part in translator.split([long], size)[0]]
        assert best.finished == all(one.finished for (one,) in translator.translate(parts))


def test_ten_thousand_words_without_a_full_stop(translator: Translator) -> None:
    long = " ".join(random.Random(2).choices(WORDS, k=10_000))
    told: list[int] = []
    first, (best,), last = translator.translate(["the dog", long, "a cat"], progress=told.append)
    assert best.parts > 200
    assert [first[0].text, last[0].text] == texts_of(translator, ["the dog", "a cat"])
    assert told[-1] == 3
    assert translator.translate(["x" * 5_000])[0][0].parts > 20


def test_n_best_of_a_long_text_stay_sorted(translator: Translator) -> None:
    (found,) = translator.translate([" ".join(sentences(20, seed=6))], beam=3, nbest=3)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert found[0].parts > 1


def test_parts_meet_with_a_space_or_as_the_target_is_written() -> None:
    class Spelt:
        def decode_target(self, batch: Any) -> list[str]:
            return ["".join(map(chr, ids)) for ids in batch]

        def target_pieces(self, ids: Any) -> list[str]:
            return list(map(chr, ids))

    def met(left: Part, right: Part, *outputs: str) -> str:
        found = [[Hypothesis([ord(letter) for letter in text], 0.0)] for text in outputs]
        return join_hypotheses(Spelt(), [left, right], found)[0].text  # type: ignore[arg-type]

    english, spaced, chinese, inside = Part("A.", [1]), Part("B.", [1], True), Part("好。", [1]), Part("b", [1])
    assert met(english, spaced, "Ja.", "Nein.") == "Ja. Nein."
    assert met(english, spaced, "是。", "不。") == "是。不。"
    assert met(chinese, chinese, "Good.", "Well.") == "Good. Well."
    assert met(Part("a", [1]), inside, "un", "even") == "uneven"
    assert met(english, spaced, "", "Nein.") == "Nein."


def test_threads_share_a_translator(translator: Translator) -> None:
    chance = random.Random(4)
    work = [[f"{line} {chance.random():.6f}" for line in sentences(6, seed)] for seed in range(6)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda texts: texts_of(translator, texts, beam=2), work))
    assert together == [texts_of(translator, texts, beam=2) for texts in work]


def again(translator: Translator) -> list[Translator]:
    """The translator as each way of copying gives it back, used before and not."""
    fresh = Translator(translator.model, translator.tokenizer, precision=translator.engine.precision)
    copies = [remake(one) for one in (fresh, translator) for remake in (copy.copy, copy.deepcopy)]
    return [*copies, *(pickle.loads(pickle.dumps(one)) for one in (fresh, translator))]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_translator_can_be_copied_and_pickled(translator: Translator, precision: Any) -> None:
    translator = Translator(translator.model, translator.tokenizer, precision=precision)
    wanted = translator.translate(["the dog", "a red house"], beam=3)
    for other in again(translator):
        assert other.translate(["the dog", "a red house"], beam=3) == wanted
        assert (other.device, other.engine.precision) == (translator.device, precision)


def test_a_translator_goes_to_worker_processes(translator: Translator) -> None:
    texts = ["the dog", "a red house", "x" * 2 * LIMIT]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(translator.translate, texts).result() == translator.translate(texts)
        with pytest.raises(TooLong) as failed:  # an error comes back whole
            pool.submit(translator.score, texts, texts).result()
    assert (failed.value.name, failed.value.index) == ("texts", 2)
    assert str(failed.value).startswith("texts[2] has ")


# Marian folders


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_marian(tmp_path_factory.mktemp("marian") / "shared", shared=True)


MARIAN_TEXTS = [*sentences(10, seed=9), "A dog 中文 ß 👧 qq.", ">>xyz<< the house", ">>none<< a cat", "two\0three", "é"]


@pytest.mark.parametrize("shared", [True, False])
def test_a_marian_folder_reads_and_writes_as_hugging_face_does(marian: Path, tmp_path: Path, shared: bool) -> None:
    from transformers import MarianMTModel, MarianTokenizer

    folder = marian if shared else write_marian(tmp_path / "apart", shared=False)
    ours = Translator.load(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a library that it does not use
        theirs = MarianTokenizer.from_pretrained(folder)
    ids = theirs(MARIAN_TEXTS)["input_ids"]
    assert ours.tokenizer.encode_source(MARIAN_TEXTS) == ids
    assert any(1 in row for row in ids)
    peer = MarianMTModel.from_pretrained(folder).eval()
    pad = peer.config.pad_token_id
    texts = []
    for row in ids:
        room = ours.max_target_length(len(row))
        with torch.no_grad():
            out = peer.generate(torch.tensor([row]), max_new_tokens=room, num_beams=1, bad_words_ids=[[pad]])
        texts.append(theirs.decode(out[0, 1:], skip_special_tokens=True))
    assert texts_of(ours, MARIAN_TEXTS) == texts
    assert len(set(texts)) > 8


def test_a_marian_translator_can_be_copied_and_pickled(marian: Path) -> None:
    translator = Translator.load(marian)
    wanted = translator.translate(MARIAN_TEXTS)
    assert all(other.translate(MARIAN_TEXTS) == wanted for other in again(translator))


def test_marian_takes_odd_and_long_text_too(marian: Path) -> None:
    translator = Translator.load(marian)
    found = texts_of(translator, ODD)
    assert found == [translator(text) for text in ODD]
    assert found[:3] == ["", "", ""]
    (best,) = translator.translate([" ".join(sentences(60, seed=3))])[0]
    assert best.parts > 2


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json"])
def test_what_a_marian_folder_lacks_is_named(marian: Path, tmp_path: Path, name: str) -> None:
    for file in marian.iterdir():
        if file.name != name:
            (tmp_path / file.name).symlink_to(file)
    with pytest.raises(WeightsError, match=f"{name} is missing"):
        Translator.load(tmp_path)
    (tmp_path / name).write_bytes(b"nonsense")
    with pytest.raises(WeightsError, match=f"{name} is (not|damaged)"):
        Translator.load(tmp_path)


def test_without_sentencepiece_the_way_to_it_is_told(marian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(WeightsError, match="pip install sentencepiece"):
        Translator.load(marian)


def test_a_vocabulary_larger_than_the_model_is_refused(marian: Path, tmp_path: Path) -> None:
    for file in marian.iterdir():
        if file.name != "vocab.json":
            (tmp_path / file.name).symlink_to(file)
    vocabulary = json.loads((marian / "vocab.json").read_text(encoding="utf-8"))
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary | {"more": 5000}), encoding="utf-8")
    with pytest.raises(WeightsError, match="ids up to 5000"):
        Translator.load(tmp_path)


def test_a_folder_of_another_family_is_no_translator(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    with pytest.raises(WeightsError, match="'gpt2'"):
        Translator.load(tmp_path)
