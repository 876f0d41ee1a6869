"""A folder of fifty files, killed again and again: it ends complete, and as if it had never been disturbed."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def begin(docs, out):
    return subprocess.Popen(
        [sys.executable, str(HERE / "slow_folder.py"), docs, out], stdout=subprocess.PIPE, text=True
    )


def content(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and not file.name.startswith(".")
    }


@pytest.mark.parametrize("killed", [(9, 30), pytest.param((1, 9, 17, 30, 42), marks=pytest.mark.long)], ids=len)
def test_a_folder_of_fifty_files_that_is_killed_ends_complete_and_identical(tmp_path, killed):
    docs, out = tmp_path / "docs", tmp_path / "out"
    for i in range(50):
        file = docs / f"part{i % 5}" / f"{i}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"# Heading {i}\n\nWord {k} of *file* {i}, see [this](x{k}).\n\n" for k in range(3)))
    kills, seen = 0, 0
    for wanted in killed:  # killed as soon as so many files are there
        run = begin(docs, out)
        while len(content(out) if out.exists() else {}) < wanted and run.poll() is None:
            time.sleep(0.002)
        assert run.poll() is None, "the run ended before it could be killed"
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        run.stdout.close()
        kills += 1
        whole = content(out)
        assert len(whole) >= max(wanted, seen)
        seen = len(whole)
        for name, made in whole.items():  # what is there is there to its end
            assert made.decode() == expected(docs / name)
    run = begin(docs, out)
    told, _ = run.communicate(timeout=120)
    assert run.returncode == 0
    translated, kept = map(int, told.split())
    assert translated + kept == 50
    assert kept >= seen - 1
    assert kills == len(killed)
    undisturbed = begin(docs, tmp_path / "whole")
    undisturbed.communicate(timeout=120)
    assert content(out) == content(tmp_path / "whole")
    assert len(content(out)) == 50
    assert not [file for file in out.rglob(".*") if file.name != ".glassformer-translated.jsonl"]


def expected(source):
    from standins import StandIn, upper

    from glassformer.pipelines.documents import translate_bytes

    return translate_bytes(source, source.read_bytes(), StandIn(upper))[0].decode()
