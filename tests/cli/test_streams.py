"""What a command prints arrives, whatever the encoding of its terminal or pipe."""

from __future__ import annotations

import io
import json
import sys

import pytest
from small_run import write_recipe

from glassformer.cli import main, speak_any_encoding


class Printed:
    """The command line in this process, with a standard output of a given encoding."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def __call__(self, encoding: str, *words: object) -> str:
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
        self.monkeypatch.setattr(sys, "argv", ["glassformer", *map(str, words)])
        self.monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        written: io.BytesIO = stream.buffer
        return written.getvalue().decode(encoding)


@pytest.fixture
def printed(monkeypatch):
    return Printed(monkeypatch)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_training_ends_well_where_the_encoding_lacks_a_sign(printed, tmp_path, encoding):
    """The score's ± and the samples' ✓ once ended the command after all its work."""
    few = ("--set", "train.steps=2", "--set", "score.samples=2", "--out", tmp_path / "run", "--device", "cpu")
    told = printed(encoding, "train", write_recipe(tmp_path / "mine"), *few)
    assert "exact match" in told
    assert ("\\u00b1" if encoding == "ascii" else "±") in told
    assert "\\u2192" in told


def test_json_stays_json_in_ascii(printed):
    plain, ascii = (printed(name, "lab", "--lang", "zh", "--json") for name in ("utf-8", "ascii"))
    assert ascii.isascii()
    assert json.loads(ascii) == json.loads(plain)


def test_a_sign_beyond_sixteen_bits_and_half_a_pair():
    speak_any_encoding()
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="escaped", write_through=True)
    text = "zwölf \U0001f600 \udcff"
    print(json.dumps(text, ensure_ascii=False), end="", file=stream)
    assert json.loads(stream.buffer.getvalue().decode("ascii")) == text
