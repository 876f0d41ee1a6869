"""What a command prints arrives, whatever the encoding of its terminal or pipe."""

import io
import json
import sys

import pytest
from small_run import write_recipe

from glassformer.cli import main, speak_any_encoding


@pytest.fixture
def printed(monkeypatch):
    """What a command writes into a standard output of a given encoding."""

    def run(encoding: str, *words: object) -> str:
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
        monkeypatch.setattr(sys, "argv", ["glassformer", *map(str, words)])
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return stream.buffer.getvalue().decode(encoding)

    return run


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_training_in_an_encoding_that_lacks_a_sign(printed, tmp_path, encoding):
    """The score's ± and the samples' ✓ once ended the command after all its work."""
    few = ("--set", "train.steps=2", "--set", "score.samples=2", "--out", tmp_path / "run", "--device", "cpu")
    output = printed(encoding, "train", write_recipe(tmp_path / "mine"), *few)
    assert "exact match" in output
    assert ("\\u00b1" if encoding == "ascii" else "±") in output
    assert "\\u2192" in output


def test_json_stays_json_in_ascii(printed):
    plain, ascii = (printed(name, "lab", "--lang", "zh", "--json") for name in ("utf-8", "ascii"))
    assert ascii.isascii()
    assert json.loads(ascii) == json.loads(plain)


def test_a_character_beyond_sixteen_bits_and_a_lone_surrogate():
    speak_any_encoding()
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="escaped", write_through=True)
    text = "zwölf \U0001f600 \udcff"
    print(json.dumps(text, ensure_ascii=False), end="", file=stream)
    assert json.loads(stream.buffer.getvalue().decode("ascii")) == text
