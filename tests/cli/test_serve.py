"""`glassformer serve` as a real process."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from glassformer import bundle
from glassformer.errors import ConfigError
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.text import Tokenizer, TokenizerOptions

sys.path.insert(0, str(Path(__file__).parents[1]))

from small_run import call, command


def tiny(folder: Path) -> Path:
    tokenizer = Tokenizer.train([("one two", "eins zwei")], TokenizerOptions(kind="words"))
    model = EncoderDecoder(ModelConfig(vocab_size=tokenizer.tgt_size, d_model=8, heads=2, d_ff=16, layers=1))
    bundle.save(folder, model, bundle.weights(model), tokenizer)
    return folder


def test_without_a_model_it_says_how_to_get_one(tmp_path):
    found = call(command("serve"), cwd=tmp_path)
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert "glassformer demo" in found.stderr


def test_a_folder_that_is_no_model_and_a_host_that_is_none(tmp_path):
    from glassformer.serve.listen import listen

    found = call(command("serve", tmp_path))
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    with pytest.raises(ConfigError, match="--host no such host"):
        listen("no such host", None)


def test_it_serves_until_interrupted_and_names_a_port_in_use(tmp_path):
    folder = tiny(tmp_path / "tiny")
    process = subprocess.Popen(command("serve", folder, "--port", "0"), stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        with urllib.request.urlopen(f"{address[0]}/", timeout=20) as answer:
            assert b"glassformer" in answer.read()
        busy = call(command("serve", folder, "--port", address[1]))
        assert busy.returncode == 2
        assert (
            busy.stderr
            == f"glassformer: port {address[1]} is in use; choose another, or leave --port out for a free one\n"
        )
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()
    assert process.returncode in (0, 130, -signal.SIGINT)


def test_a_free_port_is_found_where_none_was_asked_for(tmp_path):
    from glassformer.serve.listen import FIRST_PORT, listen

    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", FIRST_PORT))
            taken.listen()
        except OSError:
            pass  # someone else has it: just as well
        with listen("127.0.0.1", None) as found:
            assert found.getsockname()[1] > FIRST_PORT
