"""How every command ends that is interrupted, has lost its reader, or writes to a full disk: in real processes."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from sampled import sampled
from small_run import PATIENCE, RECIPE, command, launch, write_recipe

T = TypeVar("T")
SOON = 90  # seconds, where every core is busy


class RunningCommand:
    """A command that runs in a folder and writes into the files `out` and `err` there, unless `stdout` is given."""

    def __init__(self, folder: Path, words: tuple[str, ...], stdout: int | None = None) -> None:
        self.stderr = folder / "err"
        with (folder / "out").open("wb") as out, self.stderr.open("wb") as err:
            streams = {"stdin": subprocess.DEVNULL, "stdout": out if stdout is None else stdout, "stderr": err}
            self.process = launch(command(*words), cwd=folder, **streams)

    def wait_until(self, state: Callable[[], T]) -> T:
        """Wait for a state of the command, which must come before it ends."""
        while not (reached := state()):
            assert self.process.poll() is None
            time.sleep(0.01)
        return reached

    def wait(self) -> tuple[int, str]:
        """The exit code and standard error."""
        return self.process.wait(PATIENCE), self.stderr.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("ends")
    shutil.copytree(model, folder / "model")
    write_recipe(folder, RECIPE.replace("steps = 60", "steps = 2"))
    for name in ("a.en", "a.de"):
        (folder / name).write_text("the dog\n", encoding="utf-8")
    (folder / "slow").mkdir()
    os.mkfifo(folder / "slow" / "config.json")
    os.mkfifo(folder / "slow.en")
    (folder / "slow.toml").write_text(RECIPE.replace("train.en", "slow.en"), encoding="utf-8")
    return folder


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


def is_asleep(pid: int) -> bool:
    """Whether a process waits for more than a moment: a signal just before it begins to wait would not end that."""
    states = set()
    for _ in range(5):
        states.add(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
        time.sleep(0.02)
    return states == {"S"}


@pytest.mark.parametrize("words", sampled(INTERRUPTED, [*INTERRUPTED][:8]), ids=" ".join)
def test_an_interrupted_command_ends_with_130_at_once(folder, words):
    """And prints no traceback; a lab of a minute, for example, does not run to its end."""
    file = folder / INTERRUPTED[words]

    def is_read() -> int | None:
        try:
            return os.open(file, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # by nobody yet
            return None

    running, before, writer = RunningCommand(folder, words), "", None
    if file.is_fifo():
        writer = running.wait_until(is_read)
        running.wait_until(lambda: is_asleep(running.process.pid))
    else:
        before = running.wait_until(file.read_text)
    sent = time.monotonic()
    running.process.send_signal(signal.SIGINT)
    code, stderr = running.wait()
    if writer is not None:
        os.close(writer)
    assert code == 130
    assert time.monotonic() - sent < SOON
    last = stderr.removeprefix(before)
    assert not last or (words[0] in ("train", "demo") and last.startswith("stopped; ") and last.count("\n") == 1)


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
    running = RunningCommand(folder, words, writer)
    os.close(writer)
    code, stderr = running.wait()
    assert code == 141
    assert "Error" not in stderr
    assert "Exception" not in stderr


@pytest.mark.parametrize("words", [WRITING[i] for i in (0, 2, 5, 6, 7, 8)], ids=" ".join)
def test_a_full_disk_behind_standard_output_is_one_line(folder, words):
    full = os.open("/dev/full", os.O_WRONLY)
    code, stderr = RunningCommand(folder, words, full).wait()
    os.close(full)
    assert code == 2
    assert stderr.splitlines()[-1].startswith("glassformer: ")
    assert stderr.endswith("the disk is full\n")
    assert "Error" not in stderr
    assert "Exception" not in stderr
