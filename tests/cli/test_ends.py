"""How every command ends that is interrupted, has lost its reader, or writes to a full disk: in real processes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from small_run import RECIPE, write_recipe
from test_translator_text import tiny_bundle

# Loads once what commands need, then forks a process for each. Asked: [words, stdout]; told: its id, then its end.
WARM = """
import json, os, signal, sys
import sacrebleu.metrics, rich.progress, rich.table
import glassformer.cli.judging, glassformer.explain.worked.tell, glassformer.labs.running, glassformer.serve.listen
from glassformer.cli import main

def stdout(name):
    if name != "nobody":
        return os.open(name, os.O_WRONLY)
    reader, writer = os.pipe()
    os.close(reader)
    return writer

for line in sys.stdin:
    words, name = json.loads(line)
    if not (child := os.fork()):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, opened in enumerate((os.open(os.devnull, os.O_RDONLY), stdout(name), os.open("err", os.O_WRONLY))):
            os.dup2(opened, number)
        sys.argv = ["glassformer", *words]
        main()
        sys.exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
SECONDS = 300  # only so that one which never ends is told
T = TypeVar("T")


class Warm:
    """Runs commands in a folder, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder, pipe = folder, subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", WARM], stdin=pipe, stdout=pipe, cwd=folder, text=True, bufsize=1
        )
        self.child = 0

    def start(self, words: tuple[str, ...], stdout: str = "out") -> None:
        assert self.process.stdin is not None
        for name in ("out", "err"):
            (self.folder / name).write_bytes(b"")
        self.process.stdin.write(json.dumps([words, stdout]) + "\n")
        self.process.stdin.flush()
        self.child = self.answer()

    def until(self, state: Callable[[], T]) -> T:
        """Wait for a state of the command, which must come before it ends."""
        while not (found := state()):
            os.kill(self.child, 0)
            time.sleep(0.01)
        return found

    def answer(self) -> int:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], SECONDS)[0]:
            os.kill(self.child, signal.SIGKILL)
            self.process.stdout.readline()
            pytest.fail("the command goes on for ever")
        return int(self.process.stdout.readline())

    def end(self) -> tuple[int, str]:
        """The exit code, and what was said on stderr."""
        return self.answer(), (self.folder / "err").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    folder = tmp_path_factory.mktemp("ends")
    tiny_bundle(folder / "model")
    write_recipe(folder, RECIPE.replace("steps = 60", "steps = 2"))
    for name in ("a.en", "a.de"):
        (folder / name).write_text("the dog\n", encoding="utf-8")
    (folder / "slow").mkdir()
    os.mkfifo(folder / "slow" / "config.json")
    os.mkfifo(folder / "slow.en")
    (folder / "slow.toml").write_text(RECIPE.replace("train.en", "slow.en"), encoding="utf-8")
    found = Warm(folder)
    yield found
    found.process.kill()
    found.process.communicate()


# Where each is when it is interrupted: reading this file, which nobody writes, or after its first word.
INTERRUPTED = {
    ("translate", "slow", "the dog"): "slow/config.json",
    ("translate", "model", "--input", "slow.en"): "slow.en",
    ("score", "slow", "--src", "a.en", "--tgt", "a.de"): "slow/config.json",
    ("evaluate", "slow", "--src", "a.en", "--ref", "a.de"): "slow/config.json",
    ("trace", "slow", "the dog"): "slow/config.json",
    ("serve", "slow", "--port", "0"): "slow/config.json",
    ("train", "slow.toml", "--out", "interrupted"): "slow.en",
    ("doctor", "slow.toml"): "slow.en",
    ("lab", "sinusoids", "norm_placement"): "out",
    ("demo", "--out", "demo"): "err",
    ("bench", "resume"): "err",
}


@pytest.mark.parametrize("words", INTERRUPTED, ids=" ".join)
def test_an_interrupted_command_ends_with_130_and_says_nothing_of_it(warm: Warm, words: tuple[str, ...]) -> None:
    file = warm.folder / INTERRUPTED[words]

    def is_read() -> int | None:
        try:
            return os.open(file, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # by nobody yet
            return None

    warm.start(words)
    if file.is_fifo():
        writer = warm.until(is_read)
        os.kill(warm.child, signal.SIGINT)
        code, said = warm.end()
        os.close(writer)
    else:
        told = warm.until(file.read_text)
        os.kill(warm.child, signal.SIGINT)
        code, said = warm.end()
        said = said.removeprefix(told)
    assert code == 130
    assert not said or (words[0] in ("train", "demo") and said.startswith("stopped; ") and said.count("\n") == 1)


WRITING = [
    ("--help",),
    ("bench", "--help"),
    ("lab",),
    ("doctor",),
    ("trace",),
    ("trace", "model", "the dog"),
    ("trace", "model", "the dog", "--json", "-"),
    ("translate", "model", "the dog"),
    ("score", "model", "--src", "a.en", "--tgt", "a.de"),
    ("evaluate", "model", "--src", "a.en", "--ref", "a.de"),
    ("serve", "model", "--port", "0"),
    ("train", "recipe.toml", "--out", "nobody"),
    ("demo", "--out", "demo"),
]


@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_a_command_without_a_reader_ends_with_141(warm: Warm, words: tuple[str, ...]) -> None:
    warm.start(words, "nobody")
    code, said = warm.end()
    assert code == 141
    assert "Error" not in said
    assert "Exception" not in said


@pytest.mark.parametrize("words", [WRITING[i] for i in (0, 2, 5, 6, 7, 8)], ids=" ".join)
def test_a_full_disk_behind_standard_output_is_told_in_one_line(warm: Warm, words: tuple[str, ...]) -> None:
    warm.start(words, "/dev/full")
    code, said = warm.end()
    assert code == 2
    assert said.splitlines()[-1].startswith("glassformer: ")
    assert said.endswith("the disk is full\n")
    assert "Error" not in said
    assert "Exception" not in said
