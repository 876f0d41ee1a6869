"""`glassformer trace`: the worked example, and models of words."""

import json
import os
from functools import partial
from pathlib import Path

import pytest
import torch

from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.weights import bundle
from glassformer.weights.parity import cases, random_model, saved


@pytest.fixture
def trace(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return partial(cli, "trace")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random model with a vocabulary of words, as `glassformer train` would leave it."""
    words = ["one", "two", "three", "four", "five"]
    tokenizer = Tokenizer.train([(word, word.upper()) for word in words], TokenizerOptions(kind="words"))
    sizes = {"d_model": 16, "heads": 4, "d_ff": 24, "layers": 2, "max_length": 40}
    model = EncoderDecoder(ModelConfig(vocab_size=tokenizer.tgt_size, **sizes))
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 1.5
    path = tmp_path_factory.mktemp("trace") / "counting"
    bundle.save(path, model, bundle.weights(model), tokenizer)
    return str(path)


def parsed(text: str) -> dict:
    return json.loads(text, parse_constant=pytest.fail)


def test_the_worked_example(trace):
    code, out, err = trace()
    assert (code, err) == (0, "")
    assert out.startswith("A Transformer by hand")
    assert "decoder.blocks.0.cross_attention.pattern" in out
    assert "\x1b[" not in out
    assert "交叉注意力" in trace("--lang", "zh")[1]


def test_json_to_standard_output(trace):
    tensors = parsed(trace("--json", "-", "--name", "*.pattern")[1])["tensors"]
    assert [tensor["name"].split(".")[-1] for tensor in tensors] == ["pattern"] * 3
    assert tensors[2]["shape"] == [2, 2, 4, 3]
    assert tensors[2]["axes"] == ["sentence", "head", "query:tgt", "key:src"]


def test_json_to_a_file(trace):
    assert trace("--json", "all.json") == (0, "", "")
    whole = parsed(Path("all.json").read_text(encoding="utf-8"))
    by_name = {tensor["name"]: tensor for tensor in whole["tensors"]}
    assert whole["vocabulary"][0] == "<pad>"
    assert by_name["decoder.blocks.0.self_attention.masked"]["values"][0][0][0][1:] == ["-inf"] * 3
    assert by_name["encoder.blocks.0.self_attention.pattern"]["values"][1][0][0][2] == 0
    assert all(set(tensor) == {"name", "shape", "axes", "formula", "inputs", "values"} for tensor in whole["tensors"])


def test_one_name(trace):
    code, out, _ = trace("--name", "decoder.*.hidden")
    assert code == 0
    assert out.startswith("decoder.blocks.0.feed_forward.hidden")
    assert "encoder" not in out


def test_a_model_and_a_sentence(trace, folder):
    code, out, err = trace(folder, "one two")
    assert (code, err) == (0, "")
    assert out.startswith("one two  →  ")
    assert "decoder.blocks.1.cross_attention.pattern" in out
    assert "softmax(masked)" in out


def test_unknown_words_are_listed(trace, folder):
    code, out, err = trace(folder, "hello one you", "--name", "logits")
    assert (code, err) == (0, "this model may not know: hello, you\n")
    assert out


def test_one_head_of_one_layer_in_chinese(trace, folder):
    code, out, _ = trace(folder, "one two", "--layer", "1", "--head", "2", "--name", "*.pattern", "--lang", "zh")
    assert code == 0
    assert out.count("第 2 个头") == 3
    assert "blocks.0" not in out
    assert "第 1 个头" not in out


def test_values_of_a_model_as_json(trace, folder):
    code, out, err = trace(folder, "one two", "--padding", "1", "--beam", "2", "--json", "-", "--name", "*.masked")
    assert (code, err) == (0, "")
    whole = parsed(out)
    assert (whole["model"]["name"], whole["options"]["beam"]) == ("counting", 2)
    assert [tensor["name"].split(".")[-1] for tensor in whole["tensors"]] == ["masked"] * 6
    assert whole["tensors"][0]["values"][0][0][2] == "-inf"
    assert trace(folder, "one two", "--target", "FIVE", "--json", "x.json") == (0, "", "")
    whole = parsed(Path("x.json").read_text(encoding="utf-8"))
    assert whole["output"]["text"] == "FIVE"
    assert all("values" in tensor for tensor in whole["tensors"])


def test_a_page_that_opens_from_disk(trace, folder):
    assert trace(folder, "one two", "--html", "x.html") == (0, "", "")
    page = Path("x.html").read_text(encoding="utf-8")
    assert "<title>one two · glassformer</title>" in page
    assert "window.GLASSFORMER_EMBEDDED" in page


def test_a_model_without_text_reads_ids(trace):
    case = next(case for case in cases() if case.family == "bert")
    with saved(random_model(case), case) as bert:
        code, out, _ = trace(bert, "5 9 17", "--name", "logits", "--json", "-")
        assert code == 0
        assert json.loads(out)["tensors"][0]["shape"][0] == 3
        code, _, err = trace(bert, "five nine")
        assert code == 2
        assert "must be ids" in err


@pytest.mark.parametrize(
    ("words", "errors"),
    [
        (["--lang", "fr"], ["'fr'", "'en'", "'zh'"]),
        (["--name", "*.patern"], ["`*.patern`", "`encoder.blocks.0.self_attention.pattern`"]),
        (["--json", os.path.join("no", "such", "folder.json")], ["cannot write", "folder that exists"]),
        (["MODEL"], ["give a sentence"]),
        (["MODEL", " "], ["empty"]),
        (["MODEL", "one", "--name", "*.patern"], ["did you mean `encoder.blocks.0.self_attention.pattern`"]),
        (["MODEL", "one", "--layer", "2"], ["numbered 0 to 1"]),
        (["MODEL", "one", "--head", "4"], ["numbered 0 to 3"]),
        (["MODEL", "one", "--json", "a", "--html", "b"], ["not both"]),
        (["MODEL", "one", "--html", os.path.join("no", "x.html")], ["folder that exists"]),
        (["no-such-folder", "one"], ["no-such-folder"]),
        (["--layer", "1"], ["--layer needs a model"]),
        (["--beam", "2"], ["--beam needs a model"]),
    ],
)
def test_mistakes(trace, folder, words, errors):
    code, out, err = trace(*(folder if word == "MODEL" else word for word in words))
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert all(error in err for error in errors), err
