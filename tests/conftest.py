"""Small tensors and one test process per core: more threads would only wait for each other."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from local_hub import LocalHub

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
os.environ["HF_HUB_OFFLINE"] = "1"  # no test asks anybody outside; those of the hub have one of their own
os.environ.pop("PYTHONUNBUFFERED", None)  # which hides a line that was never flushed
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # by the clock
settings.load_profile("busy")


def pytest_collection_finish() -> None:
    """What has been loaded stays: the collector need not walk through all of it again and again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def same_kernels() -> Iterator[None]:
    """Where a processor lacks bf16, PyTorch's first such product turns oneDNN off for good, and float32 rounds anew."""
    import torch

    enabled = torch.backends.mkldnn.enabled
    yield
    torch.backends.mkldnn.enabled = enabled


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalHub]:
    """A hub of this machine and a cache that nobody else uses: what HF_ENDPOINT and HF_HUB_CACHE would say."""
    from huggingface_hub import constants

    local = LocalHub()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", local.address)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", local.address + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    yield local
    local.close()


@pytest.fixture
def cli(monkeypatch, capsys):
    """The command line in this process."""
    from small_run import Cli

    return Cli(monkeypatch, capsys)


@pytest.fixture(scope="session")
def box_folder(tmp_path_factory):
    """A box of tiny models."""
    from tiny_box import make_box

    return make_box(tmp_path_factory.mktemp("box"))


@pytest.fixture
def tiny_box(box_folder, monkeypatch):
    """The box of tiny models in place of the one that ships."""
    from glassformer.pipelines import box

    monkeypatch.setattr(box, "HERE", box_folder)
    return box_folder


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    """One browser for all tests of a process: Playwright lets a thread have no more."""
    from browser import MISSING, find_browser
    from playwright.sync_api import sync_playwright

    path = find_browser()
    if path is None:
        pytest.fail(MISSING)
    with sync_playwright() as playwright:
        arguments = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]
        arguments += ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()
