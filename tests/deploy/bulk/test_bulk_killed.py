"""A run in one process, stopped in every way: what is written stays, and the end is that of an undisturbed run."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from small_run import OLD, PATIENCE, command, launch

ROWS = 24


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    words = ("one", "two", "three", "four", "five")
    for name in ("a", "b"):
        lines = [" ".join(words[(i * k) % 5] for k in range(1, 2 + i % 7)) for i in range(ROWS // 2)]
        (tmp_path / "in" / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return tmp_path / "in"


def begin(source: Path, out: Path) -> subprocess.Popen[Any]:
    words = command("bulk", source, out, "--model", OLD, "--workers", 1, "--shard-rows", 1, "--beam", 1)
    return launch(words, stderr=subprocess.PIPE, text=True)


def there(out: Path) -> int:
    """How many rows are done."""
    parts = len(list(out.glob(".glassformer-bulk/*.part")))
    return parts + sum(len(file.read_text().splitlines()) for file in out.glob("*.txt"))


def stop(run: subprocess.Popen[Any], out: Path, wanted: int, how: signal.Signals) -> str:
    while there(out) < wanted:
        assert run.poll() is None, "the run ended before it could be stopped"
        time.sleep(0.002)
    run.send_signal(how)
    _, told = run.communicate(timeout=PATIENCE)
    return str(told)


def content(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


@pytest.mark.parametrize("kills", [(9,), pytest.param((3, 9, 15), marks=pytest.mark.long)], ids=len)
def test_killed_and_interrupted_it_ends_as_if_undisturbed(rows: Path, tmp_path: Path, kills: tuple[int, ...]) -> None:
    out, seen = tmp_path / "out", 0
    for wanted in kills:
        run = begin(rows, out)
        stop(run, out, max(wanted, seen + 1), signal.SIGKILL)
        assert run.returncode == -signal.SIGKILL
        assert there(out) >= seen
        seen = there(out)
    run = begin(rows, out)
    told = stop(run, out, min(seen + 1, ROWS), signal.SIGINT)
    assert run.returncode == 130
    assert f"of {ROWS} rows are kept in {out}: give the same command again to go on" in told
    assert f"{seen} of {ROWS} rows are there from an earlier run" in told
    (out / ".glassformer-bulk" / ".glassformer-0.partial").write_text("half")
    last = begin(rows, out)
    _, told = last.communicate(timeout=PATIENCE)
    assert last.returncode == 0, told
    whole = begin(rows, tmp_path / "whole")
    whole.communicate(timeout=PATIENCE)
    assert content(out) == content(tmp_path / "whole")
    assert set(content(out)) == {"a.txt", "b.txt"}
    assert {path.name for path in (out / ".glassformer-bulk").iterdir()} == {"asked.json", "lock"}


def test_a_shard_is_not_done_twice_nor_kept_half(rows: Path, tmp_path: Path) -> None:
    """Parts that are there are taken as they are; one that is missing is made again, and it alone."""
    out = tmp_path / "out"
    run = begin(rows, out)
    stop(run, out, 8, signal.SIGKILL)
    parts = sorted(out.glob(".glassformer-bulk/*.part"))
    parts[2].write_text("kept as it is\n")
    parts[4].unlink()
    last = begin(rows, out)
    _, told = last.communicate(timeout=PATIENCE)
    assert last.returncode == 0, told
    assert f"{len(parts) - 1} of {ROWS} rows are there" in told
    made = (out / "a.txt").read_text().splitlines()
    assert made[2] == "kept as it is"
    assert len(made) == ROWS // 2


def test_two_runs_do_not_write_to_one_folder(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = begin(rows, out)
    while there(out) < 2:
        time.sleep(0.002)
    run.send_signal(signal.SIGSTOP)
    try:
        other = begin(rows, out)
        _, told = other.communicate(timeout=PATIENCE)
        assert other.returncode == 2
        assert "another run is writing to this folder" in told
    finally:
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=PATIENCE)
