"""`glassformer trace` as a user runs it: another folder, a fresh process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_run import call, command

from glassformer.cli import main


def run(folder, *arguments):
    return call(command("trace", *arguments), cwd=folder)


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """The same in this process, which has torch loaded already: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run_here(*arguments):
        monkeypatch.setattr(sys, "argv", ["glassformer", "trace", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, error = capsys.readouterr()
        return ended.value.code or 0, out, error

    return run_here


def test_the_story_in_english(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A Transformer by hand")
    assert "decoder.blocks.0.cross_attention.pattern" in done.stdout
    assert "\x1b[" not in done.stdout
    assert done.stderr == ""


def test_the_story_in_chinese(here):
    code, out, _ = here("--lang", "zh")
    assert code == 0
    assert "交叉注意力" in out


def test_json_to_stdout(tmp_path):
    done = run(tmp_path, "--json", "-", "--name", "*.pattern")
    assert done.returncode == 0, done.stderr
    tensors = json.loads(done.stdout, parse_constant=pytest.fail)["tensors"]
    assert [tensor["name"].split(".")[-1] for tensor in tensors] == ["pattern"] * 3
    assert tensors[2]["shape"] == [2, 2, 4, 3]
    assert tensors[2]["axes"] == ["sentence", "head", "query:tgt", "key:src"]


def test_json_to_a_file(here):
    assert here("--json", "all.json") == (0, "", "")
    whole = json.loads(Path("all.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    by_name = {tensor["name"]: tensor for tensor in whole["tensors"]}
    assert whole["vocabulary"][0] == "<pad>"
    assert by_name["decoder.blocks.0.self_attention.masked"]["values"][0][0][0][1:] == ["-inf"] * 3
    assert by_name["encoder.blocks.0.self_attention.pattern"]["values"][1][0][0][2] == 0
    assert all(set(tensor) == {"name", "shape", "axes", "formula", "inputs", "values"} for tensor in whole["tensors"])


def test_one_name(here):
    code, out, _ = here("--name", "decoder.*.hidden")
    assert code == 0
    assert out.startswith("decoder.blocks.0.feed_forward.hidden")
    assert "encoder" not in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--lang", "fr"), ("'fr'", "'en'", "'zh'")),
        (("--name", "*.patern"), ("`*.patern`", "`encoder.blocks.0.self_attention.pattern`")),
        (("--json", os.path.join("no", "such", "folder.json")), ("cannot write", "folder that exists")),
    ],
)
def test_mistakes_are_met_with_the_fix(here, arguments, told):
    code, out, error = here(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in error
    assert all(word in error for word in told), error


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random model with a vocabulary of words, as `glassformer train` would leave it."""
    import torch

    from glassformer.data import Tokenizer, TokenizerOptions
    from glassformer.model import EncoderDecoder, ModelConfig
    from glassformer.weights import bundle

    words = ["one", "two", "three", "four", "five"]
    tokenizer = Tokenizer.train([(word, word.upper()) for word in words], TokenizerOptions(kind="words"))
    sizes = {"d_model": 16, "heads": 4, "d_ff": 24, "layers": 2, "max_length": 40}
    model = EncoderDecoder(ModelConfig(vocab_size=tokenizer.tgt_size, **sizes))
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 1.5
    place = tmp_path_factory.mktemp("trace") / "counting"
    bundle.save(place, model, bundle.weights(model), tokenizer)
    return str(place)


def test_a_model_and_a_sentence(tmp_path, folder):
    done = run(tmp_path, folder, "one two")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("one two  →  ")
    assert "decoder.blocks.1.cross_attention.pattern" in done.stdout
    assert "softmax(masked)" in done.stdout
    assert "\x1b[" not in done.stdout


def test_words_that_training_never_met_are_told(here, folder):
    code, out, error = here(folder, "hello one you", "--name", "logits")
    assert (code, error) == (0, "this model may not know: hello, you\n")
    assert out


def test_one_head_of_one_layer_in_chinese(here, folder):
    code, out, _ = here(folder, "one two", "--layer", "1", "--head", "2", "--name", "*.pattern", "--lang", "zh")
    assert code == 0
    assert out.count("第 2 个头") == 3
    assert "blocks.0" not in out
    assert "第 1 个头" not in out


def test_values_of_a_model_as_json(here, folder):
    code, out, error = here(folder, "one two", "--padding", "1", "--beam", "2", "--json", "-", "--name", "*.masked")
    assert (code, error) == (0, "")
    whole = json.loads(out, parse_constant=pytest.fail)
    assert whole["model"]["name"] == "counting"
    assert whole["options"]["beam"] == 2
    assert [tensor["name"].split(".")[-1] for tensor in whole["tensors"]] == ["masked"] * 6
    assert whole["tensors"][0]["values"][0][0][2] == "-inf"
    assert here(folder, "one two", "--target", "FIVE", "--json", "x.json") == (0, "", "")
    whole = json.loads(Path("x.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert whole["output"]["text"] == "FIVE"
    assert all("values" in tensor for tensor in whole["tensors"])


def test_a_page_that_opens_from_disk(here, folder):
    assert here(folder, "one two", "--html", "x.html") == (0, "", "")
    page = Path("x.html").read_text(encoding="utf-8")
    assert "<title>one two · glassformer</title>" in page
    assert "window.GLASSFORMER_EMBEDDED" in page


def test_a_model_without_text_reads_ids(here, tmp_path):
    from glassformer.weights.parity import cases, random_model, saved

    case = next(case for case in cases() if case.family == "bert")
    with saved(random_model(case), case) as place:
        code, out, _ = here(str(place), "5 9 17", "--name", "logits", "--json", "-")
        assert code == 0
        assert json.loads(out)["tensors"][0]["shape"][0] == 3
        code, _, error = here(str(place), "five nine")
        assert code == 2
        assert "must be ids" in error


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("MODEL",), "give a sentence"),
        (("MODEL", " "), "empty"),
        (("MODEL", "one", "--name", "*.patern"), "did you mean `encoder.blocks.0.self_attention.pattern`"),
        (("MODEL", "one", "--layer", "2"), "numbered 0 to 1"),
        (("MODEL", "one", "--head", "4"), "numbered 0 to 3"),
        (("MODEL", "one", "--json", "a", "--html", "b"), "not both"),
        (("MODEL", "one", "--html", os.path.join("no", "x.html")), "folder that exists"),
        (("no-such-folder", "one"), "no-such-folder"),
        (("--layer", "1"), "--layer needs a model"),
        (("--beam", "2"), "--beam needs a model"),
    ],
)
def test_mistakes_with_a_model(here, folder, arguments, told):
    code, out, error = here(*(folder if word == "MODEL" else word for word in arguments))
    assert (code, out) == (2, "")
    assert "Traceback" not in error
    assert told in error


def test_help_does_not_wait_for_torch():
    code = "import sys, glassformer.cli.trace; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
