"""How every command ends that is interrupted, has lost its reader, or writes to a full disk: in real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from sampled import sampled
from small_run import PATIENCE, RECIPE, command, launch, write_recipe
from tiny_translators import tiny_bundle

T = TypeVar("T")
SOON = 90  # seconds, where every core is busy


class Begun:
    """A command that runs in a folder; its words go to the files `out` and `err` there, unless told otherwise."""

    def __init__(self, folder: Path, words: tuple[str, ...], stdout: int | None = None) -> None:
        self.told = folder / "err"
        with (folder / "out").open("wb") as out, self.told.open("wb") as err:
            given = {"stdin": subprocess.DEVNULL, "stdout": out if stdout is None else stdout, "stderr": err}
            self.process = launch(command(*words), cwd=folder, **given)

    def until(self, state: Callable[[], T]) -> T:
        """Wait for a state of the command, which must come before it ends."""
        while not (found := state()):
            assert self.process.poll() is None
            time.sleep(0.01)
        return found

    def end(self) -> tuple[int, str]:
        """The exit code, and what was said on stderr."""
        return self.process.wait(PATIENCE), self.told.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("ends")
    tiny_bundle(made / "model")
    write_recipe(made, RECIPE.replace("steps = 60", "steps = 2"))
    for name in ("a.en", "a.de"):
        (made / name).write_text("the dog\n", encoding="utf-8")
    (made / "slow").mkdir()
    os.mkfifo(made / "slow" / "config.json")
    os.mkfifo(made / "slow.en")
    (made / "slow.toml").write_text(RECIPE.replace("train.en", "slow.en"), encoding="utf-8")
    return made


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
}


def waits(pid: int) -> bool:
    """Whether it waits for something, not for a moment only: a signal just before it begins to would not end that."""
    states = set()
    for _ in range(5):
        states.add(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
        time.sleep(0.02)
    return states == {"S"}


@pytest.mark.parametrize("words", sampled(INTERRUPTED, [*INTERRUPTED][:8]), ids=" ".join)
def test_an_interrupted_command_ends_with_130_and_says_nothing_of_it(folder, words):
    """And soon: what it has begun, a lab of a minute for example, is not let end."""
    file = folder / INTERRUPTED[words]

    def is_read() -> int | None:
        try:
            return os.open(file, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # by nobody yet
            return None

    begun = Begun(folder, words)
    if file.is_fifo():
        writer = begun.until(is_read)
        begun.until(lambda: waits(begun.process.pid))
        sent = time.monotonic()
        begun.process.send_signal(signal.SIGINT)
        code, said = begun.end()
        os.close(writer)
    else:
        told = begun.until(file.read_text)
        sent = time.monotonic()
        begun.process.send_signal(signal.SIGINT)
        code, said = begun.end()
        said = said.removeprefix(told)
    assert code == 130
    assert time.monotonic() - sent < SOON
    assert not said or (words[0] in ("train", "demo") and said.startswith("stopped; ") and said.count("\n") == 1)


WRITING = [
    ("--help",),
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
def test_a_command_without_a_reader_ends_with_141(folder, words):
    reader, writer = os.pipe()
    os.close(reader)
    begun = Begun(folder, words, writer)
    os.close(writer)
    code, said = begun.end()
    assert code == 141
    assert "Error" not in said
    assert "Exception" not in said


@pytest.mark.parametrize("words", [WRITING[i] for i in (0, 2, 5, 6, 7, 8)], ids=" ".join)
def test_a_full_disk_behind_standard_output_is_told_in_one_line(folder, words):
    full = os.open("/dev/full", os.O_WRONLY)
    code, said = Begun(folder, words, full).end()
    os.close(full)
    assert code == 2
    assert said.splitlines()[-1].startswith("glassformer: ")
    assert said.endswith("the disk is full\n")
    assert "Error" not in said
    assert "Exception" not in said
