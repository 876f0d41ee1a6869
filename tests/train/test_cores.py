"""A run beside other processes says that its threads wait for one another; it changes nothing by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from small_run import digest, train_here, write_recipe

from glassformer.train import loop, metrics
from glassformer.train.metrics import CpuContention, contention_advice, threads_by_default


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As a user has it who says nothing of threads."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.skipif(not metrics.thread_waits(), reason="this system does not count how long a thread waits for a core")
def test_processes_beside_a_run_are_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(metrics, "WINDOW", 0.2)
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        watched, told, until = CpuContention(), "", time.monotonic() + 60
        while not told and time.monotonic() < until:
            sum(range(10_000))  # a thread that sleeps waits for nothing
            told = contention_advice(watched, 2, tmp_path)
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert "other processes keep the cores busy, and the 2 threads" in told
    assert f"OMP_NUM_THREADS=1 glassformer train --resume --out {tmp_path}" in told


def test_a_run_says_it_once_and_trains_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "mine")
    monkeypatch.setattr(loop, "threads_by_default", lambda device: 2)  # two that run would make the test a slow one
    monkeypatch.setattr(metrics, "CONTENDED", 1e9)
    quiet = train_here(recipe, tmp_path / "quiet", "train.steps=2")
    monkeypatch.setattr(metrics, "WINDOW", 0.0)
    monkeypatch.setattr(metrics, "CONTENDED", -1.0)
    crowded = train_here(recipe, tmp_path / "crowded", "train.steps=2")
    assert "keep the cores busy" not in quiet
    assert crowded.count("keep the cores busy") == 1
    assert digest(tmp_path / "quiet") == digest(tmp_path / "crowded")


def test_who_has_chosen_the_threads_is_not_advised(monkeypatch: pytest.MonkeyPatch, two_threads: None) -> None:
    assert threads_by_default(torch.device("cpu")) == 2
    assert threads_by_default(torch.device("cuda")) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_by_default(torch.device("cpu")) == 1
    monkeypatch.setattr(metrics, "CONTENDED", -1.0)
    assert contention_advice(CpuContention(), 1, Path("run")) == ""
