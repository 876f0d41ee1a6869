"""The same on Ray: a worker is killed, then the run itself, and what is left ends in one process."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from small_run import OLD, PATIENCE, call, command

from glassformer.common.errors import ConfigError
from glassformer.deploy.bulk.workers import BulkJob, Pool

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None,
    reason="Ray is not installed (pip install 'glassformer[bulk]')",
)
SHARDS, ROWS = 20, 40


def below(pid: int) -> dict[int, str]:
    """The processes that a process has started, and those have, by their numbers."""
    parents, names = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            told = (place / "stat").read_text().rpartition(")")[2].split()
            parents[int(place.name)] = int(told[1])
            names[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    found: dict[int, str] = {}
    new = {pid}
    while new := {one for one, parent in parents.items() if parent in new}:
        found |= {one: names[one] for one in new}
    return found


def workers(pid: int) -> list[int]:
    return [one for one, name in below(pid).items() if name.startswith("ray::") and "MapBatches" in name]


def is_alive(pid: int) -> bool:
    """One that has ended, and that nobody has asked how, has no command left."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def wait_for(state: Callable[[], object], run: subprocess.Popen[bytes] | None = None) -> None:
    begin = time.monotonic()
    while not state():
        assert run is None or run.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() - begin < PATIENCE
        time.sleep(0.02)


@needs_ray
@pytest.mark.long
def test_a_worker_and_the_run_are_killed_and_no_row_is_lost_or_doubled(tmp_path: Path) -> None:
    words = ("one", "two", "three", "four", "five")
    lines = [
        " ".join(words[(i * k) % 5] for k in range(1, 60 + i % 7)) for i in range(ROWS)
    ]  # no shard is done at once
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    asked = ("bulk", "a.txt", "out", "--model", OLD, "--shard-rows", ROWS // SHARDS, "--beam", 4)
    parts = tmp_path / "out" / ".glassformer-bulk"
    run = subprocess.Popen(command(*asked, "--workers", 2), cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: len(list(parts.glob("*.part"))) >= 2, run)
        found: list[int] = []
        wait_for(lambda: found or found.extend(workers(run.pid)), run)  # one that is just being named has no name
        os.kill(found[0], signal.SIGKILL)
        seen = len(list(parts.glob("*.part")))
        wait_for(lambda: len(list(parts.glob("*.part"))) >= seen + 3, run)
        started = workers(run.pid)
    finally:
        run.kill()
        _, told = run.communicate(timeout=PATIENCE)
    assert b"by Ray: 2 x 1 core, on 1 machine" in told
    wait_for(lambda: not any(map(is_alive, started)))  # no worker stays behind
    done = len(list(parts.glob("*.part")))
    assert 5 <= done < SHARDS
    last = call(command(*asked, "--workers", 1), cwd=tmp_path)
    assert last.returncode == 0, last.stderr
    assert f"{2 * done} of {ROWS} rows are there from an earlier run" in last.stderr
    whole = call(command("bulk", "a.txt", "whole", *asked[3:], "--workers", 1), cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    made = (tmp_path / "out" / "a.txt").read_text().splitlines()
    assert made == (tmp_path / "whole" / "a.txt").read_text().splitlines()
    assert len(made) == ROWS


def job(device: str, workers: int | None, threads: int | None) -> BulkJob:
    return BulkJob("in", Path("out"), device=device, workers=workers, threads=threads)


def test_workers_that_do_not_fit_are_refused() -> None:
    there = {"CPU": 8.0, "GPU": 2.0}
    assert Pool.of(job("auto", None, None), there, 100) == Pool(2, 1, "cuda")
    assert Pool.of(job("cpu", None, None), there, 100) == Pool(8, 1, "cpu")
    assert Pool.of(job("cpu", None, 3), there, 100) == Pool(2, 3, "cpu")
    assert Pool.of(job("auto", 5, None), {"CPU": 8.0}, 3) == Pool(3, 1, "cpu")
    with pytest.raises(ConfigError, match="workers=3 with 3 cores each do not fit: Ray has 8 cores and 2 GPUs"):
        Pool.of(job("cpu", 3, 3), there, 100)
