"""Texts continued: as Hugging Face does it with the same weights, streamed as at once, whatever stands beside them."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from small_run import Cli
from tiny_published import bert, gpt2

import glassformer as gf
from glassformer.common.errors import ConfigError, InputError, WeightsError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import DecoderOnly, ModelConfig
from glassformer.weights import bundle

PROMPTS = ["Paris is the", "The river", "Berlin is the capital of", "The"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, object]:
    folder = tmp_path_factory.mktemp("gpt2")
    return folder, gpt2(folder)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    words = ["twenty-one", "twenty two", "one hundred and two", "two of them"] * 3
    tokenizer = Tokenizer.train([("", word) for word in words], TokenizerOptions(vocab_size=290))
    model = DecoderOnly(
        ModelConfig(vocab_size=tokenizer.tgt_size, d_model=32, heads=4, d_ff=64, layers=2, max_length=40)
    )
    bundle.save(folder, model, bundle.weights(model), tokenizer)
    return folder


def test_greedy_continuations_are_those_of_hugging_face(published: tuple[Path, object]) -> None:
    folder, theirs = published
    generator = gf.TextGenerator.load(folder)
    for text, best in zip(PROMPTS, generator.generate(PROMPTS, max_new_tokens=12), strict=True):
        ids = generator.tokenizer.encode_source([text])
        written = theirs.generate(
            torch.tensor(ids),
            max_new_tokens=12,
            do_sample=False,
            pad_token_id=0,
            attention_mask=torch.ones(1, len(ids[0])),
        )[0].tolist()
        (whole,) = generator.tokenizer.decode_target([written])
        assert best[0].whole == whole
        assert best[0].prompt + best[0].text == whole  # the space before a word belongs to the word


@pytest.mark.parametrize("which", ["published", "own"])
def test_a_text_is_continued_the_same_whatever_stands_beside_it(which: str, request: pytest.FixtureRequest) -> None:
    given = request.getfixturevalue(which)
    generator = gf.TextGenerator.load(given[0] if isinstance(given, tuple) else given)
    prompts = ["twenty", "one hundred and", "two", "twenty"] if which == "own" else PROMPTS
    for options in ({}, {"beam": 3, "nbest": 2}, {"sampling": gf.Sampling(seed=5, temperature=2.0)}):
        together = generator.generate(prompts, max_new_tokens=10, **options)
        alone = [generator.generate([text], max_new_tokens=10, **options)[0] for text in prompts]
        assert [[one.text for one in best] for best in together] == [[one.text for one in best] for best in alone]
    drawn = {generator.generate([prompts[0]], sampling=gf.Sampling(seed=s))[0][0].text for s in range(4)}
    assert len(drawn) > 1


@pytest.mark.parametrize("which", ["published", "own"])
def test_a_stream_joined_is_the_whole(which: str, request: pytest.FixtureRequest) -> None:
    given = request.getfixturevalue(which)
    generator = gf.TextGenerator.load(given[0] if isinstance(given, tuple) else given)
    for options in ({}, {"sampling": gf.Sampling(seed=2)}):
        pieces = list(generator.stream("two", max_new_tokens=12, **options))
        assert len(pieces) > 1
        assert "".join(pieces) == generator.generate(["two"], max_new_tokens=12, **options)[0][0].text
    with pytest.raises(ConfigError, match=r"beam=2"):
        generator.stream("two", beam=2)


def test_an_own_bundle_continues_from_its_start_mark(own: Path) -> None:
    generator = gf.TextGenerator.load(own)
    assert generator.tokenizer.encode_source(["two"])[0][0] == 1
    assert generator.tokenizer.encode_source([""]) == [[1]]
    assert generator.tokenizer.encode_source(["two "]) == generator.tokenizer.encode_source(["two"])
    best = generator.generate(["two "], max_new_tokens=5)[0][0]
    assert best.text == generator.generate(["two"], max_new_tokens=5)[0][0].text
    assert "  " not in best.whole[:5]
    assert generator("two").startswith("two")
    assert pickle.loads(pickle.dumps(generator))("two") == generator("two")


def test_likelihoods_are_the_sums_of_what_each_step_says(own: Path, published: tuple[Path, object]) -> None:
    for generator in (gf.TextGenerator.load(own), gf.TextGenerator.load(published[0])):
        texts = ["two of them", "twenty-one", "two"]
        for text, found in zip(texts, generator.likelihoods(texts), strict=True):
            config = generator.model.config
            ids = [config.start_id, *generator.tokenizer.encode_target([text])[0], config.end_id]
            with torch.inference_mode():
                told = generator.model(torch.tensor([ids])).log_softmax(-1)[0]
            by_hand = sum(float(told[i, ids[i + 1]]) for i in range(len(ids) - 1))
            assert found.tokens == len(ids) - 1
            assert found.log_probability == pytest.approx(by_hand, abs=1e-4)
            assert found.log_probability != pytest.approx(by_hand - float(told[0, ids[1]]), abs=1e-2)  # none left out


def test_what_cannot_be_continued_is_told(own: Path, published: tuple[Path, object], tmp_path: Path) -> None:
    generator = gf.TextGenerator.load(own)
    with pytest.raises(InputError, match=r"texts\[1\] has .* tokens, and the model reads at most 40"):
        generator.generate(["two", "two " * 60])
    with pytest.raises(ConfigError, match=r"max_new_tokens=99 is too many"):
        generator.generate(["two"], max_new_tokens=99)
    with pytest.raises(InputError, match=r"must be a list of str"):
        generator.generate("two")
    bert(tmp_path / "bert")
    with pytest.raises(WeightsError, match=r"is an encoder alone, which fills gaps: `glassformer fill`"):
        gf.TextGenerator.load(tmp_path / "bert")
    shutil.copytree(published[0], tmp_path / "ids")
    (tmp_path / "ids" / "tokenizer.json").unlink()
    with pytest.raises(WeightsError, match=r"holds no tokenizer.json, so its model reads ids alone"):
        gf.TextGenerator.load(tmp_path / "ids")
    demo = Path(__file__).parent.parent / "page" / "bundle"
    with pytest.raises(WeightsError, match=r"a translator: `glassformer translate` and gf.Translator use it"):
        gf.TextGenerator.load(demo)


def test_the_command(own: Path, cli: Cli) -> None:
    """Texts, standard input, JSON and a stream say the same; a mistake is one line and exit code 2."""
    generator = gf.TextGenerator.load(own)
    whole = [best[0].whole for best in generator.generate(["two", "twenty"], max_new_tokens=6)]
    asked = ["generate", str(own), "--device", "cpu", "--precision", "fp32", "--max-new-tokens", "6"]
    assert cli(*asked, stdin="two\ntwenty\n")[1].splitlines() == [text.replace("\n", " ") for text in whole]
    objects = [json.loads(line) for line in cli(*asked, "--json", "two", "twenty")[1].splitlines()]
    assert [one["prompt"] + one["continuations"][0]["text"] for one in objects] == whole
    assert cli(*asked, "--stream", "two")[1] == whole[0] + "\n"
    said = "glassformer: --top-k says how to draw at random; add --sample\n"
    assert cli(*asked, "--top-k", "3", "two") == (2, "", said)
